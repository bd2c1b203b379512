#!/usr/bin/env python3
"""Added wall time of a profiled job: ratio over interleaved triples (plain, perfd, perf record) until it is known well.

Usage: tests/bench/overhead.py [--build DIR] [--frequency HZ] [--half-width 0.005] [--most 60]
Each triple runs the same fixed work three times, in an order that rotates. The ratio is of the slowest rank's time inside
the program. Stops when the 95 % interval of perfd's median ratio is narrower than the half width, or after --most triples.
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--frequency", type=int, default=199)
    parser.add_argument("--half-width", type=float, default=0.005)
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--steps", type=int, default=30000)
    parser.add_argument("--ranks", type=int, default=2)
    return parser.parse_args()


def interval(values, rounds=4000):
    """Bootstrap 95 % interval of the median."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def main():
    args = arguments()
    os.environ["PERFD_BUILD_DIR"] = str(pathlib.Path(args.build).resolve())
    import cluster
    program = cluster.PUPPETS / "counting"
    work = [program, args.steps, 60000]

    def seconds_of(c, name):
        times = [float(t) for t in re.findall(r"seconds ([0-9.]+)", c.log(name))]
        assert len(times) == args.ranks, c.log(name)
        return max(times)

    def run(c, kind, number):
        name = f"{kind}{number}"
        launcher = ()
        if kind == "perf":
            launcher = ("sh", "-c", f'exec perf record -q -F {args.frequency} -e cpu-clock -o '
                                    f'{c.dir}/perf.$OMPI_COMM_WORLD_RANK "$@"', "sh")
        job = c.mpirun(name, args.ranks, [*launcher, *work])
        profile = None
        if kind == "perfd":
            cluster.wait_until(lambda: len(cluster.ranks_of("counting")) == args.ranks, 20, "ranks run")
            profile = c.submit("--command", "counting", "--duration", "600s", "--frequency", f"{args.frequency}Hz")
        assert job.wait(300) == 0, c.log(name)
        taken = seconds_of(c, name)
        if profile:
            c.wait_over(profile, 60)
            report = c.json("report", profile)
            covered = report["nodes"][0]["covered_ns"] / 1e9
            return taken, covered / taken, report["overhead_ratio"]
        return taken, 0, 0

    with cluster.Cluster() as c:
        run(c, "plain", "warm-up")
        ratios, perf_ratios, coverage, accounted = [], [], [], []
        kinds = ["plain", "perfd", "perf"]
        for number in range(args.most):
            order = kinds[number % 3:] + kinds[:number % 3]
            taken = {kind: run(c, kind, number) for kind in order}
            ratios.append(taken["perfd"][0] / taken["plain"][0])
            perf_ratios.append(taken["perf"][0] / taken["plain"][0])
            coverage.append(taken["perfd"][1])
            accounted.append(taken["perfd"][2])
            low, high = interval(ratios)
            print(f"{number + 1:3d}: plain {taken['plain'][0]:.3f} s, perfd {ratios[-1]:.4f}, "
                  f"perf record {perf_ratios[-1]:.4f}; median {statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}]",
                  flush=True)
            if number >= 9 and (high - low) / 2 <= args.half_width:
                break
        low, high = interval(ratios)
        perf_low, perf_high = interval(perf_ratios)
        print(json.dumps({
            "pairs": len(ratios), "frequency_hz": args.frequency,
            "perfd_ratio": round(statistics.median(ratios), 4), "perfd_interval": [round(low, 4), round(high, 4)],
            "perf_record_ratio": round(statistics.median(perf_ratios), 4),
            "perf_record_interval": [round(perf_low, 4), round(perf_high, 4)],
            "covered_share_of_run": round(statistics.median(coverage), 3),
            "accounted_overhead_ratio": round(statistics.median(accounted), 5)}))


if __name__ == "__main__":
    assert subprocess.run(["perf", "--version"], capture_output=True).returncode == 0, "perf is not installed"
    main()
