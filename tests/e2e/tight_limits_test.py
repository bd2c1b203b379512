#!/usr/bin/env python3
"""Ranks near a limit of their own: what we map is what they ask for next. They must not notice; and where there is room enough,
they are measured. Side by side on one agent.

PERFD_TRIES=200 makes the long run, PERFD_TOGETHER=8 are profiled at a time. As root with CAP_SYS_RESOURCE the limit of locked
memory may be any; else it is the hard limit at most, and each rank says what that leaves it."""
import collections
import json
import os
import random
import resource
import signal
import time

import pytest

import cluster
from admission_test import ALICE, as_user
from cluster import Cluster, PUPPETS, promised, wait_until
from promises_test import told

TIGHT = PUPPETS / "tight"
KINDS = ("address", "data", "heap", "locked", "later")
TRIES = int(os.environ.get("PERFD_TRIES", "5"))
TOGETHER = int(os.environ.get("PERFD_TOGETHER", "5"))
SECONDS = os.environ.get("PERFD_DURATION", "6s")
NEAR_KB, ROOM_KB = 8 << 10, 128 << 10
NO_MEMORY = 4  # the puppet's exit code

pytestmark = [pytest.mark.skipif(not TIGHT.exists(), reason="the puppet is not built"),
              pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it starts programs of another user")]


def raise_locked():
    """In the child, before it becomes another user: as much locked memory as it is going to want, where we may allow it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 30, 1 << 30))
    except (OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))


class Tight:
    def __init__(self, c, number, kind, slack_kb):
        self.c, self.kind, self.name = c, kind, f"tight-{number}"
        self.process = c.spawn(self.name, as_user(ALICE, TIGHT, kind, slack_kb, 300), preexec_fn=raise_locked)
        self.slack_kb = int(wait_until(lambda: c.log(self.name).split()[1:2], 10, "it says its slack", 0.01)[0])
        self.profile = c.submit("--pid", self.process.pid, "--node", "node1", "--duration", SECONDS, "--variants", "LS,FP",
                                "--overhead", "30%")

    def end(self):
        """(outcome, reason) of its profile."""
        self.c.wait_over(self.profile, 120)
        time.sleep(0.1)
        promised(self.process.poll() is None, (self.kind, self.slack_kb, self.process.returncode, self.c.log(self.name)))
        self.process.send_signal(signal.SIGUSR1)
        promised(self.process.wait(30) == 0, (self.kind, self.slack_kb, self.process.returncode, self.c.log(self.name)))
        promised(self.c.log(self.name).splitlines()[-1] == "right", self.c.log(self.name))
        report = self.c.json("report", self.profile)
        if not report["verdicts"]:
            return "no verdict", json.dumps(report["status"]["notices"])
        verdict = report["verdicts"][0]
        reasons = verdict["refusals"] + verdict["open"] + [r["reason"] for r in verdict["ranks"] if r["reason"]]
        return verdict["state"], "; ".join(map(str, reasons))


def run(c, asked):
    """[(rank, outcome, reason)] of profiles of (kind, slack)."""
    found = []
    for begin in range(0, len(asked), TOGETHER):
        ranks = [Tight(c, begin + i, *what) for i, what in enumerate(asked[begin:begin + TOGETHER])]
        for rank in ranks:
            outcome, reason = rank.end()
            found.append((rank, outcome, reason))
            print(f"   {rank.kind} {rank.slack_kb} kB: {outcome} {reason}", flush=True)
    count = collections.Counter((rank.kind, outcome) for rank, outcome, _ in found)
    print("  ", {f"{kind} {outcome}": n for (kind, outcome), n in sorted(count.items())})
    return found


@pytest.mark.promise
@pytest.mark.small
def test_ranks_near_their_limits_do_not_notice(c):
    chance = random.Random(23)
    found = run(c, [(KINDS[i % len(KINDS)], chance.randrange(NEAR_KB + 1)) for i in range(TRIES)])
    # What is refused is refused by the limit's name. Of `later` nobody can know.
    for rank, outcome, reason in found:
        if rank.kind != "later":
            assert outcome == "refused" and "RLIMIT_" in reason, (rank.kind, rank.slack_kb, outcome, reason)


@pytest.mark.promise
def test_ranks_with_room_are_measured(c):
    chance = random.Random(128)
    asked = [(KINDS[i % len(KINDS)], ROOM_KB + chance.randrange(NEAR_KB + 1)) for i in range(TRIES)]
    found = run(c, asked)
    enough = [(rank, outcome, reason) for rank, outcome, reason in found if rank.slack_kb >= ROOM_KB]
    print(f"   {len(enough)} of {len(found)} ranks had the room that they were to have")
    for rank, outcome, reason in enough:
        assert outcome == "measured", (rank.kind, rank.slack_kb, outcome, reason)


if __name__ == "__main__":
    cluster.pytest_file(__file__)
