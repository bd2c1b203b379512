"""Reports for the page's tests: recorded ones, and what is made of them: many ranks, foreign texts, missing parts."""
import copy
import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent / "reports"
REPLAYED = "replayed"  # of tests/e2e/replay_test.py's program, six processes of it
RECORDED = ("svdcmp", "triad", "twelve_loops", "hpcc", "lammps")

# Names that a program may have in its symbols, its files and its environment.
HOSTILE = (
    "</script><script>window.harm = 1</script>",
    "<img src=x onerror='window.harm = 2'>",
    "<!--<script>",
    "\u2028\u2029window.harm = 3;\u202egnp.exe",
    "\"'`${window.harm = 4}\\u003cscript>",
    "$& $1 {{report}} {{script}} %s \x00\x1b[31m",
    "javascript:window.harm=5//<svg onload=window.harm=6>",
)


def recorded(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def many_ranks(ranks, threads):
    """As if `ranks` ranks on nodes of 16 had run the loops of the recorded job, some slower than others."""
    report = recorded("twelve_loops")
    own = report["ranks"][0]
    where = [f"node{r // 16:03d}" for r in range(ranks)]
    report["ranks"] = [{**own, "rank": r, "node": where[r], "pid": 1000 + r, "seconds": 20 + r % 7,
                        "compute_seconds": 15 + r % 5, "threads": threads} for r in range(ranks)]
    for number, row in enumerate(report["loops"]):
        row["ranks"] = [{"node": where[r], "rank": r, "samples": 100 + r % 9, "seconds": 0.5 + r % 9 / 10,
                         "share_of_rank": min(1, row["share"] * (1 + (r + number) % 4 / 10))} for r in range(ranks)]
        row["threads"] = [{"node": where[r], "rank": r, "pid": 1000 + r, "tid": 1000 + r + 100000 * t, "samples": 40 + t,
                           "share_of_thread": row["share"]} for r in range(ranks) for t in range(threads)]
    return report


def rich():
    """Everything a report can hold: several ranks that differ, classes of trips, call paths, losses, notices."""
    report = recorded("svdcmp")
    loop = report["verdicts"][0]
    first = loop["ranks"][0]
    loop["ranks"] = []
    for rank in range(6):
        one = copy.deepcopy(first)
        one.update(rank=rank, node=f"node{rank // 3}", outlier="LS 0.55, the others 0.90" if rank == 5 else "")
        for figure in one["figures"]:
            figure["saturation"]["value"] *= 1 - rank * 0.07
        loop["ranks"].append(one)
    loop.update(ranks_measured=6, ranks_total=8, ranks_left_out=2, agreement="5 of 6 ranks balanced", open=["GROUP(1)"])
    for summary in loop["variants"]:
        summary.update(ranks=6, rank_min=summary["saturation"]["value"] * 0.7, rank_max=summary["saturation"]["value"])
    classes = [{"shortest": 10, "longest": 20, "instances": 40, "time": 0.1, "bound": "unknown", "sure": False,
                "why": "too noisy", "figures": first["figures"]},
               {"shortest": 500, "longest": 500, "instances": 60, "time": 0.9, "bound": "memory_bound", "sure": True,
                "why": "", "figures": first["figures"]}]
    loop.update(trip_classes=classes, trip_rank="rank 2 on node0")
    first["trip_deciles"] = [10, 12, 14, 20, 100, 400, 500, 500, 500, 500, 500]
    second = copy.deepcopy(loop)
    second.update(loop_id=report["loops"][1]["id"], state="refused", bound="unknown", variants=[], gains=[], listings=[],
                  ranks=[], open=[], trip_classes=[], remarks=[], level="unknown", agreement="", ranks_measured=0,
                  fidelity={"value": 0, "low": 0, "high": 0},
                  refusals=[{"variant": "", "instruction": "0x401234", "reason": "writes shared memory", "count": 1}])
    report["verdicts"].append(second)
    report["ranks"] = [{**report["ranks"][0], "rank": r, "node": f"node{r // 3}", "ended_early": r == 4} for r in range(6)]
    for row in report["loops"]:
        row["ranks"] = [{**row["ranks"][0], "rank": r, "node": f"node{r // 3}", "share_of_rank": row["share"] * (6 + r) / 8}
                        for r in range(6)]
        row["threads"] = [{**row["threads"][0], "rank": r, "node": f"node{r // 3}"} for r in range(6)] if row["threads"] else []
    report["stacks"] = [{"rank": r, "frames": ["main", "solve", "Svdcmp"], "samples": 30} for r in range(6)]
    report["added_wall"] = {"sampling_ns": 4e7, "agents_ns": 6e7, "injection_ns": 1.5e8, "total_ns": 2.5e8, "ratio": 0.0125,
                            "provenance": "estimated"}
    report["accounting"].update(lost=30, kept=report["accounting"]["seen"] - 5, dropped_total=5, late_threads=1,
                                late_thread_cpu_ns=10**7)
    report["accounting"]["dropped"]["queue_full"] = 5
    report["missing_ratio"] = 0.014
    report["memory"] = recorded(REPLAYED)["memory"]
    report["status"]["notices"] = [{"severity": "warning", "code": "ok", "node": "node0", "pid": 0, "text": "a remark"}]
    return report


def dry_run():
    report = rich()
    report["status"]["dry_run"] = True
    report["verdicts"][0]["predicted"] = {"fork_ns": 1e6, "later_fault_ns": 2e6, "most_run_ns": 3e8}
    return report


def hostile():
    """Every text of the report but the words of perfd's own vocabulary is foreign."""
    keep = {"severity", "code", "state", "bound", "level", "provenance", "gain_provenance", "category", "base", "thread",
            "kernel_sampling_provenance", "instruction", "lowest", "highest", "id", "loop_id", "phase"}
    counter = iter(range(10**9))

    def bad(value, key):
        if isinstance(value, dict):
            return {k: bad(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [bad(v, key) for v in value]
        if isinstance(value, str) and key not in keep:
            return HOSTILE[next(counter) % len(HOSTILE)]
        return value

    report = bad(rich(), "")
    # And the vocabulary itself, which a neighbouring version may extend.
    report["verdicts"][0].update(bound=HOSTILE[0], level=HOSTILE[1], state=HOSTILE[2])
    report["nodes"][0]["provenance"] = HOSTILE[1]
    report["status"].update(state=HOSTILE[1], id=HOSTILE[0])
    report["status"]["notices"][0]["severity"] = "x onclick=window.harm=7"
    return report
