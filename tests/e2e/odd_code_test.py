#!/usr/bin/env python3
"""Code that is not mapped from a file: moved to anonymous memory in the file's place, or made at run time."""
import os
import time

import pytest

import cluster
from cluster import Cluster, PUPPETS, SOURCES, wait_until

pytestmark = [
    pytest.mark.skipif(not (PUPPETS / "moved_text").exists(), reason="the puppets are not built (mpicc is missing)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: memory of other processes"),
]


@pytest.fixture(scope="module")
def c():
    with Cluster() as c:
        yield c


def text_of(pid):
    """The bytes of the executable anonymous memory of a process, by address."""
    found = {}
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            fields = line.split()
            if "x" in fields[1] and len(fields) == 5:
                low, high = (int(x, 16) for x in fields[0].split("-"))
                memory.seek(low)
                found[low] = memory.read(high - low)
    return found


def moved(c, name, *arguments):
    job = c.spawn(name, [PUPPETS / "moved_text", *arguments])
    wait_until(lambda: c.log(name).strip(), 20, "the program has moved its code")
    return job


def notices(report):
    return " | ".join(n["text"] for n in report["status"]["notices"])


def test_moved_code_is_the_files_and_is_measured(c):
    job = moved(c, "moved", 40)
    before = text_of(job.pid)
    assert before, "its code is anonymous"
    profile = c.submit("--pid", job.pid, "--duration", "15s", "--variants", "LS", "--overhead", "10%")
    c.wait_over(profile)
    report = c.json("report", profile)
    assert text_of(job.pid) == before, "its code is what it was"
    cluster.ended_well(job, 90, lambda: c.log("moved"))
    assert c.log("moved").splitlines()[-1] == "right", c.log("moved")
    shares = {}
    for name, lines in cluster.marked_lines(SOURCES / "moved_text.c").items():
        shares[name] = sum(row["share"] for row in report["loops"] if row["file"].endswith("moved_text.c")
                           and lines[0] <= row["first_line"] and row["last_line"] <= lines[1])
    print("  ", shares)
    assert 0.65 < shares["heavy"] < 0.85 and 0.15 < shares["light"] < 0.35, shares
    assert report["loops"][0]["function"] == "Heavy", report["loops"][:2]
    assert not any("moved code" in row["function"] for row in report["functions"]), report["functions"]
    assert "anonymous memory in the place" not in notices(report), notices(report)
    functions = {row["id"]: row["function"] for row in report["loops"]}
    verdicts = {functions.get(v["loop_id"]): v for v in report["verdicts"]}
    print("  ", {k: (v["state"], v.get("refusals")) for k, v in verdicts.items()})
    # On a busy host what was put in may stay open; refused it is not.
    assert verdicts["Heavy"]["state"] in ("measured", "open"), verdicts["Heavy"]
    installed = [e for e in c.json("audit", profile)["entries"] if e["action"] == "install" and e["outcome"] == "ok"]
    assert installed, c.json("audit", profile)


def test_moved_code_with_other_bytes_has_no_names(c):
    job = moved(c, "other", 12, "other")
    profile = c.submit("--pid", job.pid, "--duration", "5s", "--variants", "none")
    c.wait_over(profile)
    report = c.json("report", profile)
    cluster.ended_well(job, 60, lambda: c.log("other"))
    named = [row for row in report["functions"] if "moved code of" in row["function"]]
    assert named and named[0]["share"] > 0.9, report["functions"][:3]
    assert not any(row["function"] in ("Heavy", "Light") for row in report["loops"] + report["functions"])
    assert "its bytes are not those of the file" in notices(report), notices(report)


def made_functions(c, *arguments):
    job = c.spawn("made", [PUPPETS / "made_code", *arguments])
    time.sleep(1)
    profile = c.submit("--pid", job.pid, "--duration", "5s", "--variants", "none")
    c.wait_over(profile)
    report = c.json("report", profile)
    cluster.ended_well(job, 60, lambda: c.log("made"))
    return {row["function"]: row for row in report["functions"]}


@pytest.mark.small
def test_code_made_at_run_time_has_the_names_of_its_map(c):
    rows = made_functions(c, 10)
    assert 0.65 < rows["made::Heavy(long) [tier 2]"]["share"] < 0.85, rows
    assert 0.15 < rows["made::Light(long)"]["share"] < 0.35, rows
    assert rows["made::Light(long)"]["category"] == "unknown", "its loops are"


def test_code_made_at_run_time_without_a_map_says_so(c):
    assert made_functions(c, 10, "silent")["[anonymous code]"]["share"] > 0.9


if __name__ == "__main__":
    cluster.pytest_file(__file__)
