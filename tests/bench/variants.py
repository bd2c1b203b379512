#!/usr/bin/env python3
"""What measuring by variants costs and how true it is, on this machine, as one JSON line per figure.

  variants.py fidelity   T(REF in the shadow) / T(REF live) for kernels of the size of L1, L2 and memory, 4 KiB and huge pages
  variants.py spread     saturations of the same loop in several profiles: largest difference from their median
  variants.py cost [KERNEL] [BUDGET]
                         accounted against observed added wall time over interleaved pairs; divide keeps its pace better
                         than triad, and a larger BUDGET than 2% stands out of what noise there is
  variants.py verdict    time from submit to the LS/FP/DL1 verdict, of one loop and of twelve
"""
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
from cluster import Cluster, PUPPETS  # noqa: E402

KERNEL = PUPPETS / "kernels_gcc_avx2"
SIZES = {"L1": 1200, "L2": 40_000, "memory": 2_000_000}
HUGE_PAGES = {"PUPPET_PAGES": "huge"}  # the puppet maps its arrays itself: no tunable of malloc would reach them
OVER = ("DONE", "PARTIAL", "FAILED", "CANCELLED")


def huge_kilobytes(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"AnonHugePages:\s+(\d+)", text).group(1))


def follow(c, name, begin):
    """Seconds from `begin` until each loop had a verdict, by the loop's id; they are asked for until the profile is over."""
    known = {}
    while c.json("status", name)["state"] not in OVER:
        for v in c.json("report", name)["verdicts"]:
            if v["bound"] != "unknown":
                known.setdefault(v["loop_id"], round(time.monotonic() - begin, 1))
        time.sleep(0.5)  # every perfctl takes its time from the cores of the job
    return known


def profile(c, kernel, n, threads=1, seconds=12, variants="LS,FP,DL1", overhead="20%", env=None):
    """The measured loop of one profile, and how long its verdict took."""
    job = c.spawn("job", [KERNEL, kernel, n, 0, threads], env={"OMP_WAIT_POLICY": "passive", **(env or {})})
    time.sleep(0.5)
    huge = huge_kilobytes(job.pid)
    begin = time.monotonic()
    name = c.submit("--pid", job.pid, "--duration", f"{seconds}s", "--variants", variants, "--overhead", overhead)
    verdict = min(follow(c, name, begin).values(), default=None)
    huge_after = huge_kilobytes(job.pid)
    job.terminate()
    job.wait(120)
    report = c.json("report", name)
    loop = max(report["verdicts"], key=lambda v: v["share"])
    loop["huge_kb"], loop["huge_after_kb"] = huge, huge_after
    return loop, report, verdict


def saturations(loop):
    return {v["variant"]: v["saturation"]["value"] for v in loop["variants"]}


def fidelity():
    with Cluster() as c:
        for kernel in ("triad", "divide"):
            for level, n in SIZES.items():
                for pages, env in (("4K", {}), ("huge", HUGE_PAGES)):
                    loop, _, _ = profile(c, kernel, n, env=env)
                    if (pages == "huge") != (loop["huge_kb"] > 0):
                        print(json.dumps({"figure": "fidelity", "kernel": kernel, "size": level, "pages": pages,
                                          "skipped": f"{loop['huge_kb']} kB are in huge pages: see "
                                          "/sys/kernel/mm/transparent_hugepage/enabled (should be madvise)"}), flush=True)
                        continue
                    print(json.dumps({"figure": "fidelity", "kernel": kernel, "size": level, "pages": pages,
                                      "huge_mb": loop["huge_kb"] // 1024, "huge_mb_after": loop["huge_after_kb"] // 1024,
                                      "value": loop["fidelity"],
                                      "protocol": loop["protocol"], "saturations": saturations(loop),
                                      "state": loop["state"], "refusals": loop["refusals"][:3]}), flush=True)


def spread():
    with Cluster() as c:
        for kernel, n in (("triad", SIZES["memory"]), ("divide", SIZES["L1"])):
            seen = [saturations(profile(c, kernel, n)[0]) for _ in range(5)]
            for variant in ("LS", "FP", "DL1"):
                values = [s[variant] for s in seen if variant in s]
                middle = statistics.median(values)
                print(json.dumps({"figure": "spread", "kernel": kernel, "variant": variant, "median": middle,
                                  "largest_difference": max(abs(v - middle) for v in values), "profiles": len(values)}),
                      flush=True)


def verdict():
    with Cluster() as c:
        for level, n in SIZES.items():
            _, _, seconds = profile(c, "triad", n, seconds=30, overhead="2%")
            print(json.dumps({"figure": "verdict", "size": level, "seconds": seconds}), flush=True)
        job = c.spawn("twelve", [PUPPETS / "twelve_loops"])
        time.sleep(1)
        for profile_of_program, duration in (("first", "60s"), ("second", "60s"), ("third", "120s")):
            begin = time.monotonic()
            name = c.submit("--pid", job.pid, "--duration", duration, "--variants", "LS,FP,DL1", "--overhead", "2%")
            seconds = follow(c, name, begin)
            report = c.json("report", name)
            found = {v["location_key"].split("|")[-1]: [v["bound"], seconds.get(v["loop_id"])] for v in report["verdicts"]}
            print(json.dumps({"figure": "verdict", "size": "twelve loops, 16 KB to 16 MB", "profile": profile_of_program,
                              "duration": duration, "verdicts": len(seconds), "loops": found,
                              "added_wall": report["added_wall"], "shadows": report["injection"]["cost"]["shadows"]}), flush=True)
        job.terminate()
        job.wait(60)


def waits(pid):
    """How often the threads of a process have waited for each other: as often for every step of a kernel."""
    statuses = [p.read_text() for p in pathlib.Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M).group(1)) for text in statuses)


def pace(pid, seconds):
    begin, before = time.monotonic(), waits(pid)
    time.sleep(seconds)
    return (waits(pid) - before) / (time.monotonic() - begin)


def cost(kernel="triad", budget="2%", pairs=12, seconds=10):
    """Pairs within one process: two runs of a program differ by more than the profile costs, depending on where its memory is."""
    with Cluster() as c:
        job = c.spawn("job", [KERNEL, kernel, 200_000, 0, 2], env={"OMP_WAIT_POLICY": "passive", "OMP_PROC_BIND": "true"})
        time.sleep(2)
        ratios, accounted = [], []
        for _ in range(pairs):
            before = pace(job.pid, seconds / 2)
            name = c.submit("--pid", job.pid, "--duration", f"{seconds}s", "--variants", "LS,FP,DL1,S2L,NO_STORE,CTRL", "--overhead", budget)
            during = pace(job.pid, seconds)  # without asking meanwhile: every perfctl takes its time from the two cores
            c.wait_over(name, 60)
            time.sleep(1)
            after = pace(job.pid, seconds / 2)
            added = c.json("report", name)["added_wall"]
            ratios.append((before + after) / 2 / during - 1)
            accounted.append(added["ratio"])
            print(json.dumps({"figure": "cost", "pair": len(ratios), "observed": ratios[-1], "accounted": added}), flush=True)
        job.terminate()
        job.wait(60)
        quartiles = statistics.quantiles(ratios, n=4)
        print(json.dumps({"figure": "cost", "kernel": kernel, "budget": budget, "pairs": pairs,
                          "observed_median": statistics.median(ratios),
                          "observed_quartiles": [quartiles[0], quartiles[2]],
                          "accounted_median": statistics.median(accounted)}))


if __name__ == "__main__":
    what, arguments = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    run = {"fidelity": fidelity, "spread": spread, "verdict": verdict, "cost": cost}.get(what)
    if run is None or len(arguments) > (2 if run is cost else 0):
        sys.exit(__doc__)
    run(*arguments)
