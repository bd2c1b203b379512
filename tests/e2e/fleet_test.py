#!/usr/bin/env python3
"""Four nodes in name spaces: an MPI job across them is profiled as one, and a node whose network to perfd is cut loses
nothing, gives nothing twice, and holds nobody up for longer than it may."""
import contextlib
import ctypes
import os
import pathlib
import sqlite3
import struct
import threading
import time
import urllib.request

import pytest

import cluster
import nodes
from cluster import wait_until
from nodes import Fleet, FleetJob
from promises_test import Rank, unaltered
from worse_days_test import check_sums

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "puppets/fleet.c"
AWAY_S = 60     # Source: daemon/control/profile_session.h ControlLimits::away_ns
NOTICED_S = 45  # gRPC's keepalive (20 s, 10 s for the answer), a heartbeat and some patience

pytestmark = [pytest.mark.usefixtures("several_nodes"),
              pytest.mark.skipif(not (cluster.PUPPETS / "fleet").exists(), reason="the puppets are not built (mpicc is missing)")]


# ---- what agents sent -------------------------------------------------------------------------------------------

def fields(data):
    """(number, value) of every field of a protobuf message; value: int, or bytes. Source: protobuf's encoding guide."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
        elif kind == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        else:
            size = {1: 8, 5: 4}[kind]
            yield key >> 3, data[at:at + size]
            at += size


class Window:
    """Of proto/perfd/v1/sample.proto Window, what is checked here."""

    def __init__(self, body):
        top = {}
        self.pauses = []
        for number, value in fields(body):
            if number == 20:
                pause = dict(fields(value))
                self.pauses.append({"generation": pause.get(1, 0), "begin_ns": signed(pause.get(2, 0)),
                                    "pause_ns": signed(pause.get(3, 0)), "error_ns": signed(pause.get(4, 0))})
            top[number] = value
        self.profile, self.node = top[1].decode(), top[2].decode()
        self.sequence, self.start_ns, self.duration_ns = top[4], top[5], top[6]
        self.kept = dict(fields(top.get(14, b""))).get(2, 0)


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def spooled(node):
    """The windows that lie in the spool of a node, by sequence."""
    found = {}
    for path in sorted(node.spool.glob("*.window")):
        try:
            window = Window(path.read_bytes()[4:])  # behind the checksum
        except FileNotFoundError:
            continue  # stored by perfd in this moment
        found[window.sequence] = window
    return found


def keep_every_window():
    """For an agent: unlinkat says it did and does nothing, so that its spool still has every window it ever wrote."""
    # Source: seccomp(2); linux/bpf_common.h BPF_LD|BPF_W|BPF_ABS = 0x20, BPF_JMP|BPF_JEQ|BPF_K = 0x15, BPF_RET = 6;
    # SECCOMP_RET_ERRNO 0x00050000 with 0; unlinkat is number 263 on x86-64.
    program = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 263, 6, 0, 0, 0x00050000, 6, 0, 0, 0x7fff0000)
    code = ctypes.create_string_buffer(program)
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(header), 0, 0) != 0:
        os._exit(99)


class StoredWindows:
    """Reads along in perfd's database what it stores; it drops the windows of a profile at its end."""

    def __init__(self, fleet):
        self.path, self.windows, self.last, self.over = fleet.dir / "store/perfd.db", [], 0, threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=5)) as db:
            while not self.over.is_set():
                for number, body in db.execute("SELECT id, body FROM window WHERE id > ? ORDER BY id", (self.last,)):
                    self.last = number
                    self.windows.append(Window(body))
                time.sleep(0.2)

    def end(self):
        self.over.set()
        self.thread.join(10)
        return self.windows


def metrics(fleet):
    with urllib.request.urlopen(fleet.metrics_url(), timeout=10) as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines}


def total(found, name):
    return sum(value for key, value in found.items() if key.split("{")[0] == name)


def by_node(status):
    return {n["node"]: n for n in status["nodes"]}


def notices(fleet, profile):
    return " | ".join(f"{n['node']}: {n['text']}" for n in fleet.json("status", profile)["notices"])


def samples_of(report, node):
    return sum(r["samples"] for r in report["ranks"] if r["node"] == node)


def loop_row(report):
    line = [i for i, text in enumerate(SOURCE.read_text().splitlines(), 1) if "// LOOP divide" in text][0]
    rows = [r for r in report["loops"] if r["file"].endswith("fleet.c") and r["first_line"] <= line <= r["last_line"]]
    assert rows, (line, [(r["function"], r["first_line"], r["last_line"]) for r in report["loops"]])
    return max(rows, key=lambda r: r["samples"])


# ---- tests ------------------------------------------------------------------------------------------------------

@pytest.mark.small
def test_a_job_across_four_nodes_is_one_profile():
    with Fleet(4) as f:
        job = FleetJob(f, slow=2)
        time.sleep(2)
        inside = {name: nodes.pid_inside(pid) for name, pid in job.pids.items()}
        before = {name: Rank(pid).all() for name, pid in job.pids.items()}
        report, windows = cluster.profile_again(lambda: profile_of_one_job(f, inside), lambda made: verdict_of(made[0])["bound"] != "unknown")
        after = {name: Rank(pid).all() for name, pid in job.pids.items()}
        check_verdict(report)
        check_leases(f, report, windows)
        for name in job.pids:
            unaltered(before[name], after[name])
        job.ends_right()


def profile_of_one_job(f, inside):
    """(its report, its windows): all that holds whether or not it could name the bound."""
    stored = StoredWindows(f)
    profile = f.submit("--command", "fleet", "--duration", "24s", "--variants", "LS,FP,NO_DIV", "--overhead", "20%")
    status = f.wait_over(profile, 120)
    windows = [window for window in stored.end() if window.profile == profile]
    report = f.json("report", profile)
    assert status["state"] == "DONE", (status["state"], notices(f, profile))
    check_one_job(report, inside)
    check_imbalance(report)
    return report, windows


def check_one_job(report, inside):
    check_sums(report)
    found = {r["node"]: r for r in report["ranks"]}
    assert len(report["ranks"]) == 4 and sorted(found) == ["node1", "node2", "node3", "node4"], report["ranks"]
    for number, name in enumerate(sorted(found)):
        row = found[name]
        assert row["rank"] == number and row["world_size"] == 4 and row["pid"] == inside[name], (row, inside)
        assert row["samples"] > 100 and not row["ended_early"], row
    assert len({r["job_id"] for r in report["ranks"]}) == 1, report["ranks"]
    assert all(n["covered_ns"] > 23e9 for n in report["nodes"]) and len(report["nodes"]) == 4, report["nodes"]


def check_imbalance(report):
    row = loop_row(report)
    shown = [(r["node"], round(r["seconds"], 1)) for r in row["ranks"]]
    print(f"   loop {row['share']:.2f} of the job, imbalance {row['imbalance']:.2f}, worst {row['worst_rank']}: {shown}")
    # Rank 2 enters it twice as often: 2 over the mean of 1, 1, 2, 1.
    assert row["worst_rank"] == "rank 2 on node3", row["worst_rank"]
    assert abs(row["imbalance"] - 1.6) < 0.15, row["imbalance"]
    assert report["worst_rank"] == "rank 2 on node3", report["worst_rank"]


def verdict_of(report):
    row = loop_row(report)
    return next(v for v in report["verdicts"] if v["loop_id"] == row["id"])


def check_verdict(report):
    verdict = verdict_of(report)
    found = {v["variant"]: round(v["saturation"]["value"], 2) for v in verdict["variants"] if v["valid_runs"]}
    print(f"   {verdict['bound']} by {verdict['ranks_measured']} of {verdict['ranks_total']} ranks: {found}; "
          f"{verdict['cost']['shadows']} shadows")
    assert verdict["ranks_total"] == 4 and verdict["ranks_measured"] >= 3, verdict
    assert verdict["bound"].startswith("arithmetic") and found.get("LS", 9) < 0.7 and found.get("NO_DIV", 9) < 0.7, (
        found, verdict["why"], verdict["open"], verdict["refusals"])


def check_leases(f, report, windows):
    """Every node's clock was read, its pauses lie in the windows that all have, and the job is charged less than the sum."""
    pauses = {}
    for window in windows:
        for pause in window.pauses:
            pauses.setdefault(window.node, []).append(pause)
    assert sorted(pauses) == ["node1", "node2", "node3", "node4"], sorted(pauses)
    every = [p for found in pauses.values() for p in found]
    # A clock is trusted within 2 ms (core/analysis/lease_windows.h kMostClockErrorNs).
    assert all(0 <= p["error_ns"] <= 2_100_000 and p["begin_ns"] >= -p["error_ns"] for p in every), every
    shared = sum(len({name for name, found in pauses.items() if any(p["generation"] == g for p in found)}) > 1
                 for g in {p["generation"] for p in every})
    injection = report["injection"]
    print(f"   {len(every)} pauses in {len({p['generation'] for p in every})} generations, {shared} of them of several nodes; "
          f"{injection['cost']['pause_ns'] / 1e6:.0f} ms of pauses and {injection['cost']['stop_ns'] / 1e6:.0f} ms of stops cost the job {injection['added_wall_ns'] / 1e6:.0f} ms, "
          f"{injection['shared_ns'] / 1e6:.0f} ms overlapped; clocks within {max(p['error_ns'] for p in every) / 1e3:.0f} us")
    assert shared > 0 and injection["shared_ns"] > 0, injection
    assert injection["added_wall_ns"] < injection["cost"]["pause_ns"] + injection["cost"]["stop_ns"], injection
    audit = f.json("audit", report["status"]["id"])["entries"]
    assert {e["node"] for e in audit if e["action"] == "shadow"} == set(f.fleet), {e["node"] for e in audit}


def test_a_node_is_cut_off_and_returns():
    with Fleet(4, before_agent=keep_every_window) as f:
        job = FleetJob(f)
        profile = f.submit("--command", "fleet", "--duration", "36s")
        f.wait_state(profile, ("SAMPLING",), 20)
        time.sleep(5)
        node = f.fleet["node2"]
        node.cut_off()
        begin = time.monotonic()
        before = by_node(f.json("status", profile))
        time.sleep(15)
        wait_until(lambda: len(spooled(node)) >= before["node2"]["windows"] + 4, 10, "windows wait on the node")
        during = by_node(f.json("status", profile))
        waiting = len(spooled(node)) - during["node2"]["windows"]
        assert waiting >= 3, (waiting, during)
        assert all(during[n]["windows"] > before[n]["windows"] + 2 for n in ("node1", "node3", "node4")), (before, during)
        node.reconnect()
        away = time.monotonic() - begin
        wait_until(lambda: by_node(f.json("status", profile))["node2"]["windows"] >= during["node2"]["windows"] + waiting, 30,
                   "what had waited is stored")
        print(f"   away for {away:.1f} s, {waiting} windows waited, all stored {time.monotonic() - begin - away:.1f} s "
              f"after the return")
        status = f.wait_over(profile, 90)
        assert status["state"] == "DONE", (status["state"], notices(f, profile))
        check_every_window_once(f, profile, 36)
        check_page(f, report_of_all(f))
        job.ends()


def report_of_all(f):
    """What the spools of all nodes say: windows, samples."""
    every = [w for node in f.fleet.values() for w in spooled(node).values()]
    return len(every), sum(w.kept for w in every)


def check_page(f, sums):
    windows, samples = sums
    wait_until(lambda: total(metrics(f), "perfd_windows_stored_total") == windows, 15, "the page says so too")
    page = metrics(f)
    assert total(page, "perfd_samples_total") == samples, total(page, "perfd_samples_total")
    assert total(page, "perfd_windows_dropped_total") == 0, page
    print(f"   {windows} windows stored, {total(page, 'perfd_windows_duplicate_total'):.0f} came twice and counted once")


def check_every_window_once(f, profile, seconds):
    report, status = f.json("report", profile), by_node(f.json("status", profile))
    check_sums(report)
    windows = {name: spooled(node) for name, node in f.fleet.items()}
    for name, found in windows.items():
        sequences = sorted(found)
        assert sequences == list(range(1, len(sequences) + 1)), (name, sequences)
        sent = {"windows": len(found), "samples": sum(w.kept for w in found.values()),
                "covered_ns": sum(w.duration_ns for w in found.values())}
        stored = {"windows": status[name]["windows"], "samples": samples_of(report, name),
                  "covered_ns": status[name]["covered_ns"]}
        print(f"   {name}: {sent['windows']} windows, {sent['samples']} samples, {sent['covered_ns'] / 1e9:.2f} s")
        assert sent == stored, (name, sent, stored)
        ordered = [found[s] for s in sequences]
        gaps = [b.start_ns - a.start_ns - a.duration_ns for a, b in zip(ordered, ordered[1:])]
        assert max(map(abs, gaps)) < 0.3e9, f"{name} did not measure on while it was away: {gaps}"
        assert seconds - 0.5 < sent["covered_ns"] / 1e9 < seconds + 1.5, sent
    assert report["accounting"]["kept"] == report_of_all(f)[1], report["accounting"]
    wait_until(lambda: all(n["spooled_windows"] == 0 for n in f.json("nodes")["nodes"]), 15, "the agents hold nothing more")


def test_a_node_that_never_returns_ends_the_profile_in_time():
    with Fleet(4) as f:
        job = FleetJob(f)
        time.sleep(2)
        before = {name: Rank(pid).all() for name, pid in job.pids.items()}
        profile = f.submit("--command", "fleet", "--duration", "16s", "--variants", "LS,FP", "--overhead", "20%")
        f.wait_state(profile, ("INJECTING",), 30)
        time.sleep(2)
        node = f.fleet["node3"]
        node.cut_off()
        cut = time.monotonic()
        wait_until(lambda: all(f"{profile}: is over" in f.log(f"agent-{name}") for name in f.fleet), 40, "its agent ends by itself, too")
        time.sleep(1)
        for name, pid in job.pids.items():
            unaltered(before[name], Rank(pid).all())
        job.ends_right()
        status = f.wait_over(profile, AWAY_S + NOTICED_S + 20)
        took = time.monotonic() - cut
        print(f"   over {took:.0f} s after the cut: {status['state']}: {notices(f, profile)}")
        assert status["state"] == "PARTIAL" and took < AWAY_S + NOTICED_S, (status["state"], took)
        assert "node3" in notices(f, profile) and f"did not come back within {AWAY_S} s" in notices(f, profile)
        report = f.json("report", profile)
        check_sums(report)
        assert len(report["ranks"]) == 4, report["ranks"]
        covered = {n["node"]: n["covered_ns"] for n in report["nodes"]}
        assert all(15.5e9 < covered[n] < 17.5e9 for n in ("node1", "node2", "node4")) and covered["node3"] < 13e9, covered
        # What it measured alone comes too late for the state, but it is not lost: the report has it all the same.
        known, waiting = by_node(status)["node3"]["windows"], sorted(spooled(node))
        unsent = [sequence for sequence in waiting if sequence > known]
        assert len(unsent) >= 3 and unsent == list(range(known + 1, unsent[-1] + 1)), (known, waiting)
        node.reconnect()
        wait_until(lambda: not spooled(node), 60, "the node has given its windows away")
        late = wait_until(lambda: with_windows(f.json("report", profile), "node3", unsent[-1]), 20, "the report has them")
        check_sums(late)
        assert late["accounting"]["kept"] > report["accounting"]["kept"] and samples_of(late, "node3") > samples_of(report, "node3")
        assert all(samples_of(late, n) == samples_of(report, n) for n in ("node1", "node2", "node4")), late["ranks"]
        assert f.json("status", profile)["state"] == "PARTIAL"
        print(f"   back after {time.monotonic() - cut:.0f} s: {len(unsent)} late windows, now {samples_of(late, 'node3')} samples of it "
              f"instead of {samples_of(report, 'node3')}")


def with_windows(report, node, count):
    return report if any(n["node"] == node and n["windows"] == count for n in report["nodes"]) else None


if __name__ == "__main__":
    cluster.pytest_file(__file__)
