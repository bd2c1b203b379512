#!/usr/bin/env python3
"""The parsers of run_all.py on outputs as the benches print them, its way with benches that fail, and the tables of the README.

Runs no bench. By itself, or with python3 -m pytest tests/bench/run_all_test.py."""
import json
import pathlib
import re
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run_all  # noqa: E402

ROOT = run_all.ROOT

OVERHEAD = ('  1: plain 9.012 s, perfd 1.0090, perf record 1.0040; median 1.0090 [1.0090, 1.0090]\n'
            '{"pairs": 11, "frequency_hz": 199, "perfd_ratio": 1.0085, "perfd_interval": [1.0037, 1.0136], '
            '"perf_record_ratio": 1.0036, "perf_record_interval": [0.9972, 1.0128], "covered_share_of_run": 0.98, '
            '"accounted_overhead_ratio": 0.0035}\n')
AGENT = ('{"idle_cpu_share_of_core": 0.00033, "idle_resident_mib": 19.1, "sampling_cpu_share_of_core": 0.004, '
         '"sampling_resident_mib": 37.0, "threads_sampled": 4, "submit_to_first_sample_ms": {"median": 146.2, "max": 267.4}}\n')
BIG = ('{"binary_mib": 296.3, "first_loops_seconds": 0.671, "cached_loops_seconds": 0.69, "hottest": "Hot() main.cc:8"}\n')
INGEST = ('{"agents": 1000, "windows_sent": 12000, "windows_acknowledged": 12000, "rows": 9216000, "seconds": 60.11, '
          '"rows_per_second": 153321, "failed": 0, "daemon_cpu_seconds": 10.8, "daemon_share_of_core": 0.18, '
          '"daemon_resident_mib_before": 80.0, "daemon_resident_mib": 593.0, "samples_stored": 1, "state": "SAMPLING"}\n')
INGEST_PARTS = INGEST.replace('"state": "SAMPLING"}', '"state": "SAMPLING", "cpu": {"stacks": 5041, "gRPC": 0.34, "SQLite": 0.21}}')
AGGREGATE = json.dumps({"context": {"num_cpus": 2}, "benchmarks": [
    {"name": "BM_AddWindowToALargeJob", "run_type": "iteration", "real_time": 27.0, "cpu_time": 26.1, "time_unit": "us"},
    {"name": "BM_ReportOf64000Ranks", "run_type": "iteration", "real_time": 415, "cpu_time": 410, "time_unit": "ms"}]}, indent=2)
HOST = '{"table": "host", "command": "injection_bench", "cpu": "AMD EPYC", "cpus": "2"}\n'
PASS = HOST + """{"table": "pass_through", "trip": 1, "without_ns": 1.10, "with_ns": 2.0, "added_ns": 0.91, "low95_ns": 0.88, "high95_ns": 0.95, "added_percent": 82.7, "under_aim": "yes"}
{"table": "pass_through", "trip": 64, "without_ns": 69.7, "with_ns": 74.0, "added_ns": 4.30, "low95_ns": 3.40, "high95_ns": 4.80, "added_percent": 6.2, "under_aim": "NO"}
{"table": "retreat", "trip": 1, "entries_per_s": 909090909, "census_per_s": 900000000, "share_percent": 82.7, "rule_percent": 270, "jump": "taken out", "patched_ms": 51.0, "as_it_should": "yes"}
{"table": "retreat", "trip": 700, "entries_per_s": 1300000, "census_per_s": 1290000, "share_percent": 0.16, "rule_percent": 0.39, "jump": "taken out", "patched_ms": 51.0, "as_it_should": "NO"}
{"note": "share: entries x measured cost"}
"""
STOPS = HOST + """{"table": "stops", "threads": 1, "rss_mb": 16, "operation": "jump in", "holds": 100, "p50_ms": 0.080, "p99_ms": 0.470, "max_ms": 0.550, "over_20ms": 0}
{"table": "stops", "threads": 1, "rss_mb": 16, "operation": "all", "holds": 405, "p50_ms": 0.080, "p99_ms": 0.460, "max_ms": 0.550, "over_20ms": 0}
{"table": "stops", "threads": 2, "rss_mb": 16, "operation": "all", "holds": 405, "p50_ms": 0.100, "p99_ms": 5.4, "max_ms": 5.9, "over_20ms": 0}
{"note": "arming a shadow stops nothing: it is written to shared memory"}
"""
MEMORY = HOST + """{"table": "memory", "memory_mb": 1024, "pages": "4k", "shadows": 9, "fork_ms": 18, "fork_max": 21, "fork_said": 12, "private_ms": 3.9, "run_ms": 0.35, "rest_ms": 1, "pause_ms": 42, "next_ms": 2, "next_faults": 1300, "sweep_ms": 210, "sweep_faults": 260000, "us_per_fault": 0.81, "later_said": 50, "huge_lost_mb": 0}
{"note": "16384 MB: skipped, more than the memory that is available"}
{"table": "two_percent", "memory_mb": 1024, "pages": "4k", "loop_cost_ms": 46, "per_minute_loop": 26, "all_cost_ms": 245, "per_minute_all": 4.9}
"""
TRIM = HOST + """{"table": "narrow", "memory_mb": 1024, "pages": "4k", "fork": "whole", "shadows": 9, "fork_ms": 18, "fork_said": 12, "pause_ms": 40, "run_ms": 0.4, "sweep_ms": 200, "sweep_faults": 262144}
{"table": "narrow", "memory_mb": 1024, "pages": "4k", "fork": "narrow", "shadows": 9, "fork_ms": 1.2, "fork_said": 1.1, "pause_ms": 9, "run_ms": 0.4, "sweep_ms": 20, "sweep_faults": 5000}
"""
FAULTS = HOST + '{"table": "faults", "running threads": 2, "pages": 1024, "after a fork": 6928, "as the agent measures": 5916}\n'
FIDELITY = """{"figure": "fidelity", "kernel": "triad", "size": "L1", "pages": "4K", "huge_mb": 0, "huge_mb_after": 0, "value": {"value": 0.9, "low": 0.89, "high": 0.92}, "protocol": "warm", "saturations": {"LS": 1.0}, "state": "measured", "refusals": []}
{"figure": "fidelity", "kernel": "triad", "size": "L2", "pages": "4K", "huge_mb": 0, "huge_mb_after": 0, "value": {"value": 1.02, "low": 1.0, "high": 1.04}, "protocol": "warm", "saturations": {}, "state": "measured", "refusals": []}
{"figure": "fidelity", "kernel": "triad", "size": "memory", "pages": "4K", "huge_mb": 0, "huge_mb_after": 0, "value": {"value": 0.0, "low": 0.0, "high": 0.0}, "protocol": "", "saturations": {}, "state": "open", "refusals": []}
{"figure": "fidelity", "kernel": "triad", "size": "L1", "pages": "huge", "skipped": "0 kB are in huge pages: see /sys/kernel/mm/transparent_hugepage/enabled (should be madvise)"}
"""
SPREAD = '{"figure": "spread", "kernel": "divide", "variant": "LS", "median": 0.13, "largest_difference": 0.4, "profiles": 5}\n'
COST = """{"figure": "cost", "pair": 1, "observed": 0.04, "accounted": {"ratio": 0.044}}
{"figure": "cost", "kernel": "divide", "budget": "10%", "pairs": 12, "observed_median": 0.04, "observed_quartiles": [0.024, 0.076], "accounted_median": 0.044}
"""
VERDICT = """{"figure": "verdict", "size": "L1", "seconds": 10.9}
{"figure": "verdict", "size": "L2", "seconds": null}
{"figure": "verdict", "size": "twelve loops, 16 KB to 16 MB", "profile": "first", "duration": "60s", "verdicts": 7, "loops": {"L1590": ["memory_bound", 26.0]}, "added_wall": {"sampling_ns": 1, "ratio": 0.0172}, "shadows": 26}
"""
PROGRAMS = ('{"program": "lammps", "state": "DONE", "hot_loops": 2, "hot_share": 0.71, "with_verdict": 0.871, '
            '"rest": {"not among the loops chosen": 0.129}, "verified": "121 lines of thermodynamic output equal"}\n')
SAMPLING = ('{"figure": "sampling", "events": "199 Hz", "slower": 0.0290, "quartiles": [0.0160, 0.0360], '
            '"switches_per_thread_and_second": 4300, "us_per_switch": 3.37, "rounds": 14}\n')

CANNED = {"overhead": OVERHEAD, "agent_cost": AGENT, "big_binary": BIG, "ingest": INGEST, "ingest_parts": INGEST_PARTS,
          "aggregate": AGGREGATE, "pass": PASS, "stops": STOPS, "memory": MEMORY, "trim": TRIM, "faults": FAULTS,
          "fidelity": FIDELITY, "spread": SPREAD, "cost_triad": COST, "cost_divide": COST, "verdict": VERDICT, "hpcc": PROGRAMS,
          "lammps": PROGRAMS, "sampling": SAMPLING}


def parsed(name):
    return next(b for b in run_all.BENCHES if b.name == name).parse(CANNED[name])


def value(name, figure):
    return parsed(name)[figure]["value"]


def test_every_bench_has_an_output_that_is_understood():
    assert {b.name for b in run_all.BENCHES} == set(CANNED)
    for name in CANNED:
        figures = parsed(name)
        assert figures, name
        for key, found in figures.items():
            assert found["value"] is None or isinstance(found["value"], (int, float)), (key, found)
            assert found["unit"] and ("spread" in found) == ("spread_is" in found), (key, found)


def test_what_is_read():
    assert parsed("overhead")["overhead.perfd"] == {"value": 1.0085, "unit": "ratio", "spread": [1.0037, 1.0136],
                                                    "spread_is": "95 %", "remark": "11 triples at 199 Hz"}
    assert abs(value("agent_cost", "agent.idle_cpu") - 0.033) < 1e-9
    assert value("ingest", "ingest.rows") == 153321 and "ingest.part.gRPC" not in parsed("ingest")
    assert value("ingest_parts", "ingest.part.SQLite") == 21 and "ingest.rows" not in parsed("ingest_parts")
    assert value("aggregate", "aggregate.merge_window") == 26.1 and parsed("aggregate")["aggregate.report"]["unit"] == "ms CPU"
    assert parsed("pass")["pass.added.64"]["spread"] == [3.4, 4.8]
    assert value("pass", "pass.lost_without_need") == 1 and value("pass", "pass.kept_above_the_share") == 0
    assert value("stops", "stops.p99") == 5.4 and value("stops", "stops.longest") == 5.9
    assert value("memory", "memory.fault.4k.1024") == 0.81 and value("memory", "memory.per_minute_all.4k.1024") == 4.9
    assert value("trim", "trim.fork.trimmed.4k.1024") == 1.2 and value("trim", "trim.fork.whole.4k.1024") == 18
    assert value("faults", "faults.after_fork.2_threads.1024_pages") == 6928
    assert abs(value("fidelity", "fidelity.distance") - 6) < 1e-9  # of 0.9 and 1.02
    assert value("fidelity", "fidelity.triad.memory.4K") is None and value("fidelity", "fidelity.triad.L1.huge") is None
    assert value("spread", "spread.divide.LS") == 40
    assert value("cost_divide", "account.divide_10.observed") == 4
    assert value("verdict", "verdict.one.L2") is None and value("verdict", "verdict.twelve.first") == 7
    assert abs(value("lammps", "programs.lammps") - 87.1) < 1e-9
    assert value("sampling", "sampling.199_Hz.switch") == 3.37


def test_commands_and_parts_exist():
    """What the table of benches starts is in the tree."""
    parts = re.findall(r'\{"(\w+)", Bench', (ROOT / "tests/bench/injection_bench.cc").read_text())
    verbs = re.findall(r'"(\w+)": \w+', (ROOT / "tests/bench/variants.py").read_text().split("run = ")[1].split(".get")[0])
    targets = (ROOT / "tests/bench/CMakeLists.txt").read_text()
    for bench in run_all.BENCHES:
        words = run_all.filled(bench.command, "build/release", "1").split()
        if "injection_bench" in words[0]:
            assert words[words.index("--part") + 1] in parts, bench.command
        if words[0].endswith("variants.py"):
            assert words[1] in verbs, bench.command
        if words[0].startswith("tests/"):
            assert (ROOT / words[0]).exists(), words[0]
            flags = [w for w in words if w.startswith("--")]
            assert all(f'"{flag}"' in (ROOT / words[0]).read_text() for flag in flags), bench.command
        else:
            assert pathlib.Path(words[0]).name in targets, words[0]


def test_benches_that_fail_are_told():
    say = []
    with tempfile.NamedTemporaryFile("w", delete=False) as printed:
        printed.write(SPREAD)
    good = run_all.Bench("good", f"/bin/cat {printed.name}", 20, run_all.parse_spread)
    exits = run_all.Bench("exits", "/bin/false", 20, run_all.parse_spread)
    hangs = run_all.Bench("hangs", "/bin/sleep 60", 1, run_all.parse_spread)
    absent = run_all.Bench("absent", "{build}/bin/nothing", 20, run_all.parse_spread)
    talks = run_all.Bench("talks", "/bin/echo hello", 20, run_all.parse_overhead)
    skips = run_all.Bench("skips", "/bin/echo SKIPPED: hpcc is not installed", 20, run_all.parse_programs)
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "host-2026-01-01.json"
        code = run_all.run_all([good, exits, hangs, absent, talks, skips], "build/release", out, "host", "2026-01-01", "", say.append)
        results = json.loads(out.read_text())
        outcomes = {name: run["outcome"] for name, run in results["runs"].items()}
        assert code == 1 and outcomes["good"] == "ok", outcomes
        assert outcomes["exits"].startswith("exit 1") and outcomes["hangs"] == "did not end within 1 s", outcomes
        assert outcomes["absent"].startswith("could not be started"), outcomes
        assert "not understood" in outcomes["talks"] and outcomes["skips"] == "skipped: hpcc is not installed", outcomes
        assert results["figures"]["spread.divide.LS"]["bench"] == "good"
        assert say[0] == "[1/6] good: at most 20 s" and say[-1].startswith("6 benches, 4 failed"), say
        # Once more on that day: what is not run again is kept.
        assert run_all.run_all([skips], "build/release", out, "host", "2026-01-01", "", say.append) == 0
        assert "spread.divide.LS" in json.loads(out.read_text())["figures"]
    pathlib.Path(printed.name).unlink()


def test_aims():
    row = run_all.Row("x", ("a",), "at most 1.01", 1.01)
    judged = [run_all.verdict_on(row, [f]) for f in (
        {"value": 1.005, "spread": [1.0, 1.009], "spread_is": "95 %"}, {"value": 1.005, "spread": [1.0, 1.02], "spread_is": "95 %"},
        {"value": 1.02}, {"value": None})]
    assert judged == ["met", "not shown", "missed", "missed"], judged
    assert run_all.verdict_on(run_all.Row("x", ("a",), "12", least=12), [{"value": 7}]) == "missed"
    assert run_all.judge_account([{"value": 4.4}, {"value": 4.0}]) == "met"
    assert run_all.judge_account([{"value": 2.0}, {"value": 4.0}]) == "missed"


def test_the_newest_results_are_shown():
    def file(host, date, share):
        return {"host": host, "date": date, "figures": {"fidelity.distance": {"value": share, "unit": "%", "command": "c"}}}
    results = [file("zen4", "2026-01-01", 9), file("zen5", "2026-01-02", 4), {"host": "zen4", "date": "2026-01-03", "figures": {}}]
    now = "\n".join(run_all.table_now(results))
    assert "| 5 % | 4 % | met | `c` | zen5, 2026-01-02 |" in now, now
    assert "| 9 % (missed) | 4 % |" in "\n".join(run_all.table_by_host(results))


def test_results_that_are_kept_are_sound():
    results = run_all.load()
    assert results
    for r in results:
        assert r["format"] == run_all.FORMAT and re.fullmatch(r"\d{4}-\d\d-\d\d", r["date"]), r["host"]
        assert (run_all.RESULTS / f"{r['host']}-{r['date']}.json").exists(), (r["host"], r["date"])
        for name, found in r["figures"].items():
            assert {"value", "unit", "bench", "command"} <= set(found), (r["host"], r["date"], name)
    for row in run_all.ROWS:
        assert run_all.cells(row, results) is not None, f"no results have {row.figures[0]}"


def test_the_readme_has_the_tables_of_the_newest_results():
    text = (ROOT / "docs/benchmarks/README.md").read_text()
    results = run_all.load()
    for table in (run_all.table_now(results), run_all.table_by_host(results)):
        missing = [line for line in table if line not in text]
        assert not missing, "run tests/bench/run_all.py --table: " + missing[0]


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    failed = 0
    for name, test in tests:
        try:
            test()
            print(f"ok    {name}")
        except Exception as error:  # noqa: BLE001 - every failure is reported and counted
            traceback.print_exc()
            print(f"FAIL  {name}: {error}")
            failed += 1
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
