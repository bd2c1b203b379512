#!/usr/bin/env python3
"""User mode, as an ordinary user: a perfd of one's own, agents started by mpirun, one's own MPI job, a report with verdicts;
what is possible at each level of perf permission, and what is said where nothing is. A user is made for it, and removed."""
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import time

import pytest

import cluster
import nodes
from cluster import BIN, Cluster, PUPPETS, promised, wait_until
from promises_test import Rank, differences, unaltered
from worse_days_test import check_sums, error_of, forbid_perf

NAME = "pfe2e-user"
NUMBER = 61_987  # nobody has it
PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
YAMA = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
PROGRAMS = ("perfd", "perf-agent", "perf-agent-reader", "perf-agent-tracer", "perfctl")

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it makes a user, and becomes it"),
              pytest.mark.skipif(not (cluster.PUPPETS / "fleet").exists(), reason="the puppets are not built (mpicc is missing)")]


# ---- people -----------------------------------------------------------------------------------------------------

class Person:
    def __init__(self, uid, gid, name):
        self.uid, self.gid, self.name = uid, gid, name

    @property
    def rights(self):
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


@contextlib.contextmanager
def made_user():
    """A user of this machine; one that a killed test has left is removed first."""
    remove_user()
    nodes.run("useradd", "--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/bin/sh", NAME)
    try:
        entry = pwd.getpwnam(NAME)
        yield Person(entry.pw_uid, entry.pw_gid, NAME)
    finally:
        remove_user()


def remove_user():
    with contextlib.suppress(KeyError):
        pwd.getpwnam(NAME)
        nodes.run("userdel", NAME)


@contextlib.contextmanager
def setting(path, value):
    """A sysctl for a while; False where it cannot be set."""
    before = path.read_text().strip()
    try:
        path.write_text(str(value))
        changed = path.read_text().strip() == str(value)
    except OSError:
        changed = before == str(value)
    try:
        yield changed
    finally:
        with contextlib.suppress(OSError):
            path.write_text(before)


def readable(person, beside, folder, names):
    """Where the person finds these programs: copies, when they may not enter the folder."""
    look = subprocess.run(["test", "-x", str(folder / names[0])], cwd="/", check=False, timeout=20, **person.rights)
    if look.returncode == 0:
        return folder
    copies = beside / f"copy-{folder.name}"
    copies.mkdir(mode=0o755)
    for name in names:
        shutil.copy(folder / name, copies / name)
        (copies / name).chmod(0o755)
    return copies


def processes_of(person):
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if owner(pid) == person.uid]


def check_ends(person, word):
    """No process of this person with this word on its command line is left."""
    wait_until(lambda: not any(word in command_line(pid) for pid in processes_of(person)), 8, f"{word} has ended")


def check_nothing_left(person):
    with contextlib.suppress(AssertionError):
        wait_until(lambda: not processes_of(person), 8, "all have ended")  # mpirun does not wait for those it was told to end
    left = processes_of(person)
    assert not left, f"processes of {person.name} are left: {[(pid, command_line(pid)) for pid in left]}"


class Own(Cluster):
    """Everything in a private folder of one person, and run by them."""

    def __init__(self, person, before_agent=None):
        super().__init__(nodes=())
        self.person, self.before_agent = person, before_agent
        self.home = self.dir / "home"
        for folder in (self.home, self.home / "tmp"):
            folder.mkdir(mode=0o700)
            os.chown(folder, person.uid, person.gid)
        self.socket = self.home / "sock"
        self.bin = readable(person, self.dir, BIN, PROGRAMS)
        self.puppets = readable(person, self.dir, PUPPETS, ("fleet", "restless"))
        self.environment = {"HOME": str(self.home), "USER": person.name, "LOGNAME": person.name, "TMPDIR": str(self.home / "tmp"),
                            "PERFD_ADDRESS": f"unix:{self.socket}", "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
                            "LANG": "C.UTF-8"}

    def spawn(self, name, command, env=None, **kwargs):
        with open(self.dir / f"{name}.log", "ab") as log:
            process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home,
                                       env={**self.environment, **(env or {})}, **self.person.rights, **kwargs)
        self.processes.append(process)
        return process

    def perfctl(self, *arguments, timeout=120, env=None, **kwargs):
        return subprocess.run([str(self.bin / "perfctl"), *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, cwd=self.home, env={**self.environment, **(env or {})},
                              **(kwargs or self.person.rights))

    def start_daemon(self):
        self.daemon = self.spawn("perfd", [self.bin / "perfd", "--store-dir", self.home / "perfd", "--socket", self.socket,
                                           "--metrics-listen", "127.0.0.1:0", *self.daemon_flags])
        wait_until(lambda: self.socket.exists() and self.perfctl("version").returncode == 0, 20, "perfd answers")

    def start_agents(self, *flags):
        """The documented way: one on each node of the allocation, all defaults."""
        self.agents["all"] = self.spawn("agent-all", ["mpirun", "-npernode", "1", self.bin / "perf-agent", "--user-mode", *flags],
                                        preexec_fn=self.before_agent)
        self.wait_connected(1)

    def start_job(self):
        self.stop = self.home / "stop"
        job = self.spawn("job", ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", 2, self.puppets / "fleet", 0, self.stop, 1])
        self.ranks = wait_until(self.two_ranks, 20, "two ranks run")
        return job

    def two_ranks(self):
        mine = [pid for pid in cluster.ranks_of("fleet") if os.stat(f"/proc/{pid}").st_uid == self.person.uid]
        return mine if len(mine) == 2 else None

    def ends_right(self, job):
        """The job computed what it computes when nobody looks."""
        self.stop.write_text("")
        cluster.ended_well(job, 60, lambda: self.log("job"))
        rows = [line for line in self.log("job").splitlines() if line.startswith('{"rank"')]
        steps = json.loads(rows[0])["steps"]
        alone = self.spawn("alone", ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", 2, self.puppets / "fleet", steps,
                                     self.stop, 1])
        assert alone.wait(120) == 0, self.log("alone")
        expected = sorted(line for line in self.log("alone").splitlines() if line.startswith('{"rank"'))
        promised(sorted(rows) == expected, (rows, expected))

    def notices(self, profile):
        return " | ".join(n["text"] for n in self.json("status", profile)["notices"])

    def __exit__(self, kind, *rest):
        super().__exit__(kind, *rest)
        if kind is None:
            check_nothing_left(self.person)


def owner(pid):
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{pid}").st_uid
    return None


def command_line(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() or pathlib.Path(f"/proc/{pid}/stat").read_bytes()
    return b""


# ---- with permission --------------------------------------------------------------------------------------------

def figures_of(verdict):
    return {v["variant"]: round(v["saturation"]["value"], 2) for v in verdict["variants"] if v["valid_runs"]}


def profile_of_divisions(c, kernel_too):
    """(its report, the verdict of its hottest loop): all that holds whether or not it could name the bound."""
    run = c.perfctl("submit", "--command", "fleet", "--duration", "12s", "--variants", "LS,FP,NO_DIV", "--overhead", "20%", "--watch",
                    timeout=90)
    assert run.returncode == 0, (run.returncode, run.stdout[-2000:], run.stderr[-2000:])
    report = c.json("report", "last")
    check_sums(report)
    assert sorted(r["pid"] for r in report["ranks"]) == sorted(c.ranks), report["ranks"]
    assert {r["uid"] for r in report["ranks"]} == {c.person.uid} and report["status"]["requester"]["uid"] == c.person.uid
    assert report["nodes"][0]["kernel_included"] == kernel_too, report["nodes"]
    verdict = max(report["verdicts"], key=lambda v: v["share"])
    words = ["Divide", "fleet.c"]
    if verdict["bound"] != "unknown":
        found = figures_of(verdict)
        assert verdict["bound"].startswith("arithmetic") and found["LS"] < 0.7 and found.get("NO_DIV", 0) < 0.7, (verdict, found)
        words += ["What a fix would save", "LS ", "NO_DIV", "arithmetic bound"]
    assert all(word in run.stdout for word in words), (words, run.stdout)
    return report, verdict


def is_known(made):
    _, verdict = made
    return verdict["bound"] != "unknown" and "NO_DIV" in figures_of(verdict)


def profile_own_job(c, kernel_too):
    c.start_agents()
    row = c.json("nodes")["nodes"][0]
    assert row["user_mode"] and row["uid"] == c.person.uid and row["can_inject"] and row["sampling_event"], row
    job = c.start_job()
    time.sleep(1)
    before = {pid: Rank(pid).all() for pid in c.ranks}
    report, verdict = cluster.profile_again(lambda: profile_of_divisions(c, kernel_too), is_known)
    print(f"   {c.person.name}: {report['accounting']['kept']} samples, kernel included: {kernel_too}; {verdict['bound']} {figures_of(verdict)}; "
          f"{verdict['cost']['shadows']} shadows on {verdict['ranks_measured']} ranks")
    assert report["injection"]["cost"]["shadows"] > 0, report["injection"]
    for pid in c.ranks:
        unaltered(before[pid], Rank(pid).all())
    c.ends_right(job)


@pytest.mark.small
def test_an_own_job_without_root():
    with made_user() as person, setting(PARANOID, 2) as at_two, Own(person) as c:
        level = 2 if at_two else int(PARANOID.read_text())
        if level > 2:
            pytest.skip(f"kernel.perf_event_paranoid is {level} and cannot be set")
        profile_own_job(c, level < 2)


class Altered:
    """A job of a person with a jump of ours in it."""

    def __init__(self, c):
        self.c = c
        c.start_agents()
        self.job = c.start_job()
        time.sleep(1)
        self.before = {pid: Rank(pid).all() for pid in c.ranks}
        self.profile = c.submit("--command", "fleet", "--duration", "20s", "--variants", "LS,FP,NO_DIV", "--overhead", "20%")
        c.wait_state(self.profile, ("INJECTING",), 30)
        wait_until(self.texts, 15, "a jump is in a rank", 0.01)

    def texts(self):
        """Of these ranks the text is not as before."""
        return {pid for pid in self.c.ranks if Rank(pid).text() != self.before[pid]["text"]}

    def is_as_before(self, seconds):
        def found():
            each = {pid: differences(self.before[pid], Rank(pid).all()) for pid in self.c.ranks}
            return {pid: what for pid, what in each.items() if what}
        end = time.monotonic() + seconds
        while found() and time.monotonic() < end:
            time.sleep(0.05)
        promised(not found(), (found(), self.c.log("agent-all")))

    def kill_agent(self):
        """Itself, not its mpirun."""
        (pid,) = [pid for pid in processes_of(self.c.person)
                  if command_line(pid).endswith(b"/perf-agent\0--user-mode\0") and b"mpirun" not in command_line(pid)]
        os.kill(pid, signal.SIGKILL)
        self.c.agents["all"].wait(15)

    def stop_a_rank(self):
        (rank, *_) = self.texts()
        os.kill(rank, signal.SIGSTOP)
        return rank


def test_mpirun_ends_its_agent_in_mid_measurement():
    """mpirun gives a program that it ends a second: then it kills. The ranks are as they were, and run on."""
    with made_user() as person, Own(person) as c:
        altered = Altered(c)
        c.agents["all"].terminate()
        c.agents["all"].wait(15)
        altered.is_as_before(8)
        c.ends_right(altered.job)


@pytest.mark.small
def test_an_agent_that_is_killed():
    """Nobody starts it again: a process that outlives it takes its jumps out, and then ends as well."""
    with made_user() as person, Own(person) as c:
        altered = Altered(c)
        altered.kill_agent()
        altered.is_as_before(8)
        check_ends(person, b"--after-agent")
        c.ends_right(altered.job)


def test_a_killed_agent_and_a_rank_that_stands_still():
    """What its owner has stopped is left in peace, and mended when it runs again."""
    with made_user() as person, Own(person) as c:
        altered = Altered(c)
        rank = altered.stop_a_rank()
        altered.kill_agent()
        time.sleep(3)
        assert rank in altered.texts() and pathlib.Path(f"/proc/{rank}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
        os.kill(rank, signal.SIGCONT)
        altered.is_as_before(12)
        check_ends(person, b"--after-agent")
        c.ends_right(altered.job)


def test_the_next_agent_takes_over_from_what_outlived_the_last():
    """Also while that waits for a rank that stands still: an agent that starts has the journals, and mends."""
    with made_user() as person, Own(person) as c:
        altered = Altered(c)
        rank = altered.stop_a_rank()
        altered.kill_agent()
        assert c.perfctl("cancel", altered.profile).returncode == 0  # else the next agent goes on with it
        time.sleep(14)  # it waits longer and longer, by now for half a minute
        c.start_agents()
        os.kill(rank, signal.SIGCONT)
        altered.is_as_before(12)
        c.ends_right(altered.job)


def test_a_number_without_a_name():
    """As in many containers: the user has a number, and no entry in any list of people."""
    with Own(Person(NUMBER, NUMBER, "somebody")) as c:
        c.start_agents()
        job = c.start_job()
        profile = c.submit("--command", "fleet", "--duration", "3s")
        status = c.wait_over(profile, 40)
        assert status["state"] == "DONE" and status["requester"] == {"uid": NUMBER, "name": f"uid:{NUMBER}", "privileged": True}, status
        report = c.json("report", profile)
        check_sums(report)
        assert len(report["ranks"]) == 2 and report["loops"][0]["function"] == "Divide", (report["ranks"], report["totals"])
        c.ends_right(job)


def test_a_program_under_an_agent_of_its_own():
    with Own(Person(NUMBER, NUMBER, "somebody")) as c:
        program = c.spawn("exec", [c.bin / "perf-agent", "exec", "--", c.puppets / "restless", "spin", 6])
        c.wait_connected(1)
        profile = c.submit("--command", "restless", "--duration", "30s")
        assert program.wait(40) == 0, c.log("exec")
        status = c.wait_over(profile, 30)
        assert status["state"] == "PARTIAL" and "ended" in c.notices(profile), (status, c.notices(profile))
        assert c.json("report", profile)["accounting"]["kept"] > 30
        # Every such program has a spool of its own: they would pile up.
        left = list((c.home / ".local/state/perf-agent").iterdir())
        assert left == [], (left, c.log("exec"))


def test_agents_of_several_nodes_reach_ones_own_perfd_by_tls():
    with made_user() as person, Own(person) as c:
        certs = c.home / "certs"
        made = subprocess.run([str(nodes.MAKE_CERTS), str(certs), "server", "127.0.0.1", "user", person.name], capture_output=True,
                              text=True, timeout=60, cwd=c.home, env=c.environment, **person.rights)
        assert made.returncode == 0, made
        tls = ["--tls-ca", certs / "ca.crt", "--tls-cert", certs / "server.crt", "--tls-key", certs / "server.key"]
        c.daemon.terminate()
        assert c.daemon.wait(15) == 0
        c.daemon_flags = ["--listen-tcp", "127.0.0.1:0", *tls]
        c.start_daemon()
        address = [line.split()[-1] for line in c.log("perfd").splitlines() if "mutual TLS on" in line][-1]
        own = ["--tls-ca", certs / "ca.crt", "--tls-cert", certs / f"user-{person.name}.crt", "--tls-key",
               certs / f"user-{person.name}.key"]
        for node in ("first", "second"):
            c.agents[node] = c.spawn(f"agent-{node}", [c.bin / "perf-agent", "--user-mode", "--address", address, *own, "--node", node,
                                                       "--spool-dir", c.home / f"spool-{node}"])
        c.wait_connected(2)
        assert {(n["node"], n["uid"]) for n in c.json("nodes")["nodes"]} == {("first", person.uid), ("second", person.uid)}
        job = c.start_job()
        profile = c.submit("--pid", c.ranks[0], "--node", "second", "--duration", "2s")
        assert c.wait_over(profile, 30)["state"] == "DONE"
        assert [r["node"] for r in c.json("report", profile)["ranks"]] == ["second"]
        # Without --user-mode nobody but a node's own certificate will do.
        bold = subprocess.run(["timeout", "8", c.bin / "perfctl", "--address", address, "version"], capture_output=True, text=True,
                              timeout=20, cwd=c.home, env={**c.environment, "PERFD_ADDRESS": ""}, **person.rights)
        assert bold.returncode != 0, bold
        c.ends_right(job)


class TestLevels:
    """What the kernel's settings allow, by the agent's own words."""

    @pytest.fixture(scope="class")
    def own(self):
        with made_user() as person, Own(person) as c:
            yield c

    @staticmethod
    def doctor(c):
        return subprocess.run([c.bin / "perf-agent", "--user-mode", "doctor"], capture_output=True, text=True, timeout=30,
                              cwd=c.home, env=c.environment, **c.person.rights).stdout

    @pytest.mark.parametrize("level", (-1, 0, 1, 2, 3))
    def test_of_perf_events(self, own, level):
        with setting(PARANOID, level) as done:
            if not done:
                pytest.skip(f"kernel.perf_event_paranoid={level} cannot be set here")
            said = self.doctor(own)
        rows = {line.split(None, 1)[1].split("  ")[0].strip(): line for line in said.splitlines() if line[:1] not in (" ", "")}
        clock = next(line for name, line in rows.items() if name.startswith("perf_event_open cpu-clock"))
        print(f"   kernel.perf_event_paranoid={level}: {' '.join(clock.split())}")
        if level <= 1:
            assert clock.startswith("ok") and "kernel included" in clock, said
        elif level == 2:
            assert clock.startswith("ok") and "user only" in clock, said
        else:  # Debian's kernels know a third level that forbids it; others take it for the second
            assert "user only" in clock or clock.startswith("MISSING"), said
        if level > 1:
            assert "sysctl -w kernel.perf_event_paranoid=1" in said, said

    @pytest.mark.parametrize("level,words", ((0, "possible: variants"), (1, "stop no process that it did not start")))
    def test_of_ptrace(self, own, level, words):
        if not YAMA.exists():
            pytest.skip("no Yama in this kernel")
        with setting(YAMA, level) as done:
            if not done:
                pytest.skip(f"kernel.yama.ptrace_scope={level} cannot be set here")
            said = self.doctor(own)
        assert words in said, said


# ---- without ----------------------------------------------------------------------------------------------------

def test_without_perf_permission():
    with made_user() as person, Own(person, before_agent=forbid_perf) as c:
        c.start_agents()
        row = c.json("nodes")["nodes"][0]
        assert row["sampling_event"] == "", row
        job = c.start_job()
        run = c.perfctl("submit", "--command", "fleet", "--duration", "3s", "--watch")
        assert run.returncode == 4 and "kernel.perf_event_paranoid" in run.stderr + run.stdout, run
        profile = c.json("list")["profiles"][0]
        assert profile["state"] == "FAILED", profile
        assert "kernel.perf_event_paranoid" in c.notices(profile["id"]), c.notices(profile["id"])
        doctor = c.perfctl("doctor")
        assert doctor.returncode == 1 and "sysctl -w kernel.perf_event_paranoid=1" in doctor.stdout, doctor
        c.ends_right(job)


def test_the_processes_of_others_are_theirs():
    with made_user() as person, Own(person) as c:
        c.start_agents()
        roots = Cluster.spawn(c, "roots", [PUPPETS / "restless", "spin", 60])
        for target in (["--pid", roots.pid], ["--command", "restless"]):
            run = c.perfctl("submit", *target, "--duration", "3s", "--watch")
            text = run.stdout + run.stderr
            assert run.returncode in (3, 4) and "root" in text and "belong" in text, (target, run)
        for profile in c.json("list")["profiles"]:
            assert profile["state"] == "FAILED", profile
        # Nor can others use what is one's own: a stranger does not reach it, and root's wish is not this agent's command.
        stranger = c.perfctl("list", "--json", user="nobody", group="nogroup", extra_groups=[])
        assert stranger.returncode != 0 and str(c.socket) in error_of(stranger), stranger
        own = c.spawn("own", [c.puppets / "restless", "spin", 20])
        root = {"user": 0, "group": 0, "extra_groups": []}
        run = c.perfctl("submit", "--pid", own.pid, "--duration", "2s", "--json", **root)
        assert run.returncode == 4 and f"--daemon-uid {person.uid}" in error_of(run), run
        run = c.perfctl("submit", "--pid", own.pid, "--duration", "2s", "--json", "--daemon-uid", person.uid, **root)
        if run.returncode == 0:
            profile = json.loads(run.stdout)["id"]
            status = c.wait_over(profile, 30)
            assert status["state"] == "FAILED" and "only its own user" in c.notices(profile), status
        else:
            assert "other users" in error_of(run), run
        assert roots.poll() is None
        roots.terminate()


if __name__ == "__main__":
    cluster.pytest_file(__file__)
