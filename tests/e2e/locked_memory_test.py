#!/usr/bin/env python3
"""A user's process whose memory nobody can read: whoever tries waits until a file system answers that never does. Other users'
profiles begin as ever, the agent ends when it is told to, with the other ranks restored, and the next one starts."""
import contextlib
import json
import os
import subprocess
import time

import pytest

import cluster
from admission_test import ALICE, BOB, RESTLESS, as_user
from cluster import Cluster, PUPPETS, promised, promised_within, wait_until
from dead_files import DeadFiles
from promises_test import Rank, program_of

LOCKED = PUPPETS / "locked"
FIRST_SAMPLE_S = 2
STOP_S = 20  # TimeoutStopSec of deploy/systemd/perf-agent.service.in
# When told to, reads the mapping through /proc, and holds the lock of the address space while it waits.
READER = "import os, sys; sys.stdin.readline(); os.pread(os.open(f'/proc/{sys.argv[1]}/mem', os.O_RDONLY), 8, int(sys.argv[2], 16))"
VARIANTS = ("--variants", "LS,FP,CTRL,NO_DIV", "--overhead", "2%")

pytestmark = [pytest.mark.skipif(not LOCKED.exists(), reason="the puppet is not built"),
              pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it starts programs of other users")]


class Lockable:
    """A process of ALICE."""

    def __init__(self, c, file):
        self.c = c
        self.process = c.spawn("locked", as_user(ALICE, LOCKED, file))
        self.pid = self.process.pid
        self.mapping = wait_until(lambda: c.log("locked").strip(), 10, "it has mapped the file")
        self.rank = Rank(self.pid)
        self.own_text = self.rank.text(str(LOCKED))
        told, self.tell = os.pipe()
        subprocess.Popen(list(map(str, as_user(ALICE, "/usr/bin/python3", "-c", READER, self.pid, self.mapping))), stdin=told,
                         stderr=subprocess.DEVNULL)
        os.close(told)

    def lock(self):
        """Quickly: it may be altered just now."""
        os.write(self.tell, b"now\n")
        time.sleep(0.01)
        wait_until(self.asks_and_blocks, 20, "its readers wait")

    def asks_and_blocks(self):
        self.process.send_signal(10)
        return self.blocks()

    def blocks(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(["cat", f"/proc/{self.pid}/cmdline"], timeout=0.5, capture_output=True, check=False)
            return False
        return True

    def altered(self):
        return self.rank.text(str(LOCKED)) != self.own_text


def restless(c, **environment):
    process = c.spawn("restless", as_user(BOB, RESTLESS, "spin", 300), env=environment)
    wait_until(lambda: program_of(process.pid) == str(RESTLESS), 10, "it runs", 0.01)
    return process


def submit(c, uid, *arguments):
    environment = {"PERFD_ADDRESS": f"unix:{c.socket}", "PATH": os.environ["PATH"], "HOME": "/"}
    command = [cluster.BIN / "perfctl", "submit", *arguments, "--variants", "none"]
    run = subprocess.run(as_user(uid, *command, "--json"), capture_output=True, text=True, timeout=60, env=environment,
                         check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["id"]


@pytest.mark.promise
def test_others_are_profiled_as_ever():
    with Cluster() as c, DeadFiles(c.dir / "files", ALICE) as file:
        locked = Lockable(c, file)
        job = restless(c, SLURM_JOB_ID="77")
        locked.lock()
        own = submit(c, ALICE, "--pid", locked.pid, "--duration", "3s")
        for arguments in (("--command", "restless"), ("--pid", job.pid)):
            profile = submit(c, BOB, *arguments, "--duration", "2s")
            status = c.wait_over(profile, 30)
            promised(status["state"] == "DONE", status)
            promised(status["submit_to_first_sample_ns"] < FIRST_SAMPLE_S * 1e9, status)
        # Root's profile of a job reads every process.
        profile = c.submit("--slurm-job", 77, "--duration", "2s")
        status = c.wait_over(profile, 30)
        assert [r["pid"] for r in c.json("report", profile)["ranks"]] == [job.pid], c.json("report", profile)
        assert f"left out: {locked.pid}" in str(status["notices"]), status
        status = c.wait_over(own, 30)
        assert status["state"] == "FAILED" and f"process {locked.pid} does not answer" in str(status["notices"]), status
        promised(locked.blocks(), "it is locked still")


@pytest.mark.promise
def test_the_agent_ends_with_the_others_restored_and_the_next_one_starts():
    with Cluster() as c:
        with DeadFiles(c.dir / "files", ALICE) as file:
            locked = Lockable(c, file)
            job = Rank(restless(c).pid)
            own_text = job.text(str(RESTLESS))
            c.submit("--pid", locked.pid, "--duration", "60s", *VARIANTS)
            wait_until(locked.altered, 20, "it is altered", 0.001)
            locked.lock()
            c.submit("--pid", job.pid, "--duration", "8s", *VARIANTS)
            wait_until(lambda: job.text(str(RESTLESS)) != own_text, 20, "the other one is altered", 0.001)
            begin = time.monotonic()
            c.agents["node1"].terminate()
            try:
                c.agents["node1"].wait(STOP_S)
            except subprocess.TimeoutExpired as error:
                raise cluster.Broken("the agent does not end") from error
            left = list((c.dir / "spool-node1-journal").glob(f"{locked.pid}-*"))
            print(f"   it took {time.monotonic() - begin:.1f} s; the locked one {'is' if left else 'is not'} altered")
            promised(job.text(str(RESTLESS)) == own_text, "the other rank is as it was")
            c.start_agent("node1")
            c.wait_connected(1)
            promised(locked.blocks(), "it is locked still")
        promised_within(lambda: not locked.altered(), 90, "the rank is restored when it can be read again")


if __name__ == "__main__":
    cluster.pytest_file(__file__)
