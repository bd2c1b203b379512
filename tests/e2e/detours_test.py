#!/usr/bin/env python3
"""A loop whose rare paths call functions and throw exceptions, measured while it runs: the stretches between them get a
verdict, the report says what was left out, and the program computes, calls and catches exactly what it does alone."""
import json
import signal
import subprocess

import pytest

import cluster
from cluster import Cluster, PUPPETS

PROGRAM = PUPPETS / "detours"

pytestmark = [pytest.mark.only_calm,
              pytest.mark.skipif(not PROGRAM.exists(), reason="the puppet is not built")]


@pytest.mark.small
def test_rare_calls_and_exceptions_are_left_out():
    with Cluster() as c:
        job = c.spawn("job", [PROGRAM, 4000])
        profile = c.submit("--pid", job.pid, "--duration", "12s", "--variants", "LS,FP,NO_DIV", "--overhead", "20%")
        c.wait_over(profile, 60)
        report = c.json("report", profile)
        text = c.perfctl("report", profile).stdout
        job.send_signal(signal.SIGTERM)
        cluster.ended_well(job, 30, lambda: c.log("job"))
        seen = json.loads(c.log("job").splitlines()[-1])
        audit = c.json("audit", profile)
    alone = json.loads(subprocess.run([PROGRAM, "4000", str(seen["steps"])], capture_output=True, text=True, timeout=120,
                                      check=True).stdout)
    cluster.promised(seen == alone, (seen, alone))
    assert seen["tallies"] > 0 and seen["caught"] > 0 and seen["left"] > 0, seen
    # The loop around it is hot with it, and refused.
    innermost = {row["id"] for row in report["loops"] if row["loop"]["innermost"]}
    loop = max((v for v in report["verdicts"] if v["loop_id"] in innermost), key=lambda v: v["share"])
    assert loop["state"] == "measured", loop["refusals"]
    assert any("left out" in remark and "call" in remark for remark in loop["remarks"]), loop["remarks"]
    assert "left out" in text, text
    value = {v["variant"]: v["saturation"]["value"] for v in loop["variants"]}
    print(f"   {value}, trip counts {loop['ranks'][0]['trip_deciles']}")
    # Two divisions a pass, of 4 cycles at least; all the rest fits into as many.
    assert 0 < value["NO_DIV"] < 0.75, value
    # Between two detours lie at most 997 passes.
    assert 4 <= loop["ranks"][0]["trip_deciles"][-1] <= 997, loop["ranks"][0]["trip_deciles"]
    # The text was altered at the header and nowhere else, and put back.
    assert {e["action"] for e in audit["entries"]} >= {"install", "restore"}, audit


if __name__ == "__main__":
    cluster.pytest_file(__file__)
