#!/usr/bin/env python3
"""Profiles without a duration: they last until perfd knows, or until nothing more is to be learnt, and say why they ended."""
import json

import pytest

import cluster
from cluster import Cluster, PUPPETS

LEAST = 20  # seconds; of any such profile


def submit(c, job, *arguments):
    return c.submit("--pid", job.pid, *arguments)


def ended(c, profile, seconds):
    status = c.wait_over(profile, seconds)
    print("  ", {key: status[key] for key in ("state", "end", "used_ns", "loops")})
    assert status["until_known"] and status["end"], status
    assert c.json("report", profile)["status"]["end"] == status["end"], "the report says the same"
    return status


@pytest.mark.small
def test_shares_that_are_known_end_it_and_a_command_is_run():
    with Cluster() as c:
        c.spawn("job", [PUPPETS / "calling", 70])
        cluster.wait_until(lambda: cluster.ranks_of("calling"), 10, "the puppet runs")
        run = c.perfctl("submit", "--command", "calling", "--variants", "none", "--watch", "--on-done",
                        f'echo "$PERFD_PROFILE $PERFD_STATE $PERFD_END" >{c.dir}/done', timeout=90)
        assert run.returncode == 0, run
        assert "hot loops known" in run.stderr, run.stderr
        profile = json.loads(c.perfctl("list", "--json").stdout)["profiles"][0]["id"]
        status = ended(c, profile, 5)
        assert status["end"] == "known" and LEAST * 1e9 <= status["used_ns"] < 60e9, status
        assert status["loops"]["known"] == status["loops"]["hot"] > 0, status
        assert (c.dir / "done").read_text().split() == [profile, "DONE", "known"]
        text = c.perfctl("status", profile).stdout
        assert "every hot loop is known" in text and "at most 10m" in text, text


@pytest.mark.small
def test_a_job_that_ends_in_the_middle_ends_it():
    with Cluster() as c:
        job = c.spawn("job", [PUPPETS / "calling", 8])
        cluster.wait_until(lambda: cluster.ranks_of("calling"), 10, "the puppet runs")
        status = ended(c, submit(c, job), 60)
        assert status["end"] == "ranks_ended" and status["asked_ns"] == 600e9, status
        assert job.wait(10) == 0


def test_loops_that_are_known_end_it():
    """All variants of all hot loops, long before the maximum."""
    with Cluster() as c:
        job = c.spawn("job", [PUPPETS / "calling", 200])
        cluster.wait_until(lambda: cluster.ranks_of("calling"), 10, "the puppet runs")
        status = ended(c, submit(c, job, "--variants", "LS,FP", "--overhead", "20%", "--max-duration", "3m"), 220)
        verdicts = c.json("report", "last")["verdicts"]
        assert status["end"] == "known", (status, verdicts)
        assert {v["state"] for v in verdicts} <= {"measured", "refused"}, verdicts


def test_a_job_that_idles_is_not_waited_for_until_the_maximum():
    with Cluster() as c:
        job = c.spawn("job", ["sleep", 400])
        status = ended(c, submit(c, job), 200)
        assert status["end"] == "nothing_learnt", status
        assert job.poll() is None
        job.kill()
        job.wait(10)


def test_an_agent_that_is_killed_does_not_hold_it():
    with Cluster() as c:
        job = c.spawn("job", [PUPPETS / "calling", 200])
        cluster.wait_until(lambda: cluster.ranks_of("calling"), 10, "the puppet runs")
        profile = submit(c, job)
        cluster.wait_until(lambda: c.json("status", profile)["samples"] > 0, 20, "samples come")
        c.agents["node1"].kill()
        c.agents["node1"].wait(10)
        status = ended(c, profile, 150)
        assert status["state"] == "PARTIAL" and status["end"] == "nodes_lost", status
        job.kill()
        job.wait(10)


if __name__ == "__main__":
    cluster.pytest_file(__file__)
