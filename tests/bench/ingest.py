#!/usr/bin/env python3
"""perfd under simulated agents: rows per second, CPU and memory of the daemon.

Usage: tests/bench/ingest.py [--build DIR] [--agents 1000] [--windows 12] [--interval-ms 5000]
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from agent_cost import usage  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--windows", type=int, default=12)
    parser.add_argument("--interval-ms", type=int, default=5000)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    os.environ["PERFD_BUILD_DIR"] = str(pathlib.Path(args.build).resolve())
    import cluster
    with cluster.Cluster(nodes=()) as c:
        fake = subprocess.Popen([cluster.BIN / "fake_agents", "--address", f"unix:{c.socket}", "--agents",
                                 str(args.agents), "--windows", str(args.windows), "--interval-ms",
                                 str(args.interval_ms)], stdout=subprocess.PIPE, text=True)
        try:
            assert "connected" in fake.stdout.readline(), "the agents did not connect"
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
        status = c.json("status", profile)
        result.update(daemon_cpu_seconds=round(cpu1 - cpu0, 2),
                      daemon_share_of_core=round((cpu1 - cpu0) / result["seconds"], 3),
                      daemon_resident_mib_before=round(before, 1), daemon_resident_mib=round(after, 1),
                      samples_stored=status["samples"], state=status["state"])
        print(json.dumps(result))


if __name__ == "__main__":
    main()
