#!/usr/bin/env python3
"""Bad days of a fleet: nodes whose clocks are days apart, two daemons on one store, a scraper that never lets go, agents and
daemons of neighbouring versions. (Hooks have tests of their own.)"""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

import cluster
import nodes
import raw_grpc
from cluster import BIN, Cluster, PUPPETS, wait_until
from fleet_test import StoredWindows, check_every_window_once, fields, keep_every_window, loop_row, notices, samples_of
from nodes import Fleet, FleetJob
from worse_days_test import check_sums

DAYS_S = 5 * 86_400
HOUR_S = 3600

pytestmark = pytest.mark.skipif(not (cluster.PUPPETS / "fleet").exists(), reason="the puppets are not built (mpicc is missing)")


# ---- clocks -----------------------------------------------------------------------------------------------------

@pytest.mark.small
@pytest.mark.usefixtures("several_nodes")
def test_nodes_whose_clocks_are_days_apart():
    """Each node was booted at another time: their monotonic clocks have nothing in common."""
    if not pathlib.Path("/proc/self/ns/time").exists():
        pytest.skip("this kernel has no time name spaces")
    with Fleet(2, clock_s={2: DAYS_S}) as f:
        clocks = [float(nodes.run(*node.command("cat", "/proc/uptime")).split()[0]) for node in f.fleet.values()]
        assert clocks[1] - clocks[0] > DAYS_S - 60, clocks
        job = FleetJob(f, slow=9)
        # On a busy host pauses that were leased for the same instant may come one after the other.
        for _ in range(3):
            if profile_of_two_clocks(f)["injection"]["shared_ns"] > 0:
                break
        else:
            raise AssertionError("no pauses of the two nodes overlapped")
        assert "clock differs" not in f.log("agent-node2"), "its wall clock is right"
        # What a sample costs is measured by comparing the kernel's times with the agent's own clock.
        assert "cost of a sample is not known" not in f.log("agent-node2"), f.log("agent-node2")
        job.ends()


def profile_of_two_clocks(f):
    stored = StoredWindows(f)
    profile = f.submit("--command", "fleet", "--duration", "14s", "--variants", "LS,FP,NO_DIV", "--overhead", "20%")
    status = f.wait_over(profile, 60)
    windows = stored.end()
    report = f.json("report", profile)
    assert status["state"] == "DONE", (status["state"], notices(f, profile))
    check_sums(report)
    # Windows of both nodes are of the same quarter of a minute, and what was measured in them is understood.
    starts = [w.start_ns for w in windows]
    assert len({w.node for w in windows}) == 2 and max(starts) - min(starts) < 20e9, starts
    for name in f.fleet:
        assert samples_of(report, name) > 100, report["ranks"]
    assert report["totals"]["unknown"]["share"] < 0.05, report["totals"]
    errors = [p["error_ns"] for w in windows for p in w.pauses]
    nodes_paused = {w.node for w in windows if w.pauses}
    print(f"   {len(errors)} leased pauses on {sorted(nodes_paused)}, clocks within {max(errors, default=0) / 1e3:.0f} us, "
          f"{report['injection']['shared_ns'] / 1e6:.0f} ms overlapped")
    assert nodes_paused == set(f.fleet) and max(errors) <= 2_100_000, errors
    return report


class WrongWallClocks(Fleet):
    """Nodes whose wall clocks are off by so many seconds, as far as their agents can see. There the time of day says nothing about
    certificates either: these come by perfd's Unix socket, which is in a folder that all nodes have in common."""

    def __init__(self, *off_s):
        super().__init__(len(off_s))
        self.off_s = dict(zip(self.names(), off_s))

    def start_agent(self, node, flags=(), env=None, **kwargs):
        self.agents[node] = self.spawn(f"agent-{node}", self.fleet[node].command(
            "env", f"LD_PRELOAD={PUPPETS / 'clock_off.so'}", f"CLOCK_OFF_S={self.off_s[node]}", BIN / "perf-agent", "--address",
            f"unix:{self.socket}", "--spool-dir", "/run/spool", *flags), env=env, **kwargs)
        return self.agents[node]


@pytest.mark.usefixtures("several_nodes")
def test_nodes_whose_wall_clocks_are_an_hour_off():
    with WrongWallClocks(HOUR_S, -HOUR_S) as f:
        job = FleetJob(f, slow=9)

        def profile():
            stored, begin_ns = StoredWindows(f), time.time_ns()
            made = f.submit("--command", "fleet", "--duration", "10s", "--variants", "LS,NO_DIV", "--overhead", "20%")
            status = f.wait_over(made, 60)
            windows, end_ns = [w for w in stored.end() if w.profile == made], time.time_ns()
            assert status["state"] == "DONE", (status["state"], notices(f, made))
            report = f.json("report", made)
            check_times(f, made, report, [w.start_ns for w in windows], begin_ns, end_ns)
            return report, windows
        report, windows = cluster.profile_again(profile, lambda made: made[0]["injection"]["cost"]["shadows"] > 0)
        said = notices(f, report["status"]["id"])
        for name, words in (("node1", f"{HOUR_S} s ahead of perfd's"), ("node2", f"{HOUR_S} s behind perfd's")):
            assert f"clock differs from the daemon's by {'-' if 'behind' in words else ''}3" in f.log(f"agent-{name}"), name
            assert f"the clock of node {name} is {words}" in said, said
        check_sums(report)
        assert {w.node for w in windows} == set(f.fleet) and all(samples_of(report, name) > 100 for name in f.fleet)
        assert report["totals"]["unknown"]["share"] < 0.05 and loop_row(report)["share"] > 0.3, report["totals"]
        covered = [n["covered_ns"] / 1e9 for n in report["nodes"]]
        print(f"   loop {loop_row(report)['share']:.2f}, covered {[round(s, 2) for s in covered]} s, "
              f"{report['injection']['cost']['shadows']} shadows, {report['injection']['shared_ns'] / 1e6:.0f} ms overlapped")
        assert len(covered) == 2 and all(9.5 < seconds < 11.5 for seconds in covered), covered
        job.ends()


def check_times(f, profile, report, starts, begin_ns, end_ns):
    """All by perfd's clock: windows, what was done to ranks, when the profile began, and between which seconds loops were seen."""
    audit = [entry["unix_ns"] for entry in f.json("audit", profile)["entries"]]
    assert starts and audit
    for what, times in (("windows", starts), ("audit", audit), ("started", [report["status"]["started_unix_ns"]])):
        assert begin_ns - 2e9 < min(times) and max(times) < end_ns + 2e9, (what, begin_ns, times, end_ns)
    for row in report["loops"]:
        assert 0 <= row["first_seen_ns"] <= row["last_seen_ns"] < 20e9, (row["function"], row["first_seen_ns"], row["last_seen_ns"])


# ---- perfd and a node, both away ---------------------------------------------------------------------------------

@pytest.mark.usefixtures("several_nodes")
def test_perfd_is_killed_while_a_node_is_cut_off():
    with Fleet(2, before_agent=keep_every_window) as f:
        job = FleetJob(f, slow=9)
        profile = f.submit("--command", "fleet", "--duration", "20s")
        f.wait_state(profile, ("SAMPLING",), 20)
        time.sleep(3)
        f.fleet["node2"].cut_off()
        time.sleep(3)
        f.daemon.kill()
        f.daemon.wait(10)
        time.sleep(2)
        f.start_daemon()
        f.wait_connected(1)
        time.sleep(2)
        f.fleet["node2"].reconnect()
        status = f.wait_over(profile, 60)
        assert status["state"] == "DONE", (status["state"], notices(f, profile))
        check_every_window_once(f, profile, 20)
        job.ends()


# ---- the store --------------------------------------------------------------------------------------------------

def second_perfd(c, store, *prefix):
    return subprocess.run([*map(str, prefix), str(BIN / "perfd"), "--store-dir", str(store), "--socket", str(c.dir / "second.sock"),
                           "--metrics-listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=30)


def test_two_daemons_on_one_store(c):
    job = c.spawn("job", [PUPPETS / "restless", "spin", 30])
    profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "8s")
    c.wait_state(profile, ("SAMPLING",), 20)
    (c.dir / "other-name").symlink_to(c.dir / "store")
    for store in (c.dir / "store", c.dir / "other-name"):
        run = second_perfd(c, store)
        assert run.returncode == 1 and f"another perfd (pid {c.daemon.pid})" in run.stderr and "--store-dir" in run.stderr, run
    if os.geteuid() == 0:
        run = second_perfd(c, c.dir / "store", *nodes.unshare("--pid", "--mount", "--fork", "--mount-proc"))
        assert run.returncode == 1 and "another perfd" in run.stderr, run
    assert not (c.dir / "second.sock").exists()
    assert c.wait_over(profile, 30)["state"] == "DONE"
    # The lock goes with its holder, whatever way that ends.
    c.daemon.kill()
    c.daemon.wait(10)
    c.start_daemon()
    c.wait_connected(1)
    check_sums(c.json("report", profile))
    job.kill()


# ---- scraping ---------------------------------------------------------------------------------------------------

class Scraper:
    """Reads the page without a pause. A daemon that is away is no error; a page that is not whole is."""

    def __init__(self, url):
        self.url, self.pages, self.refused, self.bad, self.over = url, 0, 0, [], threading.Event()
        self.thread = threading.Thread(target=self.loop, daemon=True)
        self.thread.start()

    def loop(self):
        while not self.over.is_set():
            try:
                with urllib.request.urlopen(self.url, timeout=10) as answer:
                    text = answer.read().decode()
            except (urllib.error.URLError, ConnectionError, TimeoutError, OSError) as error:
                self.refused += 1
                if isinstance(error, urllib.error.HTTPError):
                    self.bad.append(f"HTTP {error.code}")
                time.sleep(0.01)
                continue
            except Exception as error:  # noqa: BLE001 - cut off in the middle, for one
                self.refused += 1
                self.bad.append(repr(error))
                continue
            self.pages += 1
            self.bad += page_faults(text)

    def end(self):
        self.over.set()
        self.thread.join(20)
        assert not self.thread.is_alive(), "a scrape does not end"
        return self


def page_faults(text):
    lines = text.splitlines()
    series = [line.rsplit(" ", 1)[0] for line in lines if line and not line.startswith("#")]
    faults = []
    if not text.endswith("\n"):
        faults.append("cut off: " + text[-80:])
    if len(series) != len(set(series)):
        faults.append("a series is there twice")
    if sum(s.startswith("perfd_build_info") for s in series) != 1:
        faults.append(f"perfd_build_info is not there once: {len(lines)} lines")
    return faults


class OnePage(Cluster):
    """A perfd whose page has the same address after every restart."""

    def __init__(self):
        super().__init__()
        self.configuration = self.dir / "perfd.yaml"
        self.configure("info")
        self.daemon_flags = ["--config", self.configuration]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.page = f"127.0.0.1:{free.getsockname()[1]}"

    def configure(self, level):
        self.configuration.write_text(f"log: {{ level: {level} }}\n")

    def spawn(self, name, command, *rest, **kwargs):
        return super().spawn(name, [self.page if word == "127.0.0.1:0" else word for word in command], *rest, **kwargs)


def test_scrapes_go_on_during_reload_and_restart():
    with OnePage() as c:
        job = c.spawn("job", [PUPPETS / "restless", "spin", 60])
        profile = c.submit("--pid", job.pid, "--node", "node1", "--duration", "12s")
        c.wait_state(profile, ("SAMPLING",), 20)
        scrapers = [Scraper(f"http://{c.page}/metrics") for _ in range(3)]
        reloads = reload_many_times(c)
        refused_by_reload = sum(s.refused for s in scrapers)
        for ending in (signal.SIGTERM, signal.SIGKILL):
            c.daemon.send_signal(ending)
            code = c.daemon.wait(20)
            assert ending == signal.SIGKILL or code == 0, code
            c.start_daemon()
            c.wait_connected(1)
        pages = sum(s.pages for s in scrapers)
        wait_until(lambda: sum(s.pages for s in scrapers) > pages + 30, 20, "the page is served again")
        status = c.wait_over(profile, 40)
        found = [s.end() for s in scrapers]
        print(f"   {sum(s.pages for s in found)} pages, {reloads} reloads, {sum(s.refused for s in found)} scrapes while perfd "
              f"was away, {sum(len(s.bad) for s in found)} of them not whole")
        assert refused_by_reload == 0, "a reload is no outage"
        assert status["state"] == "DONE", status
        check_sums(c.json("report", profile))
        # A kill may cut one answer of each scraper off; a page that arrives as a whole is whole.
        cut = [b for s in found for b in s.bad if "IncompleteRead" in b or "RemoteDisconnected" in b]
        assert len(cut) <= 6 and [b for s in found for b in s.bad if b not in cut] == [], [s.bad for s in found]
        job.kill()


def reload_many_times(c):
    """Every third file is broken: what was goes on."""
    for number in range(21):
        c.configure(("debug", "info", "loud")[number % 3])
        c.daemon.send_signal(signal.SIGHUP)
        time.sleep(0.15)
    assert c.daemon.poll() is None, "SIGHUP ends nothing"
    assert "loud" in c.log("perfd"), "what is wrong with the file is said"
    c.configure("info")
    return 21


# ---- neighbouring versions --------------------------------------------------------------------------------------

def heartbeat(extra=b""):
    return raw_grpc.field(2, raw_grpc.field(1, 12345) + raw_grpc.field(3, 0) + extra)


def newer_register(node, stream):
    """As an agent of the next version: everything of this one, and fields that this perfd has never heard of."""
    body = raw_grpc.field(1, node) + raw_grpc.field(2, "99.1.0") + raw_grpc.field(3, 1) + raw_grpc.field(4, stream)
    body += raw_grpc.field(5, "instance") + raw_grpc.field(20, 1) + raw_grpc.field(900, 7) + raw_grpc.field(901, "new")
    return raw_grpc.field(1, body)


class Conversation:
    """An agent's stream by hand: what perfd sends, decoded as far as its kinds."""

    def __init__(self, c):
        self.talk = raw_grpc.Talk(c.socket)
        self.talk.call(raw_grpc.CONNECT)
        self.bytes = b""

    def say(self, body):
        self.talk.say(raw_grpc.message(body))

    def listen(self, seconds):
        self.bytes += self.talk.hear(b"\xff never \xff", seconds)

    def kinds(self):
        """The numbers of the DaemonMessage fields so far."""
        return [number for body in grpc_messages(self.bytes) for number, _ in fields(body)]

    def close(self):
        self.talk.socket.close()


def grpc_messages(data):
    """The messages in the DATA frames of a server's side of a connection. Source: RFC 9113 section 4.1."""
    payload, at = b"", 0
    while at + 9 <= len(data):
        size, kind = int.from_bytes(data[at:at + 3], "big"), data[at + 3]
        if kind == raw_grpc.DATA:
            payload += data[at + 9:at + 9 + size]
        at += 9 + size
    at = 0
    while at + 5 <= len(payload):
        size = int.from_bytes(payload[at + 1:at + 5], "big")
        if at + 5 + size > len(payload):
            return
        yield payload[at + 5:at + 5 + size]
        at += 5 + size


def node_row(c, name):
    return next((n for n in c.json("nodes")["nodes"] if n["node"] == name), None)


def connected(c, name):
    row = node_row(c, name)
    return row is not None and row["connected"]


def test_an_agent_of_the_next_version(c):
    talk = Conversation(c)
    talk.say(newer_register("next", "1" * 32))
    wait_until(lambda: connected(c, "next"), 10, "it is welcome")
    assert node_row(c, "next")["version"] == "99.1.0", node_row(c, "next")
    talk.say(heartbeat(raw_grpc.field(950, "more to say") + raw_grpc.field(951, 3)))
    wait_until(lambda: node_row(c, "next")["resident_bytes"] == 12345, 10, "what is known of it is heard")
    talk.listen(1)
    # Field 20 of DaemonMessage, ClockProbe, goes to those who can answer it.
    assert 1 in talk.kinds() and 20 in talk.kinds(), talk.kinds()
    assert connected(c, "next")
    # A kind of message from the future ends that stream, with a reason, and no other.
    talk.say(raw_grpc.field(77, raw_grpc.field(1, 1)))
    heard = talk.talk.hear(b"newer agent", 5)
    assert b"one of a newer agent" in heard, heard
    wait_until(lambda: not connected(c, "next"), 10, "its stream has ended")
    assert connected(c, "node1") and c.daemon.poll() is None
    talk.close()


def test_an_agent_of_the_version_before(c):
    talk = Conversation(c)
    talk.say(raw_grpc.register("before", protocol=1, stream="2" * 32))
    wait_until(lambda: connected(c, "before"), 10, "it is welcome")
    talk.say(heartbeat())
    profile = c.submit("--command", "no-such-program", "--node", "before", "--duration", "3s")
    talk.listen(2)
    # Welcome and Start, as ever; nothing that it would take for nonsense.
    assert {1, 2} <= set(talk.kinds()) and max(talk.kinds()) < 20, talk.kinds()
    status = c.wait_over(profile, 30)
    text = " ".join(n["text"] for n in status["notices"])
    assert status["state"] == "FAILED" and "before did not answer within 10 s" in text, status
    talk.close()


@pytest.mark.small
def test_protocols_that_do_not_match_are_refused_with_both_numbers(c):
    for protocol in (0, 2, 1 << 30):
        with raw_grpc.Talk(c.socket) as talk:
            talk.call(raw_grpc.CONNECT)
            talk.say(raw_grpc.message(raw_grpc.register("odd", protocol=protocol)))
            heard = talk.hear(b"install the same version on both")
            assert f"speaks protocol {protocol}, this perfd".encode() in heard, heard
            assert b"install the same version on both" in heard, heard
        assert node_row(c, "odd") is None or not connected(c, "odd")
    assert connected(c, "node1")


class OtherDaemon:
    """A perfd of another version, as far as an agent notices: greets, says what it is told to, keeps what it hears."""

    def __init__(self, path, *messages):
        self.path, self.heard, self.messages, self.peer = str(path), b"", messages, None
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(4)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.socket.accept()
                self.peer = peer
                with peer, contextlib.suppress(OSError):
                    self.converse(peer)

    def converse(self, peer):
        peer.settimeout(20)
        heard = b""
        peer.sendall(raw_grpc.frame(raw_grpc.SETTINGS, 0, 0))
        while raw_grpc.CONNECT.encode() not in heard:
            piece = peer.recv(65536)
            if not piece:
                return
            heard += piece
        headers = raw_grpc.header_block([(":status", "200"), ("content-type", "application/grpc")])
        peer.sendall(raw_grpc.frame(raw_grpc.SETTINGS, 1, 0) + raw_grpc.frame(raw_grpc.HEADERS, raw_grpc.END_HEADERS, 1, headers))
        for body in self.messages:
            peer.sendall(raw_grpc.frame(raw_grpc.DATA, 0, 1, raw_grpc.message(body)))
        self.heard = heard
        while True:
            piece = peer.recv(65536)
            if not piece:
                return
            self.heard += piece

    def close(self):
        for end in (self.socket, self.peer):  # whoever waits at one wakes up
            with contextlib.suppress(OSError, AttributeError):
                end.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(30)
        os.unlink(self.path)


def test_an_agent_under_a_daemon_of_the_next_version_whose_wall_clock_is_wrong():
    with Cluster(nodes=()) as c:
        c.daemon.terminate()
        assert c.daemon.wait(15) == 0
        welcome = raw_grpc.field(1, raw_grpc.field(1, "99.1.0") + raw_grpc.field(2, 5000) + raw_grpc.field(3, time.time_ns() - 3600 * 10**9) +
                                 raw_grpc.field(4, 0) + raw_grpc.field(900, "news") + raw_grpc.field(901, 9))
        of_the_future = raw_grpc.field(88, raw_grpc.field(1, "stand on your head"))
        doctor = raw_grpc.field(5, raw_grpc.field(1, 4711) + raw_grpc.field(900, 1))
        other = OtherDaemon(c.socket, welcome, of_the_future, doctor)
        try:
            agent = c.start_agent("node1")
            wait_until(lambda: "a message of no use here" in c.log("agent-node1"), 20, "it says what it does not know")
            # It has not taken offence: the next command is carried out. (AgentMessage.doctor, DoctorResult.request_id.)
            wait_until(lambda: raw_grpc.field(1, 4711) in other.heard and b"perf_event_paranoid" in other.heard, 20, "it answers")
            # The other daemon's clock stands still: what the agent needs to begin is part of the difference.
            differs = re.search(r"this node's clock differs from the daemon's by ([0-9.]+) s", c.log("agent-node1"))
            assert differs and 3600 <= float(differs.group(1)) < 3610, c.log("agent-node1")
            assert agent.poll() is None and "trying again" not in c.log("agent-node1"), c.log("agent-node1")
        finally:
            other.close()
        c.start_daemon()
        c.wait_connected(1)


if __name__ == "__main__":
    cluster.pytest_file(__file__)
