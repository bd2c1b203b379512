#!/usr/bin/env python3
"""Call paths of programs whose call structure is known: by frame pointers and by unwinding copies of stacks."""
import json
import os
import pathlib
import signal

import pytest

import cluster
from cluster import Cluster, PUPPETS

SECONDS = 6
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "puppets"
NEARLY_ALL = 0.95

pytestmark = pytest.mark.skipif(not (PUPPETS / "callpaths_omit").exists(), reason="the puppets are not built (mpicc is missing)")


def contains(frames, wanted):
    """True when `wanted` is a contiguous part of `frames`."""
    n = len(wanted)
    return any(frames[i:i + n] == wanted for i in range(len(frames) - n + 1))


def read_stacks(c, profile_id):
    """(report, call paths as (frames, samples)), their accounting checked, and that folded lines tell the same in time."""
    report = c.json("report", profile_id)
    folded = c.perfctl("report", profile_id, "--folded")
    assert folded.returncode in (0, 8), folded.stderr
    stacks = [([f"rank {s['rank']}", *s["frames"]], s["samples"]) for s in report["stacks"]]
    check_accounting(report, stacks)
    check_folded(report, stacks, folded.stdout.splitlines())
    return report, stacks


def check_folded(report, stacks, lines):
    """One line for each path, in microseconds: together the CPU time of the ranks, which is not the number of samples."""
    assert len(lines) == len(stacks), (len(lines), len(stacks))
    for line, stack in zip(lines, report["stacks"]):
        path, _, us = line.rpartition(" ")
        assert path.count(";") == len(stack["frames"]), (path, stack)
        assert abs(int(us) - max(1, stack["seconds"] * 1e6)) <= 1, (line, stack)
    seconds = sum(r["seconds"] for r in report["ranks"] if r["rank"] in {s["rank"] for s in report["stacks"]})
    assert abs(sum(s["seconds"] for s in report["stacks"]) - seconds) < 1e-6 * max(1, seconds), seconds


def profile(puppet, arguments, callpaths):
    """Of one process that runs the puppet."""
    with Cluster() as c:
        job = c.spawn("job", [PUPPETS / puppet, SECONDS + 3, *arguments])
        cluster.wait_until(lambda: cluster.ranks_of(puppet), 10, "the puppet runs")
        id_ = c.submit("--pid", job.pid, "--duration", f"{SECONDS}s", "--callpaths", callpaths)
        status = c.wait_over(id_)
        assert status["state"] == "DONE", status
        assert job.poll() is None or job.returncode == 0
        return read_stacks(c, id_)


def check_accounting(report, stacks):
    a = report["accounting"]
    assert a["seen"] == a["kept"] + sum(a["dropped"].values()), a
    paths = sum(samples for _, samples in stacks)
    assert paths + a["stack_skipped"] == a["kept"], (paths, a)
    truncated = sum(samples for frames, samples in stacks if "[truncated]" in frames)
    assert truncated == a["stack_truncated"], (truncated, a)
    for frames, _ in stacks:
        assert "[truncated]" not in frames[2:], f"only the outermost frame can be missing: {frames}"


def share(stacks, condition):
    total = sum(samples for _, samples in stacks)
    return sum(samples for frames, samples in stacks if condition(frames)) / total


def expect_chain(puppet, arguments, callpaths, wanted, at_least=NEARLY_ALL):
    report, stacks = profile(puppet, arguments, callpaths)
    found = share(stacks, lambda f: contains(f, wanted))
    complete = share(stacks, lambda f: "[truncated]" not in f)
    total = sum(samples for _, samples in stacks)
    print(f"   {puppet} {' '.join(map(str, arguments))} {callpaths}: {';'.join(wanted)} in {found:.4f} of {total} paths,"
          f" complete {complete:.4f}, {report['accounting']['stack_skipped']} of {report['accounting']['kept']} samples"
          " without a path")
    if found < at_least:
        for frames, samples in sorted(stacks, key=lambda s: -s[1])[:10]:
            print("     ", samples, ";".join(frames))
    assert found >= at_least, found
    return report, stacks


@pytest.mark.small
def test_dwarf_finds_the_chain_without_frame_pointers():
    report, stacks = expect_chain("callpaths_omit", ["chain"], "dwarf", ["main", "path_a", "path_b", "path_leaf"])
    # At most 50 a second, and not far below when more samples are offered: one process on a CPU of its own has 199.
    paths, kept = sum(samples for _, samples in stacks), report["accounting"]["kept"]
    assert 0.6 * min(50 * SECONDS, kept) < paths <= 50 * (SECONDS + 1), (paths, kept)
    assert share(stacks, lambda f: "[truncated]" not in f) > NEARLY_ALL


@pytest.mark.small
def test_frame_pointers_find_the_chain():
    report, _ = expect_chain("callpaths_frames", ["chain"], "fp", ["main", "path_a", "path_b", "path_leaf"])
    assert report["accounting"]["stack_skipped"] <= 0.01 * report["accounting"]["kept"], report["accounting"]


def test_dwarf_goes_through_a_library_without_frame_pointers():
    _, stacks = profile("callpaths_omit", ["sort"], "dwarf")

    def good(frames):
        if "compare_numbers" not in frames or "sort_numbers" not in frames:
            return False
        outer, inner = frames.index("sort_numbers"), frames.index("compare_numbers")
        return frames[outer - 1] == "main" and inner > outer + 1
    in_compare = share(stacks, lambda f: "compare_numbers" in f)
    found = share(stacks, good)
    print(f"   compare_numbers in {in_compare:.4f} of the paths, called by way of sort_numbers and libc in {found:.4f}")
    for frames, samples in sorted(stacks, key=lambda s: -s[1])[:3]:
        print("     ", samples, ";".join(frames))
    assert in_compare > 0.8 and found >= NEARLY_ALL * in_compare, (in_compare, found)


def test_code_that_is_loaded_later_is_followed():
    _, stacks = expect_chain("callpaths_omit", ["plugin", PUPPETS / "callpaths_plugin.so"], "dwarf",
                             ["main", "use_plugin", "plugin_call", "path_leaf"], at_least=0.4)
    # Before: one second of the chain; the reader that knew no plugin may stand for two seconds more.
    early = share(stacks, lambda f: contains(f, ["path_a", "path_b", "path_leaf"]))
    assert early > 0.02, early


def test_stacks_deeper_than_the_copy_are_counted_as_truncated():
    # 100 frames of at least 256 bytes: three times what is copied (8 KiB).
    report, stacks = profile("callpaths_omit", ["deep", 100], "dwarf")
    truncated = share(stacks, lambda f: f[1] == "[truncated]")
    print(f"   truncated {truncated:.4f}: {report['accounting']['stack_truncated']} paths")
    assert truncated > NEARLY_ALL, truncated
    inner = share(stacks, lambda f: contains(f, ["path_deep"] * 10 + ["path_leaf"]))
    assert inner > NEARLY_ALL, inner


def with_called(report, name):
    """(own share, share of what it calls, row) of the loop, of elapsed time."""
    (line,) = [n for n, text in enumerate((SOURCES / "calling.c").read_text().splitlines(), 1) if f"// LOOP {name}" in text]
    rows = [r for r in report["loops"] if r["file"].endswith("calling.c") and r["first_line"] == line]
    assert len(rows) == 1, [(r["function"], r["first_line"]) for r in report["loops"]]
    return rows[0]["wall_share"], rows[0]["wall_called_share"], rows[0]


def profile_of_calling(c):
    """Of a job of its own, what holds of any such profile checked. Loops are chosen after a quarter of it: by then the paths must be there."""
    job = c.spawn("job", [PUPPETS / "calling", 28])
    cluster.wait_until(lambda: cluster.ranks_of("calling"), 10, "the puppet runs")
    id_ = c.submit("--pid", job.pid, "--duration", "24s", "--variants", "LS,FP", "--overhead", "10%")
    c.wait_over(id_, 90)
    report = c.json("report", id_)
    text = c.perfctl("report", id_).stdout
    assert job.wait(30) == 0
    truth = json.loads(c.log("job").splitlines()[-1])["shares"]
    found = {name: with_called(report, name) for name in truth}
    print("  ", {name: (truth[name], round(own, 3), round(called, 3)) for name, (own, called, _) in found.items()})
    for name, (own, called, row) in found.items():
        # Some hundred paths of the function at least: three times the deviation of a part of so many is 0.12 of its time.
        assert abs(own + called - truth[name]) < 0.1, (name, own, called, truth[name])
        assert abs(row["wall_inclusive_share"] - own - called) < 1e-9, row
    both = sum(found[name][0] + found[name][1] for name in ("often", "seldom"))
    assert abs(both - truth["often"] - truth["seldom"]) < 0.05, found
    assert found["own"][1] == 0, "it calls nothing"
    assert found["often"][1] > found["often"][0], "it is the function's time"
    assert found["often"][2]["hot"] and report["loops"][0]["id"] == found["often"][2]["id"]
    assert "in functions that it calls" in text, text
    assert report["stacks"] == [] and report["accounting"]["stack_skipped"] == 0, "nobody asked for paths"
    (bend,) = [r for r in report["functions"] if r["function"] == "bend"]
    assert bend["wall_share"] > 0.3, "the function's own time stays where it was"
    return {v["loop_id"] for v in report["verdicts"]}, found["often"][2]["id"]


@pytest.mark.small
def test_without_being_asked_loops_have_the_time_of_what_they_call():
    with Cluster() as c:
        # That the loop is looked at, in so short a profile, takes a host that is not busy.
        cluster.profile_again(lambda: profile_of_calling(c), lambda made: made[1] in made[0])


def unwinder_of(pid):
    """The process that unwinds the stacks of `pid`, or nothing."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if words[0].endswith("perf-agent-reader") and words[1:3] == ["unwind", str(pid)]:
            return int(entry.name)
    return None


def test_the_unwinder_is_the_targets_user_and_its_death_costs_only_paths():
    user = "nobody" if os.geteuid() == 0 else None
    with Cluster() as c:
        job = c.spawn("job", [PUPPETS / "callpaths_omit", 12, "chain"], user=user)
        cluster.wait_until(lambda: cluster.ranks_of("callpaths_omit"), 10, "the puppet runs")
        id_ = c.submit("--pid", job.pid, "--duration", "5s", "--callpaths", "dwarf")
        unwinder = cluster.wait_until(lambda: unwinder_of(job.pid), 10, "an unwinder runs")
        status = cluster.wait_until(lambda: "Seccomp:\t2" in (text := (pathlib.Path("/proc") / str(unwinder) /
                                    "status").read_text()) and text, 5, "it is confined")
        uid = pathlib.Path(f"/proc/{job.pid}").stat().st_uid
        assert f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n" in status, status
        assert "CapEff:\t0000000000000000" in status or os.geteuid() != 0, status
        cluster.wait_until(lambda: c.json("status", id_)["state"] == "SAMPLING", 10, "sampling")
        os.kill(unwinder, signal.SIGKILL)
        over = c.wait_over(id_)
        assert over["state"] in ("DONE", "PARTIAL"), over
        report, stacks = read_stacks(c, id_)
        assert report["accounting"]["stack_skipped"] > 0, report["accounting"]
        assert report["accounting"]["kept"] > 100, report["accounting"]
        assert "call paths of pid" in str(over) + str(report), over
        assert job.poll() is None, "the job runs on"
        print(f"   {sum(n for _, n in stacks)} paths before the kill, {report['accounting']['kept']} samples kept")
        assert unwinder_of(job.pid) is None


if __name__ == "__main__":
    cluster.pytest_file(__file__)
