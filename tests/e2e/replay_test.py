#!/usr/bin/env python3
"""`perf-agent --replay`: a recording as a node of the cluster, beside a live one; accesses to memory by loop, instruction and rank."""
import contextlib
import json
import re
import shutil
import subprocess
import time
import urllib.request

import pytest

from cluster import BIN, Cluster, PUPPETS, ended_well, ranks_of, wait_until
from promises_test import Rank, unaltered
from recording_writer import Writer, data_src

pytestmark = [pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"), pytest.mark.small]

SOURCE = """
double a[4096];
__attribute__((noinline)) double Near(void) {
  double s = 0;
  for (int i = 0; i < 4096; i++) s += a[i];              /* NEAR */
  return s;
}
__attribute__((noinline)) double Far(void) {
  double s = 0;
  for (int i = 0; i < 4096; i++) s += a[(i * 77) & 4095] * 3;   /* FAR */
  return s;
}
int main(void) { double s = 0; for (;;) s += Near() + Far(); return s > 0; }
"""


class Program:
    """The job that was never run: its file, and where its loops load."""

    def __init__(self, folder, name="job"):
        self.path = folder / name
        (folder / "job.c").write_text(SOURCE)
        subprocess.run(["gcc", "-O1", "-g", "-no-pie", "-Wl,--build-id", "-o", self.path, folder / "job.c"], check=True, timeout=60)
        notes = subprocess.run(["readelf", "-nlW", self.path], capture_output=True, text=True, check=True, timeout=30).stdout
        self.build_id = bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", notes)[1])
        text = re.search(r"LOAD\s+0x([0-9a-f]+) 0x([0-9a-f]+) \S+ 0x([0-9a-f]+) \S+ R E", notes)
        self.offset, self.start, self.length = (int(group, 16) for group in text.groups())

    def load_in(self, function):
        """The address of the load of a function's loop, by objdump."""
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", self.path], capture_output=True,
                              text=True, check=True, timeout=30).stdout
        loads = re.findall(r"^\s+([0-9a-f]+):\s+(?:add|mov|mul)sd\s+(?:0x[0-9a-f]+)?\(%r(?!ip)\w+", code, re.M)
        assert loads, code
        return int(loads[0], 16)


NEAR_SAMPLES, FAR_SAMPLES, SECONDS = 300, 100, 12


def recording(program, path, pids=(200, 201), far_in="local"):
    """Of two processes: Near always finds its loads in L1, Far in DRAM, half of its pages without an entry in the DTLB."""
    w = Writer()
    for pid in pids:
        w.process(pid, program.path.name)
        w.map_code(pid, program.start, program.length, program.offset, program.path, program.build_id)
    events = []
    for pid in pids:
        near, far = program.load_in("Near"), program.load_in("Far")
        events += [(i * SECONDS * 10**9 // NEAR_SAMPLES, pid, near, ("hit", "l1"), ("hit", "l1"), 8) for i in range(NEAR_SAMPLES)]
        events += [(i * SECONDS * 10**9 // FAR_SAMPLES, pid, far, ("hit", far_in), ("hit", "walker") if i % 2 else ("hit", "l1"), 400)
                   for i in range(FAR_SAMPLES)]
    for at, pid, ip, level, tlb, latency in sorted(events):
        w.add(1, data_src("load", level, "none", tlb=tlb), tid=pid, pid=pid, time_ns=10**9 + at, latency=latency, ip=ip)
    w.write(path)


@contextlib.contextmanager
def replayed(cluster, paths, nodes):
    """One recording, or a list of them."""
    if isinstance(nodes, str):
        paths, nodes = [paths], [nodes]
    recordings = [word for path, node in zip(paths, nodes) for word in ("--replay", path, "--as", node)]
    agent = cluster.spawn(f"agent-{nodes[0]}", [BIN / "perf-agent", *recordings, "--address", f"unix:{cluster.socket}",
                                               "--spool-dir", cluster.dir / f"spool-{nodes[0]}"])
    try:
        yield agent
    finally:
        killed = agent.poll() is not None
        agent.terminate()
        assert agent.wait(timeout=20) == 0 or killed


def nodes_of(cluster):
    return {node["node"]: node for node in cluster.json("nodes")["nodes"]}


def place(found, function):
    return next(p for p in found["places"] if p["function"] == function)


def share(figures, border):
    return next(b for b in figures["beyond"] if b["border"] == border)


def test_a_recording_is_a_node(tmp_path):
    program = Program(tmp_path)
    path = tmp_path / "job.perf.data"
    recording(program, path)
    with Cluster(nodes=()) as cluster, replayed(cluster, path, "old-run"):
        wait_until(lambda: nodes_of(cluster).get("old-run", {}).get("connected"), 20, "the recording is connected")
        assert nodes_of(cluster)["old-run"]["replayed"]
        # Who does not name it does not ask it.
        refused = cluster.perfctl("submit", "--command", "job", "--duration", "60s")
        assert refused.returncode != 0 and "recording" in refused.stderr, refused.stderr
        other = cluster.submit("--node", "old-run", "--command", "nosuch", "--duration", "60s")
        cluster.wait_over(other)
        assert "job (pid 200)" in cluster.perfctl("status", other).stdout

        profile = cluster.submit("--node", "old-run", "--command", "job", "--duration", "60s")
        assert cluster.wait_over(profile)["state"] == "DONE"
        report = cluster.json("report", profile)
        assert report["provenance"] == "replayed" and len(report["ranks"]) == 2
        samples = 2 * (NEAR_SAMPLES + FAR_SAMPLES)
        assert report["accounting"]["seen"] == report["accounting"]["kept"] == samples
        loops = {row["function"]: row for row in report["loops"]}
        assert loops["Near"]["first_line"] == 5 and loops["Far"]["first_line"] == 10
        assert report["memory"] == cluster.json("memory", profile)["memory"]
        check_memory(report["memory"], program)
        notices = [notice["text"] for notice in report["status"]["notices"]]
        assert any("no event of its own for time" in text for text in notices), notices

        text = cluster.perfctl("memory", profile, "--loop", loops["Far"]["id"]).stdout
        assert "Far" in text and hex(program.load_in("Far")) in text and "page table walk" in text
        assert "Accesses to memory" in cluster.perfctl("report", profile).stdout
        with urllib.request.urlopen(cluster.metrics_url(), timeout=10) as answer:
            metrics = answer.read().decode()
        assert re.search(r"^perfd_agents_connected 0$", metrics, re.M), "a recording is none of the fleet"


def check_memory(found, program):
    near, far = place(found, "Near"), place(found, "Far")
    assert found["accesses"]["samples"] == 2 * (NEAR_SAMPLES + FAR_SAMPLES) and not any(found["lost"].values())
    assert (near["accesses"]["samples"], far["accesses"]["samples"]) == (2 * NEAR_SAMPLES, 2 * FAR_SAMPLES)
    assert near["loop"] and far["loop"]
    assert share(near, "l2")["share"] == 0 and share(far, "l2")["share"] == 1
    time_near, time_far = NEAR_SAMPLES * 8, FAR_SAMPLES * 400
    whole = share(found, "l3")
    assert abs(whole["share"] - time_far / (time_far + time_near)) < 1e-9
    assert whole["share_low"] <= whole["share"] <= whole["share_high"]
    walks = {row["result"]: row["samples"] for row in far["accesses"]["dtlb"]}
    assert walks == {"first_level": FAR_SAMPLES, "walk": FAR_SAMPLES}
    for function, at in ((near, program.load_in("Near")), (far, program.load_in("Far"))):
        assert [int(r["instruction"], 16) for r in function["references"]] == [at]
        assert sorted(rank["pid"] for rank in function["ranks"]) == [200, 201]
        assert {rank["rank"] for rank in function["ranks"]} == {0, 1}


def test_a_profile_shorter_than_the_recording_has_its_beginning(tmp_path):
    program = Program(tmp_path)
    path = tmp_path / "job.perf.data"
    recording(program, path)
    with Cluster(nodes=()) as cluster, replayed(cluster, path, "old-run"):
        wait_until(lambda: nodes_of(cluster).get("old-run", {}).get("connected"), 20, "the recording is connected")
        profile = cluster.submit("--node", "old-run", "--pid", "201", "--duration", "6s")
        cluster.wait_over(profile)
        found = cluster.json("memory", profile)["memory"]
        assert found["accesses"]["samples"] == (NEAR_SAMPLES + FAR_SAMPLES) // 2
        assert [rank["pid"] for rank in place(found, "Near")["ranks"]] == [201]
        assert "the first 6s of the recording: all of it is --duration 12s" in cluster.perfctl("status", profile).stdout


def test_a_file_of_another_build_is_not_read(tmp_path):
    program = Program(tmp_path)
    path = tmp_path / "job.perf.data"
    program.build_id = bytes(20)
    recording(program, path)
    with Cluster(nodes=()) as cluster, replayed(cluster, path, "old-run"):
        wait_until(lambda: nodes_of(cluster).get("old-run", {}).get("connected"), 20, "the recording is connected")
        profile = cluster.submit("--node", "old-run", "--command", "job", "--duration", "60s")
        cluster.wait_over(profile)
        report = cluster.json("report", profile)
        assert not report["loops"], "no name of a file that may be another one"
        assert "0000000000" in json.dumps(report["status"]["notices"]), "and what file would do"


def test_two_recordings_are_compared(tmp_path):
    """Of the program before and after its far array was made to fit L2."""
    program = Program(tmp_path)
    files = [tmp_path / "before.perf.data", tmp_path / "after.perf.data"]
    for path, far_in in zip(files, ("local", "l2")):
        recording(program, path, far_in=far_in)
    with Cluster(nodes=()) as c, replayed(c, files, ("before", "after")):
        c.wait_connected(2)
        profiles = [c.submit("--node", node, "--command", "job", "--duration", "60s") for node in ("before", "after")]
        for profile in profiles:
            assert c.wait_over(profile)["state"] == "DONE"
        found = c.json("diff", *profiles)
        loops = {loop["function"]: loop["memory"] for loop in found["loops"]}
        assert loops["Far"]["change"] == -1 and loops["Far"]["significant"], loops
        assert loops["Near"]["change"] == 0 and not loops["Near"]["significant"], loops
        assert found["memory"]["significant"] and found["memory"]["b_beyond_l2"] == 0
        text = c.perfctl("diff", *profiles).stdout
        print(text)
        assert re.search(r"! +-100\.0 .* Far ", text), text


NODES = ("r1", "r2", "r3", "r4")
STEPS = 90_000


def counting(c, name):
    return c.mpirun(name, 2, [PUPPETS / "counting", STEPS, 60_000], threads=2)


def output(c, name):
    return sorted(line for line in c.log(name).splitlines() if " check " in line)


def test_a_recorded_job_of_four_nodes_beside_a_live_one(tmp_path):
    """Both in one cluster at the same time: each has its own figures, labelled, and the live job is unharmed."""
    program = Program(tmp_path)
    files = []
    for i, node in enumerate(NODES):
        files.append(tmp_path / f"{node}.perf.data")
        recording(program, files[-1], pids=(200 + 10 * i, 201 + 10 * i))
    with Cluster() as c, replayed(c, files, NODES):
        c.wait_connected(1 + len(NODES))
        job = counting(c, "job")
        ranks = wait_until(lambda: len(ranks_of("counting")) == 2 and ranks_of("counting"), 20, "two ranks run")
        time.sleep(1)
        before = {pid: Rank(pid).all() for pid in ranks}
        live = c.submit("--command", "counting", "--duration", "8s", "--variants", "LS,FP,NO_DIV", "--overhead", "10%")
        old = c.submit("--node", "r[1-4]", "--command", "job", "--duration", "60s")
        assert c.wait_over(old)["state"] == "DONE" and c.wait_over(live)["state"] == "DONE"
        for pid in ranks:
            unaltered(before[pid], Rank(pid).all())

        recorded = c.json("report", old)
        samples = len(NODES) * 2 * (NEAR_SAMPLES + FAR_SAMPLES)
        assert recorded["provenance"] == "replayed" and recorded["accounting"]["kept"] == samples
        assert sorted({rank["node"] for rank in recorded["ranks"]}) == list(NODES) and len(recorded["ranks"]) == 2 * len(NODES)
        found = c.json("memory", old)["memory"]
        assert found["accesses"]["samples"] == samples and share(place(found, "Far"), "l2")["share"] == 1
        each = {(rank["node"], rank["pid"]) for rank in place(found, "Far")["ranks"]}
        assert each == {(rank["node"], rank["pid"]) for rank in recorded["ranks"]} and len(each) == 2 * len(NODES)

        report = c.json("report", live)
        assert report["provenance"] == "sampled" and {rank["node"] for rank in report["ranks"]} == {"node1"}
        assert {row["function"] for row in report["loops"]}.isdisjoint({"Near", "Far"})
        assert report["added_wall"]["ratio"] <= 0.1, report["added_wall"]
        pages = {name: page(c, profile, tmp_path / f"{name}.html") for name, profile in (("old", old), ("live", live))}
        assert "replayed" in pages["old"] and "Far" in pages["old"] and "Far" not in pages["live"]
        with urllib.request.urlopen(c.metrics_url(), timeout=10) as answer:
            metrics = answer.read().decode()
        assert re.search(r"^perfd_agents_connected 1$", metrics, re.M), "recordings are none of the fleet"
        beyond = re.findall(r'^perfd_loop_memory_beyond_l2_ratio\{.*profile="([^"]+)"', metrics, re.M)
        assert old in beyond, metrics[-2000:]
        ended_well(job, 90, lambda: c.log("job"))
        alone = counting(c, "alone")
        assert alone.wait(90) == 0 and output(c, "job") == output(c, "alone") != []


def page(c, profile, path):
    run = c.perfctl("report", profile, "--html", path)
    assert run.returncode == 0, run
    return path.read_text()


def test_an_interrupted_replay_is_not_counted_twice(tmp_path):
    program = Program(tmp_path)
    path = tmp_path / "long.perf.data"
    w = Writer()
    w.process(200, "job")
    w.map_code(200, program.start, program.length, program.offset, program.path, program.build_id)
    samples, at = 120_000, program.load_in("Near")
    for i in range(samples):  # 300 windows
        w.add(1, data_src("load", ("hit", "l1")), tid=200, pid=200, time_ns=10**9 + i * 1500 * 10**9 // samples, latency=8, ip=at)
    w.write(path)
    with Cluster(nodes=()) as cluster:
        with replayed(cluster, path, "old-run") as agent:
            wait_until(lambda: nodes_of(cluster).get("old-run", {}).get("connected"), 20, "the recording is connected")
            profile = cluster.submit("--node", "old-run", "--command", "job", "--duration", "1600s")
            wait_until(lambda: cluster.json("status", profile)["samples"] > 0, 20, "its first samples", 0.02)
            agent.kill()
            agent.wait(20)
            with replayed(cluster, path, "old-run"):
                status = cluster.wait_over(profile, 60)
                kept = cluster.json("report", profile)["accounting"]["kept"]
                if kept < samples:  # it was amid the replay
                    assert status["state"] == "PARTIAL" and "interrupted" in json.dumps(status["notices"]), status
                assert 0 < kept <= samples


def test_what_is_no_recording_ends_in_words(tmp_path):
    bad = tmp_path / "bad"
    bad.write_text("nothing of the kind")
    start = time.monotonic()
    for arguments, said in ((["--replay", bad], "bad"), (["--replay", tmp_path / "none"], "none"), (["--as", "x"], "--as")):
        run = subprocess.run([BIN / "perf-agent", *map(str, arguments), "--spool-dir", tmp_path / "spool"], capture_output=True, text=True,
                             timeout=30)
        assert run.returncode in (1, 2) and said in run.stderr, run.stderr
    assert time.monotonic() - start < 20
