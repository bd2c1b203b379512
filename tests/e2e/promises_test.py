#!/usr/bin/env python3
"""The promises to the owner of the job (docs/security.md), each with a test that tries to break it: agents that die or hang
while they alter a rank, many profiles in a row, an agent that never comes back, a switch that stops it all."""
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import cluster
from cluster import BIN, Cluster, PUPPETS, wait_until
from variants_test import plain, steps_for

KERNEL = PUPPETS / "kernels_gcc_O2"
# More with PERFD_KILLS and PERFD_PROFILES (docs/benchmarks.md has the long runs).
KILLS = int(os.environ.get("PERFD_KILLS", "8"))
PROFILES = int(os.environ.get("PERFD_PROFILES", "10"))


class Rank:
    """A process as its owner left it: text, mappings, descriptors, children, signal handlers."""

    def __init__(self, pid):
        self.pid = pid

    def text(self):
        digest = hashlib.sha256()
        with open(f"/proc/{self.pid}/mem", "rb") as memory:
            for line in pathlib.Path(f"/proc/{self.pid}/maps").read_text().splitlines():
                fields = line.split(maxsplit=5)
                if fields[1] != "r-xp" or len(fields) < 6 or fields[5].startswith("["):
                    continue
                low, high = (int(x, 16) for x in fields[0].split("-"))
                memory.seek(low)
                digest.update(memory.read(high - low))
        return digest.hexdigest()

    def maps(self):
        # The heap and the stacks may grow; the rest is as it was.
        lines = pathlib.Path(f"/proc/{self.pid}/maps").read_text().splitlines()
        return sorted(line for line in lines if "[heap]" not in line and "[stack]" not in line)

    def fds(self):
        return sorted(os.listdir(f"/proc/{self.pid}/fd"))

    def children(self):
        return "".join((task / "children").read_text() for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir())

    def signals(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return [line for line in status if line.startswith(("SigBlk", "SigIgn", "SigCgt", "TracerPid"))]

    def all(self):
        return {"text": self.text(), "maps": self.maps(), "fds": self.fds(), "children": self.children(),
                "signals": self.signals()}


def differences(before, after):
    found = []
    for key, value in before.items():
        if after[key] == value:
            continue
        if isinstance(value, list):
            found.append((key, sorted(set(value) ^ set(after[key]))))
        else:
            found.append((key, value, after[key]))
    return found


class Job:
    """A kernel of two threads in a cluster, and what it computes alone."""

    def __init__(self, c, seconds, kernel="triad", n=20_000, threads=2):
        self.arguments = (KERNEL, kernel, n, steps_for(KERNEL, kernel, n, threads, seconds), threads)
        self.c = c
        self.process = c.spawn("job", self.arguments, env={"OMP_WAIT_POLICY": "passive"})
        time.sleep(0.5)
        self.rank = Rank(self.process.pid)
        self.before = self.rank.all()

    def ends_right(self, seconds=200):
        assert self.process.wait(seconds) == 0, self.c.log("job")
        shown = json.loads(self.c.log("job").splitlines()[-1])
        assert shown["checksum"] == plain(*self.arguments)["checksum"], shown


def heal(c, *arguments):
    return subprocess.run([str(BIN / "perf-agent"), "--spool-dir", str(c.dir / "spool-node1"), "heal", *map(str, arguments)],
                          capture_output=True, text=True, timeout=60)


def submit(c, job, duration):
    return c.submit("--pid", job.process.pid, "--node", "node1", "--duration", duration, "--variants", "LS,FP,DL1",
                    "--overhead", "30%")


def shadows_of(report):
    return sum(v["cost"]["shadows"] for v in report["verdicts"])


def test_many_profiles_in_a_row_leave_nothing():
    with Cluster() as c:
        job = Job(c, 4 * PROFILES + 5)
        shadows = 0
        for _ in range(PROFILES):
            profile = submit(c, job, "3s")
            c.wait_over(profile, 30)
            shadows += shadows_of(c.json("report", profile))
        assert shadows >= 2 * PROFILES, shadows
        assert differences(job.before, job.rank.all()) == []
        job.ends_right()


def test_agents_that_are_killed_at_any_instant():
    chance = random.Random(7)
    with Cluster() as c:
        job = Job(c, 3.2 * KILLS + 10)
        shadows = 0
        for _ in range(KILLS):
            profile = submit(c, job, "4s")
            time.sleep(chance.uniform(0.9, 2.2))
            agent = c.agents["node1"]
            agent.kill()
            agent.wait(10)
            assert "R" in status_of(job) or "S" in status_of(job), status_of(job)
            c.start_agent("node1")
            c.perfctl("cancel", profile)
            c.wait_over(profile, 30)
        # Nobody is left who would take it out: the next agent has, or heal does.
        run = heal(c, "--all")
        assert run.returncode == 0, run.stderr
        assert differences(job.before, job.rank.all()) == []
        job.ends_right()


def status_of(job):
    return pathlib.Path(f"/proc/{job.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_agents_that_hang_do_not_hold_the_job():
    chance = random.Random(8)
    with Cluster() as c:
        job = Job(c, 28)
        for _ in range(4):
            profile = submit(c, job, "4s")
            time.sleep(chance.uniform(0.9, 1.8))
            agent = c.agents["node1"]
            agent.send_signal(signal.SIGSTOP)
            before = cpu_of(job)
            time.sleep(2)
            # Two threads that compute: at least one second of CPU time in two seconds, whatever the agent held.
            assert cpu_of(job) - before > 0.8, cpu_of(job) - before
            agent.send_signal(signal.SIGCONT)
            c.wait_over(profile, 40)
        assert heal(c, "--all").returncode == 0
        assert differences(job.before, job.rank.all()) == []
        job.ends_right()


def cpu_of(job):
    fields = pathlib.Path(f"/proc/{job.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_heal_restores_without_agent_and_daemon():
    with Cluster() as c:
        job = Job(c, 40)
        for attempt in range(20):
            profile = submit(c, job, "6s")
            wait_until(lambda: job.rank.text() != job.before["text"] or over(c, profile), 20, "the jump is in", 0.002)
            if job.rank.text() != job.before["text"]:
                break
        c.agents["node1"].kill()
        c.agents["node1"].wait(10)
        c.daemon.kill()
        assert job.rank.text() != job.before["text"], "the agent was quicker"
        run = heal(c, job.process.pid)
        assert run.returncode == 0 and "restored" in run.stdout, (run.stdout, run.stderr)
        assert differences(job.before, job.rank.all()) == []
        assert "nothing" in heal(c, job.process.pid).stdout
        job.ends_right()


def over(c, profile):
    return c.json("status", profile)["state"] in ("DONE", "PARTIAL", "FAILED", "CANCELLED")


def test_the_disable_file_stops_everything():
    with Cluster(nodes=()) as c:
        switch = c.dir / "no-injection"
        switch.write_text("")
        c.start_agent("node1", ["--disable-file", str(switch)])
        c.wait_connected(1)
        job = Job(c, 16)
        profile = submit(c, job, "4s")
        c.wait_over(profile, 30)
        report = c.json("report", profile)
        assert shadows_of(report) == 0 and "no-injection" in json.dumps(report["status"]["notices"]), report["status"]
        switch.unlink()
        profile = submit(c, job, "3s")
        c.wait_over(profile, 30)
        assert shadows_of(c.json("report", profile)) > 0
        job.ends_right()


if __name__ == "__main__":
    cluster.run_tests(sys.modules[__name__], retries=0)
