#!/usr/bin/env python3
"""A job of another scheduler, without Slurm: the hook is told of it before it runs, agents wait for its program, and its end ends the
profile. Also: nothing runs, several steps, perfd restarted while a job is waited for, its user ends the profile."""
import os
import sys
import time

import pytest

import cluster
from cluster import Cluster

BUSY = "import time; end = time.monotonic() + {}\nwhile time.monotonic() < end: sum(range(10000))"
POLICY = "every: 1\nwait: 60s\npresets: { default: { duration: 20s, variants: { set: [] } } }\n"


class Hook:
    def __init__(self, c):
        self.c = c

    def call(self, call, job, *arguments):
        run = self.c.perfctl("hook", call, "--job", job, "--user", os.geteuid(), "--node", "node1", "--timeout", "5s", *arguments)
        assert run.returncode == 0 and not run.stdout, run
        return run.stderr

    def record(self, job):
        jobs = self.c.json("hook", "list")["jobs"]
        return next((record for record in jobs if record["job"] == job), None)

    def begin(self, job):
        """The profile."""
        text = self.call("begin", job, "--nodes", "node1")
        assert not text, text
        return self.record(job)["profile"]

    def run(self, job, seconds, programs=1):
        script = "sleep 1; " + '"$0" -c "$1"; ' * programs + "sleep 0.2; true"
        return self.c.spawn(f"job-{job}", ["/bin/sh", "-c", script, sys.executable, BUSY.format(seconds)], env={"PBS_JOBID": job})


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text(POLICY)
    with Cluster(daemon_flags=["--policy", policy]) as c:
        yield c


@pytest.fixture
def hook(c):
    return Hook(c)


def notices(status):
    return [notice["text"] for notice in status["notices"]]


@pytest.mark.small
def test_a_job_from_begin_to_end(c, hook):
    profile = hook.begin("11.pbs")
    assert hook.begin("11.pbs") == profile  # another node says the same
    time.sleep(1)
    status = c.json("status", profile)
    assert status["state"] == "DISCOVERING", status
    job = hook.run("11.pbs", 4, programs=2)
    c.wait_state(profile, ("SAMPLING",), 10)
    job.wait(30)
    assert job.returncode == 0
    assert not hook.call("end", "11.pbs")
    begin = time.monotonic()
    status = c.wait_over(profile, 15)
    assert status["state"] == "DONE", status
    assert time.monotonic() - begin < 12
    report = c.json("report", profile)
    seconds = sum(rank["seconds"] for rank in report["ranks"])
    assert seconds > 0.2, report["ranks"]  # of 8 s, on a machine that may be busy with anything else
    assert any("begun by the scheduler hook for job 11.pbs: every job by policy" in text for text in notices(status)), status
    # Its programs come and go: that is said once, and is no trouble. The shell around them is none of them.
    assert any("ended" in text and "its samples are kept" in text for text in notices(status)), status["notices"]
    assert len(set(notices(status))) == len(status["notices"]), status["notices"]
    assert all(notice["severity"] == "info" for notice in status["notices"]), status["notices"]
    assert not {"sh", "dash", "bash"} & {rank["command"] for rank in report["ranks"]}, report["ranks"]


def test_a_job_that_never_runs(c, hook):
    profile = hook.begin("12.pbs")
    hook.call("end", "12.pbs")
    status = c.wait_over(profile, 15)
    assert status["state"] == "FAILED", status
    assert any("ended before a process of it was seen" in text for text in notices(status)), status


def test_its_user_ends_the_profile(c, hook):
    profile = hook.begin("13.pbs")
    job = hook.run("13.pbs", 6)
    c.wait_state(profile, ("SAMPLING",), 10)
    assert c.perfctl("cancel", profile).returncode == 0
    assert c.wait_over(profile, 15)["state"] == "CANCELLED"
    hook.call("end", "13.pbs")
    assert job.wait(30) == 0


def test_perfd_is_restarted_while_the_job_is_awaited(c, hook):
    profile = hook.begin("14.pbs")
    c.daemon.kill()
    c.daemon.wait(10)
    c.start_daemon()
    c.wait_connected(1)
    assert hook.begin("14.pbs") == profile
    job = hook.run("14.pbs", 5)
    c.wait_state(profile, ("SAMPLING",), 15)
    job.wait(30)
    hook.call("end", "14.pbs")
    status = c.wait_over(profile, 20)
    assert status["state"] == "DONE", status
    counts = c.json("hook", "list")
    assert counts["decisions"]["profile"] == 4, counts
    # The one that never ran does not count.
    assert counts["today"] == 3 and counts["active"] == 0, counts


if __name__ == "__main__":
    cluster.pytest_file(__file__)
