#!/usr/bin/env python3
"""A program that goes from one hot loop to another while one loop at a time is measured: the first gives its place to the
second, both keep their figures, shares are those of the whole profile, and the program's results and text are what they
were."""
import json

import pytest

import cluster
from cluster import Cluster, PUPPETS, wait_until

PROGRAM = PUPPETS / "phases"
FIRST_S, ALL_S, PROFILE_S = 17, 56, 48

JOB = """
apiVersion: perfd/v1
kind: Profile
target: {{ pids: [{pid}] }}
duration: {seconds}s
budget: {{ overhead: 20% }}
hotspots: {{ max_loops: 1 }}
variants: {{ set: [LS, FP, NO_DIV] }}
"""

pytestmark = [pytest.mark.only_calm,
              pytest.mark.skipif(not PROGRAM.exists(), reason="the puppet is not built")]


def text_of(pid):
    """The program's own code, as it is in its memory."""
    code = b""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, mode, *rest = line.split()
            if "x" in mode and rest[-1].endswith("/phases"):
                low, high = (int(end, 16) for end in span.split("-"))
                memory.seek(low)
                code += memory.read(high - low)
    assert code
    return code


def test_the_loop_of_the_next_phase_is_measured_too():
    with Cluster() as c:
        job = c.spawn("job", [PROGRAM, FIRST_S, ALL_S])
        before = wait_until(lambda: cluster.ranks_of("phases") and text_of(job.pid), 10, "the job runs")
        file = c.dir / "job.yaml"
        file.write_text(JOB.format(pid=job.pid, seconds=PROFILE_S))
        profile = c.submit(file, "--variants", "LS,FP,NO_DIV")
        status = c.wait_over(profile, PROFILE_S + 30)
        report = c.json("report", profile)
        audit = c.json("audit", profile)["entries"]
        cluster.promised(text_of(job.pid) == before, "its text")
        cluster.ended_well(job, 60, lambda: c.log("job"))
        cluster.promised(json.loads(c.log("job").splitlines()[-1])["wrong"] == 0, c.log("job"))
    assert status["state"] == "DONE", status
    lines = cluster.marked_lines(cluster.pathlib.Path(__file__).resolve().parents[1] / "puppets/phases.c")
    rows = {}
    for name in ("triad", "divide"):
        low, high = lines[name]
        rows[name] = max((r for r in report["loops"] if low <= r["first_line"] <= high), key=lambda r: r["share"])
    verdicts = {name: v for name, row in rows.items() for v in report["verdicts"] if v["loop_id"] == row["id"]}
    assert set(verdicts) == {"triad", "divide"}, report["verdicts"]
    for name, verdict in verdicts.items():
        print(f"   {name}: share {rows[name]['share']:.2f}, {verdict['state']}, {verdict['cost']['shadows']} shadows")
        assert verdict["variants"], verdict
        assert 0.15 < rows[name]["share"] < 0.85, rows[name]
    of = {name: [e for e in audit if e["loop"] == rows[name]["id"]] for name in rows}
    # On a busy machine a stop may fail and be tried again.
    mapped = [e for e in audit if e["action"] == "map" and e["outcome"] == "ok"]
    assert len(mapped) == 2, mapped  # the second loop came later
    # One loop at a time: nothing was done to the first any more once the second had its place.
    last_of_first = max(e["unix_ns"] for e in of["triad"])
    installed = min(e["unix_ns"] for e in of["divide"] if e["action"] == "install" and e["outcome"] == "ok")
    assert last_of_first < installed, (of["triad"], of["divide"])


if __name__ == "__main__":
    cluster.pytest_file(__file__)
