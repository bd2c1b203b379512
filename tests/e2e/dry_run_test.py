#!/usr/bin/env python3
"""`perfctl submit --dry-run` against a running job: what it says, and that nothing was done to the ranks, seen from outside."""
import json
import pathlib
import threading
import time

import pytest

import cluster
from cluster import PUPPETS
from promises_test import Rank, unaltered

PROGRAM = PUPPETS / "two_fates"


class Watcher(threading.Thread):
    """Looks at the ranks all the time: nobody may trace, stop or fork them; the agent may start no tracer."""

    def __init__(self, ranks, agent):
        super().__init__()
        self.ranks, self.agent, self.seen, self.looks, self.over = ranks, agent, [], 0, False

    def run(self):
        while not self.over:
            for rank in self.ranks:
                status = pathlib.Path(f"/proc/{rank.pid}/status").read_text()
                lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
                if lines["TracerPid"] != "0" or lines["State"][0] in "tT":
                    self.seen.append((rank.pid, lines["TracerPid"], lines["State"]))
                if rank.children():
                    self.seen.append((rank.pid, "children", rank.children()))
            for child in Rank(self.agent.pid).children().split():
                try:
                    name = pathlib.Path(f"/proc/{child}/comm").read_text().strip()
                except OSError:
                    continue
                if name == "perf-agent-tracer"[:15]:
                    self.seen.append(("tracer", child))
            self.looks += 1
            time.sleep(0.002)


def dry_run(c, processes, *arguments):
    """Runs it under a watcher; exit code and output."""
    ranks = [Rank(process.pid) for process in processes]
    before = [rank.all() for rank in ranks]
    watcher = Watcher(ranks, c.agents["node1"])
    watcher.start()
    try:
        run = c.perfctl("submit", "--pid", ",".join(str(p.pid) for p in processes), "--node", "node1", "--duration", "12s",
                        "--dry-run", *arguments, timeout=60)
    finally:
        watcher.over = True
        watcher.join()
    assert watcher.looks > 100, watcher.looks
    assert watcher.seen == [], watcher.seen[:5]
    for rank, was in zip(ranks, before):
        unaltered(was, rank.all())
    assert c.json("audit", "last")["entries"] == []
    # The journal is written before anything is changed.
    assert [p for p in (c.dir / "spool-node1-journal").glob("*") if p.is_file()] == []
    return run


def start(c, *modes):
    processes = [c.spawn(f"job{i}", [PROGRAM, 45, mode]) for i, mode in enumerate(modes)]
    time.sleep(0.5)
    return processes


def stop(processes):
    for process in processes:
        assert process.poll() is None, "the job has ended"
        process.terminate()
        process.wait(10)


def loop_in(answer, function):
    found = [loop for loop in answer["loops"] if loop["function"] == function]
    assert len(found) == 1, (function, answer["loops"])
    return found[0]


@pytest.mark.small
def test_says_what_would_be_patched_and_what_not_and_touches_nothing(c):
    job = start(c, "both", "both")
    run = dry_run(c, job, "--variants", "LS,FP,NO_SQRT", "--json")
    assert run.returncode == 0, (run.returncode, run.stdout, run.stderr)
    assert run.stderr == "", run.stderr
    answer = json.loads(run.stdout)
    assert answer["dry_run"] and answer["state"] == "DONE", answer
    triad, calls = loop_in(answer, "Triad"), loop_in(answer, "Calls")
    assert triad["would_be_patched"] and triad["ranks_patched"] == triad["ranks_total"] == 2, triad
    assert triad["variants"] == ["LS", "FP"], triad
    assert [(r["variant"], r["ranks"]) for r in triad["refusals"]] == [("NO_SQRT", 2)], triad
    assert "changes no instruction" in triad["refusals"][0]["reason"], triad
    assert triad["file"].endswith("two_fates.c") and triad["share"] > 0.1, triad
    predicted = triad["predicted"]
    # A small process: a fork takes some tenths of a millisecond, and there is room for hundreds of them.
    assert 100_000 < predicted["fork_ns"] < 20_000_000, predicted
    assert predicted["most_shadows"] >= 10 and 0 < predicted["least_ratio"] <= predicted["most_ratio"] <= 0.02, predicted
    assert not calls["would_be_patched"] and calls["ranks_total"] == 2, calls
    reasons = [r for r in calls["refusals"] if r["variant"] == ""]
    assert len(reasons) == 1 and "call" in reasons[0]["reason"] and reasons[0]["ranks"] == 2, calls
    assert calls["predicted"]["most_shadows"] == 0, calls
    # Recognisable afterwards.
    assert c.json("status", "last")["dry_run"], "status"
    assert "(dry run)" in c.perfctl("list").stdout
    report = c.perfctl("report", "last")
    assert "What would be altered" in report.stdout, report.stdout
    stop(job)


def test_what_it_said_is_what_a_profile_does(c):
    job = start(c, "both")
    text = dry_run(c, job, "--variants", "LS,FP").stdout
    assert "patched" in text and "refused: " in text and "a verdict needs" in text, text

    def profile():
        made = c.submit("--pid", job[0].pid, "--node", "node1", "--duration", "8s", "--variants", "LS,FP", "--overhead", "20%")
        c.wait_over(made, 40)
        return c.json("report", made)
    report = cluster.profile_again(profile, lambda made: cluster.shadows_of(made) > 0)
    functions = {row["id"]: row["function"] for row in report["loops"]}
    states = {functions[v["loop_id"]]: v for v in report["verdicts"]}
    assert states["Triad"]["cost"]["shadows"] > 0, states["Triad"]
    assert states["Calls"]["state"] == "refused", states["Calls"]
    assert states["Calls"]["refusals"][0]["reason"] in text, (states["Calls"]["refusals"], text)
    stop(job)


def test_every_loop_refused_has_its_exit_code(c):
    job = start(c, "calls")
    run = dry_run(c, job)
    assert run.returncode == 6, (run.returncode, run.stdout, run.stderr)
    assert "0 of 1 loops would be patched" in run.stdout, run.stdout
    # No such process: there is nothing to be said about loops.
    run = c.perfctl("submit", "--command", "no-such-program", "--dry-run", "--duration", "4s", timeout=60)
    assert run.returncode == 3 and run.stdout == "", (run.returncode, run.stdout, run.stderr)
    stop(job)


if __name__ == "__main__":
    cluster.pytest_file(__file__)
