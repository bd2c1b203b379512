#!/usr/bin/env python3
"""Days on which a rank changes under the hands of its measurement: libraries that are closed and replaced by others at the same
place, a memory group that is nearly full. Each time the rank computes what it should, and the report says why."""
import contextlib
import json
import pathlib
import sys
import time

import cluster
from cluster import Cluster, PUPPETS, wait_until
from promises_test import Rank, KERNEL, differences

RELOADING = PUPPETS / "reloading"
LIBRARIES = [PUPPETS / "reloaded_plus.so", PUPPETS / "reloaded_minus.so"]
GROUPS = pathlib.Path("/sys/fs/cgroup")


def reasons(report):
    found = {}
    for verdict in report["verdicts"]:
        for rank in verdict.get("ranks", []):
            found.setdefault(rank["state"], set()).add(rank.get("reason", ""))
    return found


def test_libraries_that_take_each_others_place():
    """The loops of both begin with the same bytes: a jump that is written for one must never be met by the other."""
    with Cluster() as c:
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
        assert rank.text(str(RELOADING)) == own
        job.terminate()
        code = job.wait(30)
        shown = json.loads(c.log("job").splitlines()[-1])
        done = {action: sum(e["action"] == action and e["outcome"] == "ok" for e in audit)
                for action in ("install", "shadow", "restore")}
        print("  ", shown, done)
        assert code == 0 and shown["wrong"] == 0, shown
        assert shown["same_place"] > shown["loads"] / 2, shown
        assert done["install"] > 0, audit


@contextlib.contextmanager
def memory_group(pid, room):
    """A group of the process alone, in which so many bytes are left. None: no such group can be made here."""
    old = (GROUPS / "memory/memory.limit_in_bytes").exists()
    group = (GROUPS / "memory" if old else GROUPS) / f"perfd-test-{pid}"
    limit = group / ("memory.limit_in_bytes" if old else "memory.max")
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        (group / "cgroup.procs").write_text(str(pid))
        if not limit.exists():
            yield None
            return
        # Memory that was there before is not the group's: the limit alone is what counts.
        limit.write_text(str(room))
        yield group
    finally:
        with contextlib.suppress(OSError):
            (group.parent / "cgroup.procs").write_text(str(pid))
        wait_until(lambda: not (group / "cgroup.procs").read_text().strip(), 20, "the group is empty", 0.1)
        group.rmdir()


def test_a_memory_group_that_is_nearly_full():
    with Cluster() as c:
        job = c.spawn("job", [KERNEL, "triad", 400_000, 0, 2], env={"OMP_WAIT_POLICY": "passive"})
        time.sleep(0.5)
        before = Rank(job.pid).all()
        with memory_group(job.pid, 256 << 10) as group:
            if group is None:
                print("   SKIPPED: no memory group can be made here")
                return
            profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "4s", "--variants", "LS,FP,DL1")
            status = c.wait_over(profile, 60)
            assert status["state"] == "DONE", status
            report = c.json("report", profile)
            audit = c.json("audit", profile)["entries"]
        print("  ", reasons(report))
        text = json.dumps(report["verdicts"])
        assert "control group" in text or "cgroup" in text, text
        assert not [e for e in audit if e["action"] == "shadow" and e["outcome"] == "ok"], audit
        assert differences(before, Rank(job.pid).all()) == []
        job.terminate()
        assert job.wait(30) == 0, c.log("job")


if __name__ == "__main__":
    if not RELOADING.exists():
        cluster.skip("the puppet was not built")
    cluster.run_tests(sys.modules[__name__])
