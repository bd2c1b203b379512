#!/usr/bin/env python3
"""One user at ten times every limit, all at once: the others do not notice, root's agents stay, nothing acknowledged is lost, and
perfd stays within the memory of its unit.

PERFD_ATTACK=300 makes the long run, beside 1,000 agents; without it the run is short, beside 50, and says nothing of times. The attackers'
programs run at the lowest priority: on a cluster they would have machines of their own. What is compared is perfd, so the times amid the
attack are compared with those beside programs that burn as many processors and know nothing of perfd. The simulated
agents give way to perfd, too."""
import contextlib
import json
import os
import pathlib
import pwd
import re
import resource
import signal
import subprocess
import threading
import time
import urllib.request

import pytest

import cluster
import raw_grpc
from cluster import BIN, Cluster, wait_until
from peer_limits_test import become, resident_mib

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it is several users")
# Both have names: users whom the system does not know are held to be one, and wait for each other.
ATTACKER, OTHER = (pwd.getpwnam(name).pw_uid for name in ("games", "news"))
SECONDS = int(os.environ.get("PERFD_ATTACK", "12"))
LONG = SECONDS >= 60
BASE_SECONDS, AGENTS = (60, 1000) if LONG else (10, 50)
UNIT = pathlib.Path(__file__).resolve().parents[2] / "deploy/systemd/perfd.service.in"
SLOWER = 3  # at most so many times the p99 beside programs that only burn
LEAST_MS = 100  # below it a ratio says more of the machine than of perfd
MOST_END_MS = 5000  # after its duration every profile of another user is over


def unit_mib():
    return int(re.search(r"^MemoryMax=(\d+)G", UNIT.read_text(), re.M)[1]) << 10


class Run:
    """perfd, an agent of root's on this machine, and simulated ones; programs of two users."""

    def __init__(self, c):
        self.c, self.programs = c, {}

    def program(self, uid):
        """A process of theirs that works."""
        process = self.c.spawn(f"work-{uid}-{len(self.programs)}", ["/bin/sh", "-c", "while :; do :; done"],
                               preexec_fn=lambda: (become(uid), os.nice(19)))
        self.programs[process.pid] = process
        return process.pid

    def crowd(self, name, uid, seconds, *arguments, nice=0):
        """Calls of one user; the result is the last line of its log."""
        return self.c.spawn(name, [BIN / "crowd", "--address", f"unix:{self.c.socket}", "--seconds", seconds, "--node", "root1",
                                   *arguments], preexec_fn=lambda: (become(uid), os.nice(nice)))

    def told(self, name):
        return json.loads(self.c.log(name).splitlines()[-1])

    def others(self, name, seconds, pid):
        """What another user, and root for the scheduler, find in these seconds: {call: outcome}."""
        people = [
            self.crowd(f"{name}-user", OTHER, seconds, "--pid", pid, "--pause-ms", 250, "--calls",
                       "submit,status,watch,report,history,list,nodes,status,status,status,status,status,ends"),
            self.crowd(f"{name}-hook", 0, seconds, "--pause-ms", 500, "--calls", "hook"),
        ]
        for process in people:
            process.wait(seconds + 120)
        return self.told(f"{name}-user") | self.told(f"{name}-hook")

    def submit_as(self, uid, *arguments):
        run = subprocess.run([BIN / "perfctl", "submit", "--variants", "none", *map(str, arguments)], capture_output=True, text=True,
                             timeout=30, env={**os.environ, "PERFD_ADDRESS": f"unix:{self.c.socket}"},
                             preexec_fn=lambda: become(uid))
        assert run.returncode == 0, run
        return re.search(r"p-\d+", run.stdout)[0]


def unfinished(seconds, socket):
    """In a process of its own: ten times the connections that one user may have, each with requests that never end."""
    pid = os.fork()
    if pid:
        return pid
    try:
        become(ATTACKER)
        os.nice(19)
        end, peers = time.monotonic() + seconds, []
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                if len(peers) < 640:
                    peers.append(raw_grpc.Unfinished(socket, 10, 19 << 20))
            peers = [peer for peer in peers if not peer.ended]
            for peer in peers:
                if not peer.ended:
                    peer.push()
    finally:
        os._exit(0)


def attack(run, seconds):
    """Everything at once; the processes, and the pid of one that is not of subprocess."""
    c, pid = run.c, run.program(ATTACKER)
    watched = run.submit_as(ATTACKER, "--pid", pid, "--node", "root1", "--duration", "30m")
    run.submit_as(ATTACKER, "--command", "simulation", "--duration", "30m")  # on the attacker's own nodes, too

    def crowd(name, *arguments):
        return run.crowd(f"attack-{name}", ATTACKER, seconds, "--pid", pid, *arguments, nice=19)
    started = [
        crowd("questions", "--threads", 320, "--connections", 8, "--pause-ms", 0, "--profile", watched, "--calls",
              "list,nodes,history,report,status,doctor"),
        crowd("watches", "--threads", 160, "--connections", 4, "--pause-ms", 0, "--profile", watched, "--watch-ms", 600_000, "--calls", "watch"),
        crowd("submits", "--threads", 80, "--connections", 4, "--pause-ms", 0, "--calls", "submit"),
    ]
    time.sleep(2)  # what follows takes every connection that is left, and every new one of the minute
    started.append(evil_agents(run, "many", 144))  # when there are no names left
    return started, unfinished(seconds, c.socket)


def agents(run, name, count, *flags):
    return run.c.spawn(name, [BIN / "fake_agents", "--address", f"unix:{run.c.socket}", "--name", name, "--agents", count, *flags], preexec_fn=lambda: os.nice(10))


def evil_agents(run, name, count, *flags):
    """Agents of the attacker's that come again when they are thrown out."""
    command = (f"while :; do {BIN}/fake_agents --address unix:{run.c.socket} --name {name} --agents {count} --user-mode "
               f"--windows 1000000 --interval-ms 0 {' '.join(map(str, flags))}; sleep 2; done")
    return run.c.spawn(name, ["/bin/sh", "-c", command], start_new_session=True,
                       preexec_fn=lambda: (become(ATTACKER), os.nice(19)))


def end(process):
    """With what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait(30)


@contextlib.contextmanager
def burning(run):
    """As many programs as attack, without perfd."""
    programs = [run.c.spawn(f"burn-{i}", ["/bin/sh", "-c", "while :; do :; done"], start_new_session=True,
                            preexec_fn=lambda: (become(ATTACKER), os.nice(19))) for i in range(8)]
    try:
        yield
    finally:
        for program in programs:
            end(program)


class Watcher(threading.Thread):
    """Looks at perfd now and then: its memory, and whether root's agent is connected."""

    def __init__(self, run):
        super().__init__(daemon=True)
        self.run_, self.over, self.most_mib, self.away, self.looks, self.failed = run, threading.Event(), 0, 0, 0, []

    def run(self):
        while not self.over.wait(1):
            self.most_mib = max(self.most_mib, resident_mib(self.run_.c.daemon.pid))
            self.looks += 1
            try:
                nodes = self.run_.c.json("nodes")["nodes"]
                self.away += not any(n["node"] == "root1" and n["connected"] for n in nodes)
            except (subprocess.TimeoutExpired, ValueError, AssertionError) as error:
                self.failed.append(error)


@pytest.fixture
def run():
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit[1], 65536), limit[1]))
    try:
        with Cluster(nodes=("root1",)) as c:
            yield Run(c)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def hits(c):
    """How often each limit has refused somebody."""
    return {limit["key"]: limit["refusals"] for limit in c.json("limits")["limits"] if limit["refusals"]}


@pytest.mark.small
def test_one_user_at_ten_times_every_limit(run):
    c, pid = run.c, run.program(OTHER)
    interval = 5 if LONG else 1
    windows = (2 * BASE_SECONDS + SECONDS) // interval
    fleet = agents(run, "fleet", AGENTS, "--ranks", 4, "--windows", windows, "--interval-ms", interval * 1000)
    wait_until(lambda: "connected" in c.log("fleet"), 60, "the agents are connected")
    job = c.submit("--command", "simulation", "--duration", f"{2 * BASE_SECONDS + SECONDS + 120}s", "--variants", "none")
    watcher = Watcher(run)
    watcher.start()
    alone = run.others("alone", BASE_SECONDS, pid)
    with burning(run):
        beside = run.others("beside", BASE_SECONDS, pid)
    first = [evil_agents(run, "flood", 8, "--ranks", 64, "--loops", 200), evil_agents(run, "audit", 8, "--ranks", 2, "--audit", 2000)]
    wait_until(lambda: sum(n["user_mode"] for n in c.json("nodes")["nodes"]) == 16, 30, "the attacker has all names")
    started, raw = attack(run, SECONDS + 10)
    try:
        during = run.others("during", SECONDS, pid)
    finally:
        os.kill(raw, signal.SIGKILL)
        os.waitpid(raw, 0)
        for process in [*started, *first]:
            end(process)
    fleet.wait(240)
    watcher.over.set()
    watcher.join(30)
    found = json.loads(c.log("fleet").splitlines()[-1])
    refused = hits(c)
    print(f"perfd: {watcher.most_mib} MiB at most, of {unit_mib()}; root's agent away in {watcher.away} of {watcher.looks} looks")
    print(f"refusals: {refused}")
    for call in sorted(during):
        print(f"   {call}: {during[call]['answered']} answered, p99 {alone[call]['p99_ms']:.1f} ms alone, "
              f"{beside[call]['p99_ms']:.1f} ms beside burning programs, {during[call]['p99_ms']:.1f} ms amid it; "
              f"longest {during[call]['max_ms']:.0f} ms")
    print(f"fleet: {found}")
    for name, outcomes in (("alone", alone), ("beside", beside), ("during", during)):
        for call, outcome in outcomes.items():
            assert outcome["answered"] > 0 and outcome["refused"] == outcome["failed"] == 0, (name, call, outcome)
    assert during["end"]["max_ms"] < MOST_END_MS, during["end"]
    assert not watcher.failed and watcher.looks >= SECONDS // 3, (watcher.failed[:3], watcher.looks)
    assert watcher.away == 0, watcher.away
    assert watcher.most_mib < unit_mib(), watcher.most_mib
    assert found["windows_acknowledged"] == found["windows_sent"] == AGENTS * windows and found["failed"] == 0, found
    status = c.json("status", job)
    assert status["samples"] > 0
    wanted = {"limits.connections_per_user", "limits.questions_per_user", "limits.watches_per_user", "limits.profiles_per_user",
              "limits.nodes_per_user", "limits.audit_entries_per_user", "limits.new_connections_per_user"}
    assert wanted <= set(refused), (wanted - set(refused), "the attack must reach what it is about")
    slow = {call: (beside[call]["p99_ms"], during[call]["p99_ms"]) for call in during
            if call != "end" and during[call]["p99_ms"] > max(SLOWER * beside[call]["p99_ms"], LEAST_MS)}
    assert not slow or not LONG, slow


if __name__ == "__main__":
    cluster.pytest_file(__file__)
