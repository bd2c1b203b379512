#!/usr/bin/env python3
"""Worse days: odd programs, missing rights, full disks, hostile peers, stopped and killed daemons."""
import concurrent.futures
import contextlib
import ctypes
import json
import math
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request

import pytest

import cluster
import raw_grpc
from cluster import BIN, Cluster, PUPPETS, wait_until

SOURCES = pathlib.Path(__file__).resolve().parents[1] / "puppets"
RESTLESS = PUPPETS / "restless"
NOBODY = {"user": "nobody", "group": "nogroup", "extra_groups": []}

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts small disks and becomes other users"),
              pytest.mark.skipif(not (PUPPETS / "restless").exists(), reason="the puppets are not built (mpicc is missing)")]


def cpu_of(pid):
    """Seconds of all its threads so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def exe_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def processes():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def files_of_ours():
    return {f"{folder}/{name}" for folder in ("/tmp", "/dev/shm", "/run") for name in os.listdir(folder)
            if name.startswith(("perf-agent", "perfd.", "perf-"))}


class Tidy(Cluster):
    """A cluster that looks, at its end, for anything that it or its daemons left behind."""

    def __init__(self, *arguments, **kwargs):
        super().__init__(*arguments, **kwargs)
        self.disks = []

    def small_disk(self, name, kib):
        """A folder that holds no more than this; before the cluster starts."""
        (self.dir / name).mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=0700", "none", self.dir / name], check=True)
        self.disks.append(self.dir / name)
        return self

    def __enter__(self):
        self.files_before = files_of_ours()
        return super().__enter__()

    def __exit__(self, kind, *rest):
        if self.disks:
            for process in reversed(self.processes):
                process.terminate()
            for process in self.processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(15)
            for disk in self.disks:
                subprocess.run(["umount", "-l", disk], check=True)
        super().__exit__(kind, *rest)
        if kind is not None:
            return
        mine = str(self.dir).encode()
        left = [pid for pid in processes() if pid != os.getpid() and mine in self.command_line(pid)]
        assert not left, f"processes are left: {[(pid, self.command_line(pid)) for pid in left]}"
        orphans = [pid for pid in processes() if exe_of(pid).endswith("perf-agent-reader") and self.parent(pid) == 1]
        assert not orphans, f"readers are left: {orphans}"
        assert files_of_ours() <= self.files_before, files_of_ours() - self.files_before
        assert not self.dir.exists(), f"{self.dir} could not be removed"

    @staticmethod
    def command_line(pid):
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        return b""

    @staticmethod
    def parent(pid):
        with contextlib.suppress(OSError):
            return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        return 0

    def restless(self, *arguments, **kwargs):
        return self.spawn("job", [RESTLESS, *arguments], **kwargs)

    def measure(self, process, duration="4s", states=("DONE",)):
        """Profiles one process of node1; the report, after the checks that hold for every report."""
        profile = self.submit("--pid", process.pid, "--node", "node1", "--duration", duration)
        return self.finish(profile, states)

    def finish(self, profile, states=("DONE",), seconds=90):
        status = self.wait_over(profile, seconds)
        assert status["state"] in states, status
        report = self.json("report", profile)
        check_sums(report)
        wait_until(lambda: not self.spooled(), 10, "the spools are empty")
        return report

    def spooled(self):
        return [p for p in self.dir.glob("spool-*/*") if p.suffix in (".window", ".damaged", ".new")]

    def notices(self, profile):
        return " | ".join(n["text"] for n in self.json("status", profile)["notices"])

    def ends_right(self, process, seconds=60):
        cluster.ended_well(process, seconds, lambda: self.log("job"))
        cluster.promised(self.log("job").splitlines()[-1] == "right", self.log("job"))

    def as_nobody(self, *arguments):
        return subprocess.run([BIN / "perfctl", *map(str, arguments), "--json"], capture_output=True, text=True,
                              timeout=60, env={**os.environ, "PERFD_ADDRESS": f"unix:{self.socket}", "HOME": "/"},
                              **NOBODY)

    def submit_as_nobody(self, pid):
        run = self.as_nobody("submit", "--pid", pid, "--node", "mine", "--duration", "3s")
        assert run.returncode == 0, run
        return json.loads(run.stdout)["id"]


def check_sums(report):
    accounting = report["accounting"]
    assert accounting["seen"] == accounting["kept"] + sum(accounting["dropped"].values()), accounting
    assert sum(r["samples"] for r in report["ranks"]) == accounting["kept"], (report["ranks"], accounting)
    categories = ("loops", "outside_loops", "libraries", "kernel", "unknown")
    assert sum(report["totals"][k]["samples"] for k in categories) == accounting["kept"], report["totals"]
    # Shares are of CPU time; they are those of the samples only where all of them stood for the same time.
    seconds = sum(r["seconds"] for r in report["ranks"])
    for row in report["loops"] + report["waiting"] + report["functions"]:
        assert abs(row["share"] * seconds - sum(r["seconds"] for r in row["ranks"])) < 1e-6 * max(1, seconds), row


def in_loop(report, file, mark):
    """Share of samples in the marked lines of a puppet."""
    first, last = cluster.marked_lines(SOURCES / file)[mark]
    return sum(r["share"] for r in report["loops"]
               if r["file"].endswith(file) and first <= r["first_line"] and r["last_line"] <= last)


def in_module(report, path):
    """Share of samples in the loops of one program."""
    return sum(r["share"] for r in report["loops"] if r["module"] == str(path))


def yielding():
    """For a job of very many threads: the test itself must get a turn."""
    os.nice(19)


def error_of(run):
    return json.loads(run.stderr.strip().splitlines()[-1])["error"]["message"]


def fill(folder):
    with open(folder / "ballast", "ab", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 65536)
        with contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)


# ---- programs that are not what they were -----------------------------------------------------------------------

@pytest.mark.small
def test_exec_in_mid_profile():
    with Tidy() as c:
        second = c.dir / "second"
        # Without the id that would make it the same module as the first.
        subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id", RESTLESS, second], check=True)
        job = c.restless("exec", 8, second)
        profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "12s")
        begin = cpu_of(job.pid)
        wait_until(lambda: exe_of(job.pid) == str(second), 20, "it is the second program", 0.01)
        first_s = cpu_of(job.pid) - begin
        report = c.finish(profile)
        all_s = cpu_of(job.pid) - begin  # and a moment after the profile
        assert str(second) in c.notices(profile), c.notices(profile)
        # Each has the loop that works and the one around it, which may have a row too. How much of the CPUs it gets on a busy
        # host is not for us to say.
        found = (first_s, all_s, report["loops"], report["totals"], c.notices(profile))
        assert abs(in_module(report, RESTLESS) - first_s / all_s) < 0.15, found
        assert abs(in_module(report, second) - (1 - first_s / all_s)) < 0.15, found
        assert in_loop(report, "restless.c", "work") > 0.8
        c.ends_right(job)


def test_code_that_was_written_at_run_time():
    with Tidy() as c:
        job = c.restless("jit", 6)
        report = c.measure(job)
        assert report["totals"]["unknown"]["share"] > 0.9, report["totals"]
        assert any("anonymous" in r["function"] and r["share"] > 0.9 for r in report["functions"]), report["functions"]
        c.ends_right(job)


def test_library_loaded_in_mid_profile():
    with Tidy() as c:
        job = c.restless("load", 9, PUPPETS / "libplugin.so")
        report = c.measure(job, "7s")
        assert in_loop(report, "plugin.c", "plugin") > 0.4, report["loops"][:4]
        assert in_loop(report, "restless.c", "work") > 0.2, report["loops"][:4]
        c.ends_right(job)


def test_two_hundred_threads():
    with Tidy() as c:
        job = c.restless("threads", 14, 200, preexec_fn=yielding)
        time.sleep(1)
        profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "5s")
        report = c.finish(profile)
        followed = sum(node["threads"] for node in c.json("status", profile)["nodes"])
        assert followed == 201, followed
        # Where starting and stopping so many threads is dear, sampling keeps to its budget by taking fewer samples, and not
        # every thread gets one. At least as many threads as samples that fall where they like would hit, less three sigma.
        rank = report["ranks"][0]
        each = rank["samples"] / 200
        missed = math.exp(-each)
        sigma = math.sqrt(200 * missed * (1 - (1 + each) * missed))
        assert rank["threads"] >= 200 * (1 - missed) - 3 * sigma, (rank, sigma)
        assert in_loop(report, "restless.c", "work") > 0.8, report["loops"][:4]
        c.ends_right(job)


def test_threads_and_processes_that_come_and_go():
    with Tidy() as c:
        job = c.restless("churn", 7)
        report = c.measure(job, "5s")
        # What the kernel takes to make threads and processes is the host's affair (0.2 to 0.6 of the time); the rest is the loop's.
        in_user_mode = 1 - report["totals"]["kernel"]["share"]
        assert in_loop(report, "restless.c", "work") > 0.6 * in_user_mode > 0.1, report["totals"]
        # Children belong to their rank: one rank stays one rank, and it is not "imbalanced" against its children.
        assert len(report["ranks"]) == 1 and report["imbalance"] == 1, (len(report["ranks"]), report["imbalance"])
        c.ends_right(job)


def test_a_32_bit_program():
    with Tidy() as c:
        (c.dir / "spin32.s").write_text(".globl _start\n_start: inc %eax\n jmp _start\n")
        for command in ("as --32 -o spin32.o spin32.s", "ld -m elf_i386 -o spin32 spin32.o"):
            subprocess.run(command.split(), cwd=c.dir, check=True)
        try:
            job = c.spawn("job32", [c.dir / "spin32"])
        except OSError as error:
            pytest.skip(f"this kernel runs no 32-bit programs ({error})")
        profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "3s")
        assert c.wait_over(profile, 30)["state"] == "FAILED"
        assert "32-bit" in c.notices(profile) and str(job.pid) in c.notices(profile), c.notices(profile)
        assert c.perfctl("watch", profile).returncode == 1
        other = c.restless("spin", 7)
        profile = c.submit("--pid", job.pid, "--pid", other.pid, "--node", "node1", "--duration", "3s")
        report = c.finish(profile, ("PARTIAL",))
        assert c.perfctl("watch", profile).returncode == 8
        assert [r["pid"] for r in report["ranks"]] == [other.pid] and "32-bit" in c.notices(profile)
        assert job.poll() is None, "the 32-bit program goes on"
        c.ends_right(other)


def test_scripts():
    with Tidy() as c:
        shell = c.dir / "loop.sh"
        shell.write_text("i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); done\n")
        python = c.dir / "spin_forever.py"
        python.write_text("x = 0\nwhile True:\n    x = x * 3 % 1000003\n")
        job = c.spawn("shell", ["sh", shell])
        report = c.measure(job, "3s")
        assert report["accounting"]["kept"] > 100 and report["totals"]["unknown"]["share"] < 0.1, report["totals"]
        c.spawn("python", [os.path.realpath(sys.executable), python])
        report = c.finish(c.submit("--command", "spin_forever.py", "--duration", "3s"))
        assert report["accounting"]["kept"] > 100, report["accounting"]
        assert sum(t["share"] for t in (report["totals"]["loops"], report["totals"]["outside_loops"],
                                        report["totals"]["libraries"])) > 0.8, report["totals"]
        assert job.poll() is None


def unshare(*arguments):
    # In a chroot whose root is no mount point, propagation cannot be changed (and need not be).
    mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    chroot = not any(line.split()[4] == "/" for line in mounts)
    return ["unshare", *(["--propagation", "unchanged"] if chroot else []), *arguments]


def test_another_mount_namespace_and_another_pid_namespace():
    with Tidy() as c:
        hidden = c.dir / "hidden"
        hidden.mkdir()
        script = f"mount -t tmpfs none {hidden} && cp {RESTLESS} {hidden}/boxed && exec {hidden}/boxed spin 12"
        job = c.spawn("job", unshare("--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script))
        boxed = wait_until(lambda: [p for p in processes() if exe_of(p).endswith(f"{hidden}/boxed")], 10, "it runs")[0]
        assert not (hidden / "boxed").exists(), "our mount namespace does not have the program"
        report = c.finish(c.submit("--pid", boxed, "--node", "node1", "--duration", "3s"))
        assert in_loop(report, "restless.c", "work") > 0.8, (report["totals"], report["status"]["notices"])
        report = c.finish(c.submit("--command", "boxed", "--duration", "3s"))
        assert in_loop(report, "restless.c", "work") > 0.8, report["totals"]
        c.ends_right(job)


def test_an_agent_in_a_container_and_pid_1():
    with Tidy(nodes=()) as c:
        job = c.spawn("job", unshare("--pid", "--fork", "--mount-proc", str(RESTLESS), "spin", 8))
        inside = wait_until(lambda: [p for p in processes() if Tidy.parent(p) == job.pid], 10, "it runs")[0]
        wait_until(lambda: exe_of(inside).endswith(str(RESTLESS)), 10, "its program runs")
        c.agents["box"] = c.spawn("agent-box", [
            "nsenter", "-t", inside, "-p", "-m", "-r", BIN / "perf-agent", "--address", f"unix:{c.socket}", "--node", "box",
            "--spool-dir", c.dir / "spool-box"])
        c.wait_connected(1)
        report = c.finish(c.submit("--pid", 1, "--node", "box", "--duration", "3s"))
        assert in_loop(report, "restless.c", "work") > 0.8 and report["ranks"][0]["pid"] == 1, report["totals"]
        c.ends_right(job)


def test_targets_nobody_should_want():
    with Tidy() as c:
        report = c.measure(c.daemon, "2s")
        assert report["ranks"][0]["command"] == "perfd", report["ranks"]
        c.measure(c.agents["node1"], "2s")


def test_two_jobs_of_the_same_command():
    with Tidy() as c:
        program = c.dir / "twofold"
        shutil.copy(PUPPETS / "counting", program)
        for name in ("one", "two"):
            c.mpirun(name, 2, [program, 20_000_000, 60000])
        wait_until(lambda: len(cluster.ranks_of("twofold")) == 4, 20, "four ranks run")
        pids = cluster.ranks_of("twofold")
        profile = c.submit("--command", "twofold", "--duration", "4s")
        assert c.wait_over(profile, 30)["state"] == "FAILED"
        assert "2 MPI jobs" in c.notices(profile) and all(str(p) in c.notices(profile) for p in pids), c.notices(profile)
        assert c.perfctl("watch", profile).returncode != 0
        # Who names the processes gets them, and rank numbers that repeat are told apart.
        named = [word for pid in pids for word in ("--pid", pid)]
        profile = c.submit(*named, "--node", "node1", "--duration", "4s")
        report = c.finish(profile)
        assert sorted(r["pid"] for r in report["ranks"]) == pids, report["ranks"]
        assert len({r["job_id"] for r in report["ranks"]}) == 2, report["ranks"]
        assert "pid" in report["worst_rank"], report["worst_rank"]
        assert "2 jobs" in c.notices(profile), c.notices(profile)


# ---- rights and limits ------------------------------------------------------------------------------------------

def nobody_cluster():
    c = Tidy(nodes=())
    spool = c.dir / "spool-mine"
    spool.mkdir()
    shutil.chown(spool, "nobody", "nogroup")
    return c


def test_an_agent_of_an_ordinary_user():
    with nobody_cluster() as c:
        c.start_agent("mine", flags=["--user-mode"], **NOBODY)
        c.wait_connected(1)
        own = c.restless("spin", 10, **NOBODY)
        report = c.finish(c.submit_as_nobody(own.pid))
        assert in_loop(report, "restless.c", "work") > 0.8, (report["totals"], report["status"]["notices"])
        roots = c.spawn("roots", [RESTLESS, "spin", 30])
        profile = c.submit_as_nobody(roots.pid)
        assert c.wait_over(profile, 30)["state"] == "FAILED"
        assert "belongs to root" in c.notices(profile), c.notices(profile)
        assert c.as_nobody("watch", profile).returncode == 4
        run = c.perfctl("submit", "--pid", own.pid, "--node", "mine", "--json")
        assert run.returncode == 1 and "belong to other users" in error_of(run), run
        # It cannot take the place of the node's own agent.
        c.start_agent("node1")
        c.wait_connected(2)
        spool = c.dir / "spool-other"
        spool.mkdir()
        shutil.chown(spool, "nobody", "nogroup")
        thief = c.spawn("thief", [BIN / "perf-agent", "--address", f"unix:{c.socket}", "--node", "node1", "--user-mode",
                                  "--spool-dir", spool], **NOBODY)
        wait_until(lambda: "already has an agent" in c.log("thief"), 10, "the second agent is refused")
        modes = {n["node"]: n["user_mode"] for n in c.json("nodes")["nodes"]}
        assert thief.poll() is None and modes == {"mine": True, "node1": False}, modes
        c.ends_right(own)


def test_no_locked_memory():
    with nobody_cluster() as c:
        def no_lock():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
        c.start_agent("mine", flags=["--user-mode"], preexec_fn=no_lock, **NOBODY)
        c.wait_connected(1)
        few = c.restless("threads", 6, 2, **NOBODY)
        time.sleep(1)
        profile = c.submit_as_nobody(few.pid)
        report = c.finish(profile)
        assert report["accounting"]["kept"] > 100, report["accounting"]
        c.ends_right(few)
        many = c.spawn("many", [RESTLESS, "threads", 12, 600], preexec_fn=yielding, **NOBODY)
        time.sleep(1)
        profile = c.submit_as_nobody(many.pid)
        status = c.wait_over(profile, 30)
        if status["state"] == "FAILED":
            assert "perf_event_mlock_kb" in c.notices(profile) and "RLIMIT_MEMLOCK" in c.notices(profile), status
        else:  # smaller rings found room for all
            assert status["state"] == "DONE", status
        assert many.wait(60) == 0


def forbid_perf():
    """perf_event_open fails with EACCES from here on, as with kernel.perf_event_paranoid=3 on Debian's kernels."""
    # Source: seccomp(2); linux/bpf_common.h BPF_LD|BPF_W|BPF_ABS = 0x20, BPF_JMP|BPF_JEQ|BPF_K = 0x15, BPF_RET = 6.
    program = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 298, 6, 0, 0, 0x00050000 | 13, 6, 0, 0, 0x7fff0000)
    code = ctypes.create_string_buffer(program)
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(header), 0, 0) != 0:
        os._exit(99)


def test_perf_is_forbidden():
    with Tidy(nodes=()) as c:
        c.start_agent("node1", preexec_fn=forbid_perf)
        c.wait_connected(1)
        job = c.restless("spin", 6)
        run = c.perfctl("submit", "--pid", job.pid, "--node", "node1", "--duration", "3s", "--json")
        assert run.returncode == 0, run
        profile = json.loads(run.stdout)["id"]
        assert c.wait_over(profile, 30)["state"] == "FAILED"
        assert "kernel.perf_event_paranoid" in c.notices(profile), c.notices(profile)
        assert c.perfctl("watch", profile).returncode == 4
        doctor = c.perfctl("doctor")
        assert doctor.returncode == 1 and "perf_event_paranoid" in doctor.stdout, doctor
        c.ends_right(job)


# ---- disks and ports --------------------------------------------------------------------------------------------

def test_the_disk_of_the_store_is_full():
    with Tidy().small_disk("store", 6000) as c:
        job = c.restless("spin", 30)
        profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "14s")
        c.wait_state(profile, ("SAMPLING",), 20)
        fill(c.dir / "store")
        wait_until(lambda: "cannot write" in c.log("perfd"), 30, "perfd notices")
        wait_until(c.spooled, 20, "the agent keeps what is not stored")
        run = c.perfctl("submit", "--pid", job.pid, "--node", "node1", "--duration", "1s", "--json")
        assert run.returncode == 1 and str(c.dir / "store") in error_of(run), run
        assert c.perfctl("doctor").returncode == 1
        time.sleep(8)
        assert c.daemon.poll() is None and c.agents["node1"].poll() is None
        (c.dir / "store/ballast").unlink()
        report = c.finish(profile)
        assert 13.5e9 < report["nodes"][0]["covered_ns"] < 15e9, report["nodes"]
        assert not any(report["accounting"]["dropped"].values()), report["accounting"]
        c.ends_right(job)


@pytest.mark.small
def test_perfd_starts_on_a_full_disk():
    with Tidy(nodes=()).small_disk("full", 300) as c:
        fill(c.dir / "full")
        run = subprocess.run([BIN / "perfd", "--store-dir", c.dir / "full", "--socket", c.dir / "f.sock",
                              "--metrics-listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=30)
        assert run.returncode == 1 and ("full" in run.stderr or "No space" in run.stderr), run
        run = subprocess.run([BIN / "perf-agent", "--address", f"unix:{c.socket}", "--spool-dir", c.dir / "full/spool"],
                             capture_output=True, text=True, timeout=30)
        assert run.returncode == 1 and ("full" in run.stderr or "No space" in run.stderr), run


def test_the_disk_of_the_spool_is_full():
    with Tidy().small_disk("spool-node1", 1000) as c:
        job = c.restless("spin", 30)
        profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "12s")
        c.wait_state(profile, ("SAMPLING",), 20)
        time.sleep(2)
        fill(c.dir / "spool-node1")
        time.sleep(4)
        (c.dir / "spool-node1/ballast").unlink()
        report = c.finish(profile, ("PARTIAL",))
        assert "windows are lost" in c.notices(profile) and "full" in c.notices(profile), c.notices(profile)
        assert report["accounting"]["dropped"]["spool_full"] > 100, report["accounting"]
        assert 5e9 < report["nodes"][0]["covered_ns"] < 11e9, report["nodes"]
        # Full until the end: the last windows find no room and no later one can carry their count.
        profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "6s")
        c.wait_state(profile, ("SAMPLING",), 20)
        time.sleep(3)
        fill(c.dir / "spool-node1")
        c.finish(profile, ("PARTIAL",))
        assert "windows are lost" in c.notices(profile), c.notices(profile)
        c.ends_right(job)


def test_port_and_socket_in_use():
    with Tidy(nodes=()) as c, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        run = subprocess.run([BIN / "perfd", "--store-dir", c.dir / "store2", "--socket", c.dir / "b.sock",
                              "--metrics-listen", address], capture_output=True, text=True, timeout=30)
        assert run.returncode == 1 and address in run.stderr and "--metrics-listen" in run.stderr, run
        assert not (c.dir / "b.sock").exists()
        run = subprocess.run([BIN / "perf-agent", "--address", f"unix:{c.socket}", "--spool-dir", c.dir / "x",
                              "--reader", "/nowhere/reader"], capture_output=True, text=True, timeout=30)
        assert run.returncode == 1 and "/nowhere/reader" in run.stderr, run


# ---- peers ------------------------------------------------------------------------------------------------------

def metric(c, start):
    with urllib.request.urlopen(c.metrics_url(), timeout=10) as answer:
        return sum(float(line.split()[-1]) for line in answer.read().decode().splitlines() if line.startswith(start))


@pytest.mark.small
def test_garbage_on_the_socket():
    with Tidy() as c:
        job = c.restless("spin", 12)
        profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "6s")
        dice = random.Random(1)
        garbage = [b"", b"\0" * 65536, b"GET / HTTP/1.1\r\n\r\n", dice.randbytes(100_000),
                   raw_grpc.PREFACE, raw_grpc.PREFACE + dice.randbytes(50_000),
                   raw_grpc.PREFACE + raw_grpc.frame(raw_grpc.SETTINGS, 0, 0) + b"\xff" * 9 + dice.randbytes(5000),
                   raw_grpc.PREFACE + raw_grpc.frame(raw_grpc.HEADERS, 4, 1, dice.randbytes(200))]
        for piece in garbage:
            with raw_grpc.Talk(c.socket) as talk:
                talk.send(piece)
        idle = [raw_grpc.Talk(c.socket) for _ in range(200)]
        for path in (raw_grpc.CONNECT, "/perfd.v1.ProfilerService/Submit", "/no.such.Service/At"):
            for body in (raw_grpc.message(dice.randbytes(3000)), raw_grpc.message(b"x", 0xffffffff),
                         raw_grpc.message(dice.randbytes(40_000), 100 << 20), b"\1\2\3", b"\xff" * 30_000):
                with raw_grpc.Talk(c.socket) as talk:
                    talk.call(path)
                    talk.say(body)
        assert c.perfctl("version").returncode == 0
        for talk in idle:
            talk.socket.close()
        assert c.daemon.poll() is None
        report = c.finish(profile)
        assert 5.5e9 < report["nodes"][0]["covered_ns"] < 7e9, report["nodes"]
        c.ends_right(job)


def test_a_hostile_agent():
    with Tidy() as c:
        with raw_grpc.Talk(c.socket) as talk:
            talk.call(raw_grpc.CONNECT)
            talk.say(raw_grpc.message(raw_grpc.register("rogue", protocol=2)))
            heard = talk.hear(b"install the same version")
            assert b"speaks protocol 2" in heard and b"install the same version on both" in heard, heard
        with raw_grpc.Talk(c.socket) as talk:
            talk.call(raw_grpc.CONNECT)
            talk.say(raw_grpc.message(raw_grpc.field(2, b"")))
            heard = talk.hear(b"must be Register")
            assert b"must be Register" in heard, heard
        for body in (b"\xff" * 100, raw_grpc.field(4, raw_grpc.field(1, "p-000001") + raw_grpc.field(9, b"\xff" * 50)),
                     raw_grpc.register("again")):
            with raw_grpc.Talk(c.socket) as talk:
                talk.call(raw_grpc.CONNECT)
                talk.say(raw_grpc.message(raw_grpc.register("rogue")))
                wait_until(lambda: any(n["node"] == "rogue" and n["connected"] for n in c.json("nodes")["nodes"]), 10,
                           "the rogue is connected")
                talk.say(raw_grpc.message(body))
                wait_until(lambda: not any(n["node"] == "rogue" and n["connected"] for n in c.json("nodes")["nodes"]),
                           10, "the rogue is thrown out")
        wait_until(lambda: metric(c, "perfd_streams_malformed_total") >= 4, 10, "it is counted")
        with raw_grpc.Talk(c.socket) as talk:
            talk.call(raw_grpc.CONNECT)
            talk.say(raw_grpc.message(b"x" * 10_000, declared=17 << 20))  # over the limit, and never whole
            heard = talk.hear(b"no Register message", seconds=20)
            assert b"no Register message within 10 s" in heard, heard
        job = c.restless("spin", 4)
        c.measure(job, "2s")
        c.ends_right(job)


def test_a_false_or_other_daemon():
    with Tidy(nodes=()) as c:
        c.daemon.terminate()
        assert c.daemon.wait(15) == 0
        false = raw_grpc.FalseDaemon(c.socket, b"SSH-2.0-OpenSSH_9.2\r\n")
        agent = c.start_agent("node1")
        wait_until(lambda: false.visits >= 2 and "trying again" in c.log("agent-node1"), 20, "the agent complains")
        false.close()
        text = "the agent speaks protocol 1, this perfd (9.9.9) speaks 2: install the same version on both"
        false = raw_grpc.FalseDaemon(c.socket, raw_grpc.frame(raw_grpc.SETTINGS, 0, 0), raw_grpc.refusal(9, text))
        wait_until(lambda: "install the same version on both" in c.log("agent-node1"), 30, "the reason is in the log")
        run = c.perfctl("list", timeout=30)
        assert run.returncode == 1 and "install the same version" in run.stderr, run
        false.close()
        assert agent.poll() is None
        c.start_daemon()
        c.wait_connected(1)


# ---- stopped, ended, killed -------------------------------------------------------------------------------------

def run_through(duration, disturb):
    """A profile of `duration` seconds during which disturb(c) is called: state, coverage and job must not suffer."""
    with Tidy() as c:
        job = c.restless("spin", duration + 45)
        profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", f"{duration}s")
        c.wait_state(profile, ("SAMPLING",), 20)
        time.sleep(3)
        begin = time.monotonic()
        disturb(c)
        report = c.finish(profile)
        elapsed = time.monotonic() - begin + 3
        covered = report["nodes"][0]["covered_ns"] / 1e9
        kept = report["accounting"]["kept"]
        assert duration - 0.5 < covered < duration + 1.5, (covered, duration)
        assert covered < elapsed + 1, (covered, elapsed)
        # Nothing counted twice: one thread at 199 Hz gives no more than this.
        assert kept <= 199 * covered * 1.05 + 20, (kept, covered)
        job.terminate()
        return report


def stop_for_ten_seconds(process):
    process.send_signal(signal.SIGSTOP)
    time.sleep(10)
    process.send_signal(signal.SIGCONT)


def test_the_agent_stands_still():
    with Tidy() as c:
        job = c.restless("spin", 30)
        profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "18s", "--frequency", "997Hz",
                           "--overhead", "30%")  # the governor lowers nothing: events at rest fill no ring
        c.wait_state(profile, ("SAMPLING",), 20)
        time.sleep(3)
        stop_for_ten_seconds(c.agents["node1"])
        report = c.finish(profile)
        accounting = report["accounting"]
        # The ring holds a second or two: the rest is lost and counted.
        assert accounting["lost"] > 100 and accounting["kept"] > 500, accounting
        due = 997 * report["overhead"]["job_cpu_ns"] / 1e9
        assert 0.8 < (accounting["lost"] + accounting["kept"]) / due < 1.2, (accounting, due)
        assert report["missing_ratio"] > 0.02, report["missing_ratio"]
        c.ends_right(job)


def test_the_daemon_stands_still():
    report = run_through(18, lambda c: stop_for_ten_seconds(c.daemon))
    due = 199 * report["overhead"]["job_cpu_ns"] / 1e9
    assert 0.85 < report["accounting"]["kept"] / due < 1.15, (report["accounting"], due)


def test_both_are_ended_and_started_again():
    def restart(c):
        for name in (c.agents["node1"], c.daemon):
            name.terminate()
            assert name.wait(15) == 0, "a clean end"
        time.sleep(1)
        c.start_daemon()
        c.start_agent("node1")
    run_through(12, restart)


def test_the_daemon_is_ended_first():
    def restart(c):
        c.daemon.terminate()
        assert c.daemon.wait(15) == 0
        time.sleep(2)
        c.agents["node1"].terminate()
        assert c.agents["node1"].wait(15) == 0
        assert c.spooled(), "what perfd does not have is in the spool"
        c.start_agent("node1")
        time.sleep(1)
        c.start_daemon()
    run_through(12, restart)


def test_the_daemon_returns_after_the_end():
    def away(c):
        c.daemon.kill()
        c.daemon.wait()
        time.sleep(6)
        c.start_daemon()
    run_through(6, away)


def test_five_kills_of_the_agent():
    def kill(c):
        for _ in range(5):
            c.agents["node1"].kill()
            c.agents["node1"].wait()
            c.start_agent("node1")
            time.sleep(1.5)
    run_through(15, kill)


# ---- numbers and names ------------------------------------------------------------------------------------------

def test_names():
    with Tidy() as c:
        job = c.restless("spin", 12)
        target = ["--pid", job.pid, "--node", "node1", "--duration", "1s"]
        for name in ("a\nb", "a\x1b[31mred", "x" * 10_240, "tab\t", "\x7f"):
            run = c.perfctl("submit", *target, "--name", name, "--json")
            assert run.returncode == 5 and "name" in error_of(run), (name[:20], run)
            assert "\x1b" not in run.stderr, run.stderr
        run = subprocess.run([str(BIN / "perfctl"), "submit", *map(str, target), "--name", b"\xff\xfe"],
                             capture_output=True, timeout=30, env={**os.environ, "PERFD_ADDRESS": f"unix:{c.socket}"})
        assert run.returncode == 5 and b"UTF-8" in run.stderr, run
        run = c.perfctl("submit", "--command", "x" * 10_240, "--json")
        assert run.returncode == 5, run
        for name in ("Wärmeleitung – 熱", "'; DROP TABLE profile; --", "%s%n%d", "../../etc/passwd", "x" * 128):
            profile = c.submit(*target, "--name", name)
            assert c.finish(profile)["status"]["name"] == name
            assert c.perfctl("list").returncode == 0
        with urllib.request.urlopen(c.metrics_url(), timeout=10) as answer:
            answer.read().decode()
        c.ends_right(job)


def test_the_65th_profile():
    with Tidy() as c:
        jobs = [c.spawn(f"job{i}", ["sleep", "300"]) for i in range(64)]
        c.agents["node1"].send_signal(signal.SIGSTOP)
        # Side by side: a profile whose node does not answer fails after ten seconds, and all have to be active at once.
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            profiles = list(pool.map(lambda job: c.submit("--pid", job.pid, "--node", "node1", "--duration", "2s"), jobs))
        run = c.perfctl("submit", "--pid", jobs[0].pid, "--node", "node1", "--json")
        assert run.returncode == 1 and "64" in error_of(run) and "cancel" in error_of(run), run
        c.agents["node1"].send_signal(signal.SIGCONT)
        states = [c.wait_over(profile, 60)["state"] for profile in profiles]
        assert states.count("DONE") >= 16 and set(states) <= {"DONE", "FAILED"}, states
        refused = [p for p, state in zip(profiles, states) if state == "FAILED"]
        for profile in refused:
            assert "already runs 16 profiles" in c.notices(profile), c.notices(profile)
        assert c.wait_over(c.submit("--pid", jobs[0].pid, "--node", "node1", "--duration", "1s"), 30)["state"] == "DONE"
        wait_until(lambda: not c.spooled(), 10, "the spools are empty")


if __name__ == "__main__":
    cluster.pytest_file(__file__)
