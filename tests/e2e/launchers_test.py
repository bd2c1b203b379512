#!/usr/bin/env python3
"""Processes that only wait for their children: `submit --pid` says so at once and names the child that works; `--tree` takes all
that run below them. Real timeout, time, env, nohup, sh and mpirun, around a program that does nothing but compute."""
import os
import pathlib
import subprocess
import sys
import time

import pytest

import cluster
from cluster import Cluster, wait_until

BUSY = "import time; end = time.monotonic() + {}\nwhile time.monotonic() < end: sum(range(10000))"
SECONDS = 40
AT_ONCE = 20  # the profiles below would take a minute

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: perf events of other processes")


@pytest.fixture(scope="module")
def c():
    with Cluster() as c:
        yield c


def busy(seconds=SECONDS):
    return [sys.executable, "-c", BUSY.format(seconds)]


def children_of(pid):
    out = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            out.append(int(entry.name))
    return sorted(out)


def name_of(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


PROGRAM = os.path.basename(os.path.realpath(sys.executable))


def below(pid):
    """Programs below a process, at any depth."""
    found = [pid] if name_of(pid) == PROGRAM else []
    for child in children_of(pid):
        found += below(child)
    return sorted(found)


def started(process, count):
    """The programs below a launcher, once they compute."""
    return wait_until(lambda: len(below(process.pid)) == count and below(process.pid), 20, f"{count} programs below it")


def refused(c, *arguments):
    begin = time.monotonic()
    run = c.perfctl("submit", *arguments, "--duration", "60s", "--variants", "none")
    assert time.monotonic() - begin < AT_ONCE, run
    assert run.returncode == 6, run
    return run.stderr


def end(c, *processes):
    for process in processes:
        for pid in below(process.pid):
            subprocess.run(["kill", str(pid)], check=False, timeout=10)
    c.end(processes)


def profile_of_tree(c, process, seconds=5):
    profile = c.submit("--pid", process.pid, "--tree", "--duration", f"{seconds}s")
    status = c.wait_over(profile, seconds + 40)
    return status, c.json("report", profile)


def left_out(status):
    notes = [notice["launchers"] for notice in status["notices"] if "launchers" in notice]
    assert all(note["disposition"] == "left_out" for note in notes), notes
    return sorted(one["pid"] for note in notes for one in note["waiting"])


@pytest.mark.small
def test_timeout_names_its_child_and_a_tree_measures_it(c):
    job = c.spawn("timeout", ["timeout", "100", *busy()])
    try:
        program, = started(job, 1)
        text = refused(c, "--pid", job.pid)
        assert f"{job.pid} (timeout) only waits for its children; {program} ({PROGRAM}) works: perfctl submit --pid {program}, or " \
               f"--pid {job.pid} --tree" in text, text
        assert c.wait_over("last", 10)["state"] == "FAILED"
        status, report = profile_of_tree(c, job)
        assert status["state"] == "DONE" and status["tree"], status
        assert [rank["pid"] for rank in report["ranks"]] == [program], report["ranks"]
        assert report["ranks"][0]["seconds"] > 0.2, report["ranks"]
        assert left_out(status) == [job.pid], status["notices"]
    finally:
        end(c, job)


@pytest.mark.parametrize("launcher", [["/usr/bin/time"], ["nohup"], ["env", "A=1", "timeout", "100"], ["sh", "-c", '"$@"; true', "sh"],
                                      ["timeout", "100", "sh", "-c", 'time_it() { "$@"; }; time_it "$@"; true', "sh"]],
                         ids=lambda launcher: "_".join(word for word in launcher if word.isalpha()))
def test_launchers_of_all_kinds(c, launcher):
    job = c.spawn("launcher", [*launcher, *busy()])
    try:
        program, = started(job, 1)
        if program == job.pid:  # nohup and env become the program: nothing to refuse
            profile = c.submit("--pid", job.pid, "--duration", "3s")
            assert c.wait_over(profile, 40)["samples"] > 0
            return
        assert f"{program} ({PROGRAM}) works" in refused(c, "--pid", job.pid)
        status, report = profile_of_tree(c, job, 3)
        assert status["state"] == "DONE", status
        assert [rank["pid"] for rank in report["ranks"]] == [program], report["ranks"]
    finally:
        end(c, job)


def test_programs_of_a_script_one_after_the_other(c):
    one, two = busy(6), busy(SECONDS)
    job = c.spawn("script", ["sh", "-c", f'"$0" -c "$1"; "$0" -c "$2"; true', one[0], one[2], two[2]])
    try:
        first, = started(job, 1)
        status, report = profile_of_tree(c, job, 15)
        assert status["state"] == "DONE", status  # the end of the first is no trouble
        pids = [rank["pid"] for rank in report["ranks"]]
        assert len(pids) == 2 and first in pids and job.pid not in pids, report["ranks"]
        assert {rank["rank"] for rank in report["ranks"]} == {0}, "the next goes on under the number of the one that ended"
        assert all(rank["seconds"] > 0.1 for rank in report["ranks"]), report["ranks"]
    finally:
        end(c, job)


@pytest.mark.skipif(not cluster.shutil.which("mpirun"), reason="mpirun is missing")
def test_mpirun_in_a_shell_in_timeout(c):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    mpirun = ["mpirun", *root, "--oversubscribe", "--bind-to", "none", "-n", "2"]
    job = c.spawn("mpirun", ["timeout", "100", "sh", "-c", '"$@"; true', "sh", *mpirun, *busy()])
    try:
        ranks = started(job, 2)
        text = refused(c, "--pid", job.pid)
        assert all(f"{rank} ({PROGRAM})" in text for rank in ranks) and " work: " in text, text
        status, report = profile_of_tree(c, job)
        assert status["state"] == "DONE", status
        assert [(rank["rank"], rank["pid"]) for rank in report["ranks"]] in ([(0, ranks[0]), (1, ranks[1])],
                                                                             [(0, ranks[1]), (1, ranks[0])]), report["ranks"]
        assert job.pid in left_out(status), status["notices"]
        # Beside its ranks a launcher that is named is left out, with a warning.
        profile = c.submit("--pid", ",".join(map(str, [job.pid, *ranks])), "--duration", "3s")
        status = c.wait_over(profile, 40)
        assert status["state"] == "DONE" and left_out(status) == [job.pid], status
        assert len(c.json("report", profile)["ranks"]) == 2
    finally:
        end(c, job)


def test_who_works_or_rests_alone_is_never_refused(c):
    driver = c.spawn("driver", [sys.executable, "-c", "import subprocess, sys\n"
                                "child = subprocess.Popen([sys.executable, '-c', sys.argv[1]])\n"
                                "exec(sys.argv[1])\nchild.wait()", BUSY.format(SECONDS)])
    idle = c.spawn("idle", ["sleep", "60"])
    try:
        started(driver, 2)
        profile = c.submit("--pid", driver.pid, "--duration", "3s")
        assert c.wait_over(profile, 40)["state"] == "DONE"
        profile = c.submit("--pid", idle.pid, "--duration", "2s")
        status = c.wait_over(profile, 40)
        assert status["state"] == "DONE", status
        assert any(notice["severity"] == "warning" and "no samples" in notice["text"] for notice in status["notices"]), status
    finally:
        end(c, driver, idle)


def test_root_measures_the_tree_of_a_user(c):
    job = c.spawn("other", ["sh", "-c", '"$@"; true', "sh", *busy()], user=65534, group=65534, extra_groups=[])
    try:
        program, = started(job, 1)
        run = c.perfctl("submit", "--pid", job.pid, "--tree", "--duration", "2s", "--variants", "none", "--json")
        status = c.wait_over(c.json("status", "last")["id"], 40)
        assert run.returncode == 0 and status["state"] == "DONE", (run, status)
        assert [rank["pid"] for rank in c.json("report", "last")["ranks"]] == [program]
    finally:
        end(c, job)


if __name__ == "__main__":
    cluster.pytest_file(__file__)
