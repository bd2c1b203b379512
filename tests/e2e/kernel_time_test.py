#!/usr/bin/env python3
"""Kernel time by cause, against a program that knows by its own clock what it asked of the kernel."""
import json
import os

import pytest

import cluster
from cluster import Cluster, PUPPETS, SOURCES

SECONDS = 8
TOLERANCE = 0.06  # of the elapsed time; the program's clock also counts what others took

pytestmark = [
    pytest.mark.skipif(not (PUPPETS / "in_kernel").exists(), reason="the puppets are not built (mpicc is missing)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: perf events of the kernel"),
]

CALLERS = {"mapped": ("munmap",), "heap": ("brk",), "files": ("pread", "pwrite")}


@pytest.fixture(scope="module")
def c():
    with Cluster() as c:
        yield c


@pytest.mark.parametrize("mode", [pytest.param("mapped", marks=pytest.mark.small), "heap", "files"])
def test_causes(c, mode):
    file = c.dir / "file"
    place = "/dev/shm/perfd-in-kernel" if os.path.isdir("/dev/shm") else file
    job = c.spawn("job", [PUPPETS / "in_kernel", mode, SECONDS + 4, place])
    try:
        profile = c.submit("--pid", job.pid, "--duration", f"{SECONDS}s", "--variants", "none")
        c.wait_over(profile)
        report = c.json("report", profile)
        cluster.ended_well(job, 60, lambda: c.log("job"))
    finally:
        if os.path.exists(place):
            os.unlink(place)
    truth = [json.loads(line) for line in c.log("job").splitlines() if line.startswith("{")][-1]
    totals = report["totals"]
    causes = {part["cause"]: part for part in totals["kernel_causes"]}
    print(f"   {mode}: truth {truth}, causes {[(k, round(v['share'], 4)) for k, v in causes.items()]}")
    # The causes are the kernel's whole, whatever they are.
    assert abs(sum(part["share"] for part in causes.values()) - totals["kernel"]["share"]) < 1e-9, totals
    assert sum(part["samples"] for part in causes.values()) == totals["kernel"]["samples"], totals
    assert abs(sum(part["wall_share"] for part in causes.values()) - totals["wall"]["kernel"]) < 1e-9, totals
    if causes and set(causes) == {"unknown"}:
        pytest.skip("the kernel's symbols may not be seen")
    first, last = cluster.marked_lines(SOURCES / "in_kernel.c")["touch"]
    touching = sum(row["share"] for row in report["loops"] if first <= row["first_line"] and row["last_line"] <= last)
    for name in ("page_faults", "memory_return", "io"):
        share = causes.get(name, {"share": 0})["share"]
        if name == "page_faults":
            share += touching  # the program's clock has the loop's own instructions, too
        assert abs(share - truth[name]) <= TOLERANCE, (name, share, truth)
    assert causes.get("unknown", {"share": 0})["share"] < 0.01, causes
    rows = [row for row in report["functions"] if row["category"] == "kernel"]
    main = "io" if mode == "files" else "memory_return"
    assert any(any(name in row["kernel_caller"] for name in CALLERS[mode]) for row in rows
               if row["kernel_cause"] == main), rows
    if mode != "files":
        faults = [row for row in rows if row["kernel_cause"] == "page_faults"]
        assert faults and faults[0]["kernel_caller"] == "Touch", faults
        assert first <= faults[0]["first_line"] and faults[0]["last_line"] <= last, faults[0]
    text = c.perfctl("report", profile).stdout
    assert {"io": "files and sockets", "memory_return": "return of memory"}[main] in text, text


if __name__ == "__main__":
    cluster.pytest_file(__file__)
