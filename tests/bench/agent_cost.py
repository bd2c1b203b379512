#!/usr/bin/env python3
"""What the agent costs: CPU and memory idle and while sampling, and the time from submit to the first sample.

Usage: tests/bench/agent_cost.py [--build DIR] [--idle 30] [--profiles 10]
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))


def usage(pid):
    """CPU seconds and resident MiB of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--idle", type=int, default=30)
    parser.add_argument("--profiles", type=int, default=10)
    args = parser.parse_args()
    os.environ["PERFD_BUILD_DIR"] = str(pathlib.Path(args.build).resolve())
    import cluster
    with cluster.Cluster() as c:
        pid = c.agents["node1"].pid
        time.sleep(2)
        cpu0, _ = usage(pid)
        time.sleep(args.idle)
        cpu1, idle_rss = usage(pid)
        idle = (cpu1 - cpu0) / args.idle
        c.mpirun("job", 2, [cluster.PUPPETS / "counting", 10**8, 60000], threads=2)
        cluster.wait_until(lambda: len(cluster.ranks_of("counting")) == 2, 20, "ranks run")
        first = []
        for _ in range(args.profiles):
            profile = c.submit("--command", "counting", "--duration", "1s")
            status = c.wait_over(profile)
            first.append(status["submit_to_first_sample_ns"] / 1e6)
        profile = c.submit("--command", "counting", "--duration", "35s")
        time.sleep(3)
        cpu0, _ = usage(pid)
        time.sleep(30)
        cpu1, rss = usage(pid)
        c.wait_over(profile)
        print(json.dumps({
            "idle_cpu_share_of_core": round(idle, 5), "idle_resident_mib": round(idle_rss, 1),
            "sampling_cpu_share_of_core": round((cpu1 - cpu0) / 30, 5), "sampling_resident_mib": round(rss, 1),
            "threads_sampled": 4,
            "submit_to_first_sample_ms": {"median": round(statistics.median(first), 1), "max": round(max(first), 1)}}))


if __name__ == "__main__":
    main()
