#!/usr/bin/env python3
"""Days on which a rank changes under the hands of its measurement: libraries that are closed and replaced by others at the same
place, control groups that are nearly full. Each time the rank computes what it should, and the report says why."""
import contextlib
import json
import pathlib
import time

import pytest

import cluster
from cluster import Cluster, PUPPETS, ended_well, promised, wait_until
from promises_test import Rank, KERNEL, unaltered

RELOADING = PUPPETS / "reloading"
LIBRARIES = [PUPPETS / "reloaded_plus.so", PUPPETS / "reloaded_minus.so"]
GROUPS = pathlib.Path("/sys/fs/cgroup")

pytestmark = pytest.mark.skipif(not RELOADING.exists(), reason="the puppet is not built")


def reasons(report):
    found = {}
    for verdict in report["verdicts"]:
        for rank in verdict.get("ranks", []):
            found.setdefault(rank["state"], set()).add(rank.get("reason", ""))
    return found


def test_libraries_that_take_each_others_place(c):
    """The loops of both begin with the same bytes: a jump that is written for one must never be met by the other."""
    job = c.spawn("job", [RELOADING, *LIBRARIES])
    time.sleep(0.5)
    rank = Rank(job.pid)
    own = rank.text(str(RELOADING))
    audit = []
    for overhead in ("2%", "30%", "50%"):
        profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "10s", "--variants", "LS,FP,DL1",
                           "--overhead", overhead)
        status = c.wait_over(profile, 60)
        assert status["state"] == "DONE", status
        report = c.json("report", profile)
        audit += c.json("audit", profile)["entries"]
        print(f"   {overhead}: {reasons(report)}")
    promised(rank.text(str(RELOADING)) == own, "the program's own text")
    job.terminate()
    ended_well(job, 30, lambda: c.log("job"))
    shown = json.loads(c.log("job").splitlines()[-1])
    done = {action: sum(e["action"] == action and e["outcome"] == "ok" for e in audit)
            for action in ("install", "shadow", "restore")}
    print("  ", shown, done)
    promised(shown["wrong"] == 0, shown)
    assert shown["same_place"] > shown["loads"] / 2, shown
    assert done["install"] > 0, audit


@contextlib.contextmanager
def control_group(pid, controller, names, limit):
    """A group of this process alone with that limit, whose file is one of these, by version. None: none can be made here."""
    old = GROUPS / controller
    group = (old if old.exists() else GROUPS) / f"perfd-test-{pid}"
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        (group / "cgroup.procs").write_text(str(pid))
        file = group / names[0 if old.exists() else 1]
        if file.exists():
            file.write_text(str(limit))  # what was there before is not the group's: the limit alone is what counts
        yield group if file.exists() else None
    finally:
        with contextlib.suppress(OSError):
            (group.parent / "cgroup.procs").write_text(str(pid))
        wait_until(lambda: not (group / "cgroup.procs").read_text().strip(), 20, "the group is empty", 0.1)
        group.rmdir()


def refused_in_a_group(controller, names, limit, why):
    """No shadow is made of a rank whose control group has so little room, nothing is left in it, and it computes on."""
    with Cluster() as c:
        job = c.spawn("job", [KERNEL, "triad", 400_000, 0, 2], env={"OMP_WAIT_POLICY": "passive"})
        time.sleep(0.5)
        before = Rank(job.pid).all()
        with control_group(job.pid, controller, names, limit) as group:
            if group is None:
                pytest.skip(f"no group with a limit of {controller} can be made here")
            profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "4s", "--variants", "LS,FP,DL1")
            status = c.wait_over(profile, 60)
            assert status["state"] == "DONE", status
            report = c.json("report", profile)
            audit = c.json("audit", profile)["entries"]
        print("  ", reasons(report))
        assert why in json.dumps(report["verdicts"]), report["verdicts"]
        assert not [e for e in audit if e["action"] == "shadow" and e["outcome"] == "ok"], audit
        unaltered(before, Rank(job.pid).all())
        job.terminate()
        ended_well(job, 30, lambda: c.log("job"))


def test_a_memory_group_that_is_nearly_full():
    refused_in_a_group("memory", ("memory.limit_in_bytes", "memory.max"), 256 << 10, "control group has used")


def test_a_group_that_may_begin_few_more_threads():
    """A shadow would take what the job needs for its own."""
    refused_in_a_group("pids", ("pids.max", "pids.max"), 10, "pids.max of its control group allows 10")


if __name__ == "__main__":
    cluster.pytest_file(__file__)
