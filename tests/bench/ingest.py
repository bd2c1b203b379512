#!/usr/bin/env python3
"""perfd under simulated agents: rows per second, CPU and memory of the daemon.

Usage: tests/bench/ingest.py [--build DIR] [--agents 1000] [--windows 12] [--interval-ms 5000] [--instructions 0] [--perf]

With --instructions N each loop of each rank has sampled accesses of N instructions to memory besides.

With --perf it also says where the daemon's CPU time goes: `perf record` follows it, each stack counts for the innermost
part of perfd it passes through (PARTS), and what the kernel does for a part belongs to that part.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from agent_cost import usage  # noqa: E402


# From the innermost frame outwards the first match wins; what matches nothing belongs to its thread.
PARTS = (
    ("SQLite", r"sqlite3"),
    ("control and metrics",
     r"perfd::(?:daemon::)?(SessionTable|ProfileSession|NodeSession|AgentRegistry|DoctorFanout|Ingest|Metrics)"),
    ("report",
     r"perfd::(?:daemon::)?(BuildReport|ReportBuilder|TopLoops|RankTable|SpreadOf)|perfd::v1::Report|perfd::v1::RankShare"),
    ("aggregation", r"perfd::(?:daemon::)?(ProfileAggregate|Results|Aggregate|Counts|Richer|SerializeAggregate)"),
    ("check of the window", r"perfd::wire::"),
    ("protobuf encode", r"Serialize(AsString|ToString|PartialTo\w+|WithCachedSizes\w*)|_InternalSerialize|ByteSizeLong"),
    ("protobuf decode", r"google::protobuf|perfd::v1::"),
    ("gRPC", r"grpc|chttp2"),
)
THREADS = {"perfd-merge": "aggregation", "perfd-store": "SQLite", "perfd-tick": "control and metrics",
           "perfd-metrics": "control and metrics"}


def part_of(thread, frames):
    for name in frames:
        for part, pattern in PARTS:
            if re.search(pattern, name):
                return part
    return THREADS.get(thread, "gRPC")


def breakdown(data):
    """Shares of the samples of a perf.data file by part, largest first."""
    script = subprocess.run(["perf", "script", "-i", data, "--no-inline", "-F", "comm,ip,sym"], capture_output=True,
                            text=True, timeout=900)
    counts = collections.Counter()
    for stack in script.stdout.split("\n\n"):
        thread, *frames = [line.strip() for line in stack.splitlines() if line.strip()] or [""]
        if frames:
            counts[part_of(thread, [frame.partition(" ")[2] for frame in frames])] += 1
    total = sum(counts.values()) or 1
    return {"stacks": sum(counts.values())} | {part: round(n / total, 3) for part, n in counts.most_common()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--windows", type=int, default=12)
    parser.add_argument("--interval-ms", type=int, default=5000)
    parser.add_argument("--instructions", type=int, default=0)
    parser.add_argument("--perf", action="store_true")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    os.environ["PERFD_BUILD_DIR"] = str(pathlib.Path(args.build).resolve())
    import cluster
    with tempfile.TemporaryDirectory() as scratch, cluster.Cluster(nodes=()) as c:
        data, perf = f"{scratch}/perf.data", None
        fake = subprocess.Popen([cluster.BIN / "fake_agents", "--address", f"unix:{c.socket}", "--agents",
                                 str(args.agents), "--windows", str(args.windows), "--interval-ms",
                                 str(args.interval_ms), "--instructions", str(args.instructions)], stdout=subprocess.PIPE, text=True)
        try:
            assert "connected" in fake.stdout.readline(), "the agents did not connect"
            if args.perf:
                # No frame pointers in a release build: perf unwinds copies of the stacks afterwards.
                perf = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", "499", "--call-graph",
                                         "dwarf,16384", "-p", str(c.daemon.pid), "-o", data])
            cpu0, before = usage(c.daemon.pid)
            # Long enough that the end of the profile does not fall into the measured span.
            seconds = max(60, args.windows * args.interval_ms // 1000 + 30)
            profile = c.submit("--command", "simulation", "--duration", f"{seconds}s")
            result = json.loads(fake.stdout.readline())
            cpu1, after = usage(c.daemon.pid)
            fake.wait(60)
        finally:
            if fake.poll() is None:
                fake.kill()
            if perf is not None:
                perf.terminate()
                perf.wait(120)
        status = c.json("status", profile)
        result.update(daemon_cpu_seconds=round(cpu1 - cpu0, 2),
                      daemon_share_of_core=round((cpu1 - cpu0) / result["seconds"], 3),
                      daemon_resident_mib_before=round(before, 1), daemon_resident_mib=round(after, 1),
                      samples_stored=status["samples"], state=status["state"])
        if args.perf:
            result["cpu"] = breakdown(data)
        print(json.dumps(result))


if __name__ == "__main__":
    main()
