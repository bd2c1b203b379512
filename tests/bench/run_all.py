#!/usr/bin/env python3
"""Runs the benchmarks one after the other and keeps their figures in docs/benchmarks/results/HOST-DATE.json.

  run_all.py --list                      every bench: longest time, what it needs
  run_all.py [--only NAME ...]           runs them all, or those named; --build, --host, --state, --out
  run_all.py --table                     the tables of docs/benchmarks/README.md from the newest results
  run_all.py --self-test                 the parsers on canned outputs (run_all_test.py)

The benches want a release build with tests: cmake --preset release -DPERFD_TESTS=ON && ninja -C build/release, and the targets
that --list names. Each bench has a longest time; what it printed is parsed, and the file is written after every bench. A second
run on the same day replaces the figures of the benches that it ran, and keeps the others.

A file of results: {"format": 1, "host", "date", "time", "machine": {...}, "figures": {NAME: FIGURE}, "runs": {BENCH: RUN}}.
FIGURE: {"value": number or null, "unit", "bench", "command"}, and where known "spread": [low, high] with "spread_is", "remark",
"commit" (what was measured) or, where somebody took it down by hand, "noted" (the commit that did).
RUN: {"command", "outcome": "ok" or why not, "seconds", "stolen": share of CPU time that the hypervisor took}.
A value of null was asked for and not reached, for example a verdict within the time. Figures of tests ("tests.*") come by hand.
"""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/benchmarks/results"
FORMAT = 1
GRACE_SECONDS = 30  # for a bench that is told to end: it takes its daemons and ranks away


# --- what the benches print ---------------------------------------------------------------------------------------------------

def figure(value, unit, spread=None, spread_is="", remark=""):
    out = {"value": value, "unit": unit}
    if spread is not None:
        out |= {"spread": list(spread), "spread_is": spread_is}
    return out | ({"remark": remark} if remark else {})


def lines_of(text):
    """The JSON objects of an output, one a line; everything else is for people."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return found


def last_of(text):
    found = lines_of(text)
    if not found:
        raise ValueError("no line of JSON")
    return found[-1]


def parse_overhead(text):
    r = last_of(text)
    of = f"{r['pairs']} triples at {r['frequency_hz']} Hz"
    return {"overhead.perfd": figure(r["perfd_ratio"], "ratio", r["perfd_interval"], "95 %", of),
            "overhead.perf_record": figure(r["perf_record_ratio"], "ratio", r["perf_record_interval"], "95 %", of),
            "overhead.accounted": figure(100 * r["accounted_overhead_ratio"], "% of the job's CPU time")}


def parse_agent_cost(text):
    r = last_of(text)
    first = r["submit_to_first_sample_ms"]
    return {"agent.idle_cpu": figure(100 * r["idle_cpu_share_of_core"], "% of a core"),
            "agent.idle_memory": figure(r["idle_resident_mib"], "MiB"),
            "agent.sampling_cpu": figure(100 * r["sampling_cpu_share_of_core"], "% of a core"),
            "agent.sampling_memory": figure(r["sampling_resident_mib"], "MiB"),
            "agent.first_sample": figure(first["median"], "ms", [first["median"], first["max"]], "median to longest")}


def parse_big_binary(text):
    r = last_of(text)
    size = f"binary of {r['binary_mib']} MiB"
    return {"big_binary.first": figure(r["first_loops_seconds"], "s", remark=size),
            "big_binary.cached": figure(r["cached_loops_seconds"], "s", remark=size)}


def parse_ingest(text):
    r = last_of(text)
    return {"ingest.rows": figure(r["rows_per_second"], "rows/s"),
            "ingest.cpu": figure(r["daemon_share_of_core"], "cores"),
            "ingest.memory": figure(r["daemon_resident_mib"], "MiB"),
            "ingest.acknowledged": figure(r["windows_acknowledged"], "windows", remark=f"of {r['windows_sent']} sent")}


def parse_ingest_parts(text):
    cpu = last_of(text)["cpu"]
    of = f"{cpu['stacks']} stacks"
    return {f"ingest.part.{part}": figure(100 * share, "% of perfd's CPU time", remark=of)
            for part, share in cpu.items() if part != "stacks"}


def parse_aggregate(text):
    """--benchmark_format=json of Google Benchmark."""
    names = {"BM_AddWindowToALargeJob": "merge_window", "BM_DecodeWindow": "decode_window", "BM_TopLoops": "top_loops",
             "BM_ReportOf64000Ranks": "report", "BM_SerializeAggregateOf64000Ranks": "serialize"}
    return {f"aggregate.{names.get(b['name'], b['name'])}": figure(b["cpu_time"], f"{b['time_unit']} CPU")
            for b in json.loads(text)["benchmarks"] if "cpu_time" in b}


def rows_of(text, table):
    return [row for row in lines_of(text) if row.get("table") == table]


def parse_pass(text):
    out = {f"pass.added.{r['trip']}": figure(r["added_ns"], "ns", [r["low95_ns"], r["high95_ns"]], "95 %")
           for r in rows_of(text, "pass_through")}
    if short := [r["added_ns"] for r in rows_of(text, "pass_through") if r["trip"] <= 16]:
        out["pass.entry"] = figure(statistics.median(short), "ns", remark="median of loops of at most 16 passes")
    retreat = rows_of(text, "retreat")
    wrong = [r["jump"] for r in retreat if r["as_it_should"] == "NO"]
    if retreat:
        of = f"of {len(retreat)} loops"
        out["pass.lost_without_need"] = figure(wrong.count("taken out"), "loops", remark=of)
        out["pass.kept_above_the_share"] = figure(wrong.count("stays"), "loops", remark=of)
    return out


def parse_stops(text):
    rows = rows_of(text, "stops")
    if not rows:
        raise ValueError("no row of stops")
    out = {f"stops.p99.{r['threads']}_threads.{r['rss_mb']}_mb": figure(r["p99_ms"], "ms", [r["p50_ms"], r["max_ms"]],
                                                                         "median to longest")
           for r in rows if r["operation"] == "all"}
    out["stops.p99"] = figure(max(r["p99_ms"] for r in rows), "ms", remark="largest of all operations and ranks")
    out["stops.longest"] = figure(max(r["max_ms"] for r in rows), "ms")
    return out


def parse_memory(text):
    out = {}
    for r in rows_of(text, "memory"):
        of = f"{r['pages']}.{r['memory_mb']}"
        out[f"memory.fork.{of}"] = figure(r["fork_ms"], "ms", [r["fork_ms"], r["fork_max"]], "median to longest",
                                          f"predicted {r['fork_said']} ms")
        for name, column, unit in (("privatise", "private_ms", "ms"), ("run", "run_ms", "ms"), ("pause", "pause_ms", "ms"),
                                   ("sweep", "sweep_ms", "ms"), ("fault", "us_per_fault", "us")):
            out[f"memory.{name}.{of}"] = figure(r[column], unit)
    for r in rows_of(text, "two_percent"):
        of = f"{r['pages']}.{r['memory_mb']}"
        out[f"memory.per_minute_loop.{of}"] = figure(r["per_minute_loop"], "shadows a minute")
        out[f"memory.per_minute_all.{of}"] = figure(r["per_minute_all"], "shadows a minute")
    return out


def parse_trim(text):
    out = {}
    for r in lines_of(text):
        if r.get("table") in ("narrow", "trim"):
            kind = "whole" if r["fork"] == "whole" else "trimmed"
            of = f"{kind}.{r['pages']}.{r['memory_mb']}"
            out[f"trim.fork.{of}"] = figure(r["fork_ms"], "ms", remark=f"predicted {r['fork_said']} ms")
            out[f"trim.pause.{of}"] = figure(r["pause_ms"], "ms")
    return out


def parse_faults(text):
    out = {}
    for r in rows_of(text, "faults"):
        of = f"{r['running threads']}_threads.{r['pages']}_pages"
        out[f"faults.after_fork.{of}"] = figure(r["after a fork"], "ns")
        out[f"faults.agent.{of}"] = figure(r["as the agent measures"], "ns")
    return out


def parse_fidelity(text):
    out, distances = {}, []
    for r in lines_of(text):
        if r.get("figure") != "fidelity":
            continue
        name = f"fidelity.{r['kernel']}.{r['size']}.{r['pages']}"
        ratio = r.get("value") or {}
        if "skipped" in r or not ratio.get("value"):
            out[name] = figure(None, "ratio", remark=r.get("skipped") or f"not measured: {r.get('state', '')}")
            continue
        out[name] = figure(ratio["value"], "ratio", [ratio["low"], ratio["high"]], "95 %", r["protocol"])
        distances.append(abs(ratio["value"] - 1))
    if distances:
        out["fidelity.distance"] = figure(100 * statistics.median(distances), "% from 1",
                                          remark=f"median of {len(distances)} kernels")
    return out


def parse_spread(text):
    out = {}
    for r in lines_of(text):
        if r.get("figure") == "spread":
            out[f"spread.{r['kernel']}.{r['variant']}"] = figure(
                100 * r["largest_difference"], "points", remark=f"median {r['median']:.2f} of {r['profiles']} profiles")
    return out


def parse_cost(text):
    r = last_of(text)
    name = f"account.{r['kernel']}_{r['budget'].rstrip('%')}"
    return {f"{name}.accounted": figure(100 * r["accounted_median"], "%", remark=f"{r['pairs']} pairs"),
            f"{name}.observed": figure(100 * r["observed_median"], "%", [100 * q for q in r["observed_quartiles"]], "quartiles",
                                       f"{r['pairs']} pairs")}


def parse_verdict(text):
    out = {}
    for r in lines_of(text):
        if "verdicts" not in r:
            out[f"verdict.one.{r['size']}"] = figure(r["seconds"], "s")
            continue
        name = f"verdict.twelve.{r['profile']}"
        out[name] = figure(r["verdicts"], "loops", remark=f"of twelve, in {r['duration']}, {r['shadows']} shadows")
        out[f"{name}.added"] = figure(100 * r["added_wall"]["ratio"], "%")
    return out


def parse_programs(text):
    for line in text.splitlines():
        if line.startswith("SKIPPED: "):
            raise Skipped(line.removeprefix("SKIPPED: "))
    out = {}
    for r in lines_of(text):
        if "program" in r:
            share = None if r["with_verdict"] is None else 100 * r["with_verdict"]
            out[f"programs.{r['program']}"] = figure(share, "% of hot loop time", remark=r["verified"])
            out[f"programs.{r['program']}.hot"] = figure(100 * r["hot_share"], "% of the job", remark=f"{r['hot_loops']} loops")
    return out


def parse_sampling(text):
    out = {}
    for r in lines_of(text):
        if r.get("figure") == "sampling":
            name = f"sampling.{r['events'].replace(' ', '_')}"
            of = f"{r['switches_per_thread_and_second']} switches a second of each thread"
            out[name] = figure(100 * r["slower"], "% slower", [100 * q for q in r["quartiles"]], "quartiles", of)
            out[f"{name}.switch"] = figure(r["us_per_switch"], "us")
    return out


class Skipped(Exception):
    """The bench cannot be run here; the text says why."""


# --- the benches --------------------------------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Bench:
    name: str
    command: str                  # {build}: the build folder; {pid}: of the process beside
    seconds: int                  # at most; then it is interrupted
    parse: typing.Callable
    needs: str = "release build with tests"
    beside: str = ""              # started first, ended afterwards
    beside_env: tuple = ()


INJECTION = "root; ninja injection_bench"
BENCHES = (
    Bench("overhead", "tests/bench/overhead.py --build {build} --steps 150000 --most 24", 1800, parse_overhead,
          "release build with tests, perf"),
    Bench("agent_cost", "tests/bench/agent_cost.py --build {build}", 420, parse_agent_cost),
    Bench("big_binary", "tests/bench/big_binary.py --build {build}", 1500, parse_big_binary),
    Bench("ingest", "tests/bench/ingest.py --build {build}", 420, parse_ingest),
    Bench("ingest_parts", "tests/bench/ingest.py --build {build} --perf", 1500, parse_ingest_parts, "release build with tests, perf"),
    Bench("aggregate", "{build}/bin/aggregate_bench --benchmark_format=json", 300, parse_aggregate, "ninja aggregate_bench"),
    Bench("pass", "{build}/bin/injection_bench --part pass --json", 420, parse_pass, INJECTION),
    Bench("stops", "{build}/bin/injection_bench --part stops --json", 420, parse_stops, INJECTION),
    Bench("memory", "{build}/bin/injection_bench --part memory --json", 420, parse_memory, INJECTION),
    Bench("trim", "{build}/bin/injection_bench --part narrow --json", 420, parse_trim, INJECTION),
    Bench("faults", "{build}/bin/injection_bench --part faults --json", 420, parse_faults, INJECTION),
    Bench("fidelity", "tests/bench/variants.py fidelity", 900, parse_fidelity),
    Bench("spread", "tests/bench/variants.py spread", 900, parse_spread),
    Bench("cost_triad", "tests/bench/variants.py cost", 1200, parse_cost),
    Bench("cost_divide", "tests/bench/variants.py cost divide 10%", 1200, parse_cost),
    Bench("verdict", "tests/bench/variants.py verdict", 1200, parse_verdict),
    Bench("hpcc", "tests/bench/gauntlet.py hpcc", 2400, parse_programs, "release build with tests, hpcc"),
    Bench("lammps", "tests/bench/gauntlet.py lammps", 2400, parse_programs, "release build with tests, lammps"),
    Bench("sampling", "{build}/bin/sampling_bench {pid} 14", 180, parse_sampling, "root; ninja sampling_bench",
          "{build}/puppets/kernels_gcc_avx2 triad 200000 0 2", (("OMP_WAIT_POLICY", "passive"), ("OMP_PROC_BIND", "true"))),
)


def filled(text, build, pid=""):
    """The command, from the top of the tree."""
    return text.replace("{build}", build).replace("{pid}", str(pid))


# --- running ------------------------------------------------------------------------------------------------------------------

def stolen_and_all():
    ticks = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[7], sum(ticks)


def start(command, output, env):
    """A process in a group of its own. A command in the tree is looked up there, whatever the current folder is."""
    words = command.split()
    words[0] = str(ROOT / words[0]) if "/" in words[0] else words[0]
    # A shell that runs us in the background lets us ignore SIGINT, and what we start would inherit that.
    return subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, env=env, start_new_session=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def end(process):
    """Interrupted first, so that it takes away what it started; killed with its group when that takes too long."""
    for sign, seconds in ((signal.SIGINT, GRACE_SECONDS), (signal.SIGKILL, 10)):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, sign)
            process.wait(seconds)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def output_of(command, seconds, env, say):
    """What it prints, and why it failed (None: it did not). Says every minute that it still runs, and its last lines if it failed."""
    begin, why = time.monotonic(), None
    with tempfile.TemporaryFile("w+") as output:
        process = start(command, output, env)
        try:
            while process.poll() is None:
                spent = time.monotonic() - begin
                if spent > seconds:
                    why = f"did not end within {seconds} s"
                    break
                try:
                    process.wait(min(60, seconds - spent + 1))
                except subprocess.TimeoutExpired:
                    say(f"  {time.monotonic() - begin:.0f} s")
        finally:
            end(process)
        output.seek(0)
        text = output.read()
    tail = [line[:200] for line in text.splitlines() if line.strip()][-10:]
    if why is None and process.returncode != 0:
        why = f"exit {process.returncode}: {tail[-1] if tail else 'it printed nothing'}"
    if why is not None:
        say("\n".join(f"  | {line}" for line in tail))
    return text, why


def run_one(bench, build, say):
    """Its figures and its RUN."""
    env = os.environ | {"PERFD_BUILD_DIR": str((ROOT / build).resolve())}
    beside, begin = None, time.monotonic()
    stolen, ticks = stolen_and_all()
    command, figures, pid = filled(bench.command, build, "PID"), {}, ""
    try:
        if bench.beside:
            beside = start(filled(bench.beside, build), subprocess.DEVNULL, env | dict(bench.beside_env))
            time.sleep(2)
            pid = beside.pid
        text, why = output_of(filled(bench.command, build, pid), bench.seconds, env, say)
        try:
            figures = bench.parse(text)
        except Skipped as reason:
            why = f"skipped: {reason}"
        except (ValueError, KeyError, TypeError) as error:
            why = why or f"its output was not understood: {error!r}"
        if not figures and why is None:
            why = "it printed no figure"
    except OSError as error:
        why = f"could not be started: {error}"
    finally:
        if beside is not None:
            end(beside)
    after, ticks_after = stolen_and_all()
    run = {"command": command, "outcome": why or "ok", "seconds": round(time.monotonic() - begin),
           "stolen": round((after - stolen) / max(1, ticks_after - ticks), 3)}
    for name in figures:
        figures[name] |= {"bench": bench.name, "command": command}
    return figures, run


def cpu_facts():
    facts = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    return facts


def kind_of(facts):
    """A name for a kind of machine. Virtual machines hide model numbers, so what the CPU can do counts first."""
    flags = set(facts.get("flags", "").split())
    family, model = int(facts.get("cpu family", 0)), int(facts.get("model", 0))
    if facts.get("vendor_id") == "GenuineIntel":
        return "sapphire-rapids" if {"amx_tile", "avx512_fp16"} <= flags else f"intel-{family}-{model}"
    if facts.get("vendor_id") == "AuthenticAMD":
        generation = {23: "zen1" if model < 0x30 else "zen2", 25: "zen4" if "avx512f" in flags else "zen3", 26: "zen5"}
        return generation.get(family, f"amd-{family}-{model}")
    return "unknown"


def machine_of(facts, state):
    return {"cpu": facts.get("model name", ""), "family": facts.get("cpu family", ""), "model": facts.get("model", ""),
            "cpus": os.cpu_count(), "kernel": os.uname().release, "virtual": "hypervisor" in facts.get("flags", "").split(),
            "state": state}


def commit():
    run = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return run.stdout.strip()


def run_all(benches, build, out, host, date, state, say):
    facts = cpu_facts()
    results = json.loads(out.read_text()) if out.exists() else {
        "format": FORMAT, "host": host, "date": date, "machine": machine_of(facts, state), "figures": {}, "runs": {}}
    results["time"] = datetime.datetime.now().strftime("%H:%M")
    version, failed = commit(), 0
    for number, bench in enumerate(benches, 1):
        say(f"[{number}/{len(benches)}] {bench.name}: at most {bench.seconds} s")
        figures, run = run_one(bench, build, say)
        results["figures"] = {n: f for n, f in results["figures"].items() if f.get("bench") != bench.name}
        results["figures"] |= {name: f | {"commit": version} for name, f in figures.items()}
        results["runs"][bench.name] = run
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        good = run["outcome"] == "ok"
        failed += 0 if good or run["outcome"].startswith("skipped: ") else 1
        say(f"[{number}/{len(benches)}] {bench.name}: {run['outcome']}, {len(figures)} figures in {run['seconds']} s")
    say(f"{len(benches)} benches, {failed} failed: {out}")
    return 1 if failed else 0


# --- the tables of docs/benchmarks/README.md ------------------------------------------------------------------------------------

def load(folder=RESULTS):
    """Oldest first."""
    return sorted((json.loads(path.read_text()) for path in folder.glob("*.json")), key=lambda r: (r["date"], r.get("time", "")))


def newest(results, name, host=None):
    """The newest results that have this figure, and the figure."""
    for r in reversed(results):
        if name in r["figures"] and (host is None or r["host"] == host):
            return r, r["figures"][name]
    return None, None


def number(value):
    if value is None:
        return "none"
    size = abs(value)
    text = f"{value:,.0f}" if size >= 1000 else f"{value:.5g}" if 1 <= size < 1.1 else f"{value:.3g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def shown(found):
    """A figure with its spread."""
    text = number(found["value"])
    if "spread" in found:
        low, high = (number(x) for x in found["spread"])
        text += f" (longest {high})" if found["spread_is"] == "median to longest" else f" [{low}, {high}]"
    return text


@dataclasses.dataclass(frozen=True)
class Row:
    title: str
    figures: tuple                 # names; the first one decides which results are taken
    aim: str = "-"
    most: float = None             # met: every value is at most this
    least: float = None            # met: every value is at least this
    template: str = "{0}"          # {0}, {1}: the figures, with spread
    command: str = ""              # of figures that are taken down by hand
    judge: typing.Callable = None  # values -> "met", "missed", "not shown"


def judge_interval(row, found):
    """An upper end beyond the aim shows nothing; a value beyond it is a miss."""
    values = [f["value"] for f in found]
    if None in values:
        return "missed"
    if row.least is not None:
        return "met" if min(values) >= row.least else "missed"
    if max(values) > row.most:
        return "missed"
    highs = [f["spread"][1] for f in found if f.get("spread_is") == "95 %"]
    return "not shown" if highs and max(highs) > row.most else "met"


def judge_account(found):
    accounted, observed = (f["value"] for f in found[:2])
    return "met" if observed and abs(accounted / observed - 1) <= 0.25 else "missed"


def verdict_on(row, found):
    if row.judge:
        return row.judge(found)
    return judge_interval(row, found) if row.most is not None or row.least is not None else ""


INJECTION_BENCH = "build/release/bin/injection_bench"
ROWS = (
    Row("added wall time of a sampled job, 199 Hz, 2 ranks on 2 CPUs", ("overhead.perfd",), "ratio at most 1.01", 1.01),
    Row("the same for `perf record`, in the same triples", ("overhead.perf_record",)),
    Row("added wall time by the report's own account, default budget, 30 s, variants on", ("tests.quickstart.added",),
        "2 %", 2, template="{0} %"),
    Row("accounted against observed added time, budget 10 %", ("account.divide_10.accounted", "account.divide_10.observed"),
        "within a quarter of each other", template="{0} % against {1} %", judge=judge_account),
    Row("agent, idle", ("agent.idle_cpu", "agent.idle_memory"), "0.1 % of a core, 64 MiB", template="{0} %, {1} MiB",
        judge=lambda f: "met" if f[0]["value"] <= 0.1 and f[1]["value"] <= 64 else "missed"),
    Row("agent, sampling 4 threads at 199 Hz", ("agent.sampling_cpu", "agent.sampling_memory"), "1 % of a core",
        template="{0} %, {1} MiB", judge=lambda f: "met" if f[0]["value"] <= 1 else "missed"),
    Row("submit to first sample", ("agent.first_sample",), "under 1 s", 1000, template="{0} ms"),
    Row("submit to first loops, program of 296 MiB", ("big_binary.first",), "5 s for 100 MiB", 5, template="{0} s"),
    Row("stops of a rank, p99 of the worst kind", ("stops.p99", "stops.longest"), "under 20 ms",
        template="{0} ms (longest {1})", judge=lambda f: "met" if f[0]["value"] < 20 else "missed"),
    Row("an idle entry of an altered loop of 1, 4, 16 passes", ("pass.added.1", "pass.added.4", "pass.added.16"), "under 3 ns", 3,
        template="{0}, {1}, {2} ns"),
    Row("the same of 64 passes", ("pass.added.64",), "under 3 ns", 3, template="{0} ns"),
    Row("fork of a rank of 1 GiB, 4 KiB and huge pages", ("memory.fork.4k.1024", "memory.fork.huge.1024"),
        template="{0} and {1} ms"),
    Row("shadows a minute that 2 % buy, rank of 1 GiB, 4 KiB pages: arrays of the loop, or all memory, rewritten",
        ("memory.per_minute_loop.4k.1024", "memory.per_minute_all.4k.1024"), template="{0}, {1}"),
    Row("fidelity: median distance of T(REF in shadow) / T(REF live) from 1", ("fidelity.distance",), "5 %", 5,
        template="{0} %"),
    Row("spread of LS, FP, DL1 over five profiles, triad over memory", ("spread.triad.LS", "spread.triad.FP", "spread.triad.DL1"),
        "3 points", 3, template="{0}, {1}, {2}"),
    Row("the same, division in L1", ("spread.divide.LS", "spread.divide.FP", "spread.divide.DL1"), "3 points", 3,
        template="{0}, {1}, {2}"),
    Row("submit to verdict, one loop in L1, L2, memory", ("verdict.one.L1", "verdict.one.L2", "verdict.one.memory"),
        "under 60 s", 60, template="{0}, {1}, {2} s"),
    Row("verdicts of twelve loops in the first 60 s, budget 2 %", ("verdict.twelve.first",), "12", least=12, template="{0}"),
    Row("hot loop time with a verdict, hpcc", ("programs.hpcc",), "over 80 %", least=80, template="{0} %"),
    Row("the same, LAMMPS", ("programs.lammps",), "over 80 %", least=80, template="{0} %"),
    Row("known truths, one build and team each, that fail", ("tests.truths.failed",), "0 of 16", 0,
        command="tests/e2e/variants_test.py"),
    Row("promises broken, long run", ("tests.promises.broken",), "0", 0,
        command="tests/e2e/promises_test.py with PERFD_KILLS=200 PERFD_STOPS=50 PERFD_PROFILES=20 PERFD_EVERY_OPERATION=1"),
    Row("prolog of the scheduler hook, p99 of 30", ("tests.hook.prolog_p99",), "-", template="{0} ms",
        command="tests/e2e/slurm_test.py"),
    Row("the same with a hanging perfd", ("tests.hook.hanging_p99",), "300 ms and the start of the program", template="{0} ms",
        command="tests/e2e/slurm_test.py"),
    Row("perfd with 1,000 agents, 64,000 ranks x 12 loops", ("ingest.cpu", "ingest.memory", "ingest.rows"), "1 core, 2 GiB",
        template="{0} cores, {1} MiB, {2} rows/s",
        judge=lambda f: "met" if f[0]["value"] <= 1 and f[1]["value"] <= 2048 else "missed"),
    Row("merging a window of 768 rows; decoding it", ("aggregate.merge_window", "aggregate.decode_window"),
        template="{0}; {1} us of CPU time"),
    Row("full report of 64,000 ranks", ("aggregate.report",), template="{0} ms of CPU time"),
)


def cells(row, results, host=None):
    """(now, aim met, command, host and date) from the newest results with the first figure; None: nobody has it."""
    r, _ = newest(results, row.figures[0], host)
    if r is None:
        return None
    found = [r["figures"].get(name, {"value": None}) for name in row.figures]
    met = verdict_on(row, found)
    return (row.template.format(*(shown(f) for f in found)), met, row.command or found[0].get("command", ""),
            f"{r['host']}, {r['date']}")


def table_now(results):
    yield "| figure | aim | now | aim met | command | host, date |"
    yield "|---|---|---|---|---|---|"
    for row in ROWS:
        if (c := cells(row, results)) is not None:
            met = f"**{c[1]}**" if c[1] not in ("", "met") else c[1] or "-"
            yield f"| {row.title} | {row.aim} | {c[0]} | {met} | `{c[2]}` | {c[3]} |"


def table_by_host(results):
    """The rows with an aim, a column for each kind of machine."""
    hosts = sorted({r["host"] for r in results})
    yield f"| figure | {' | '.join(hosts)} |"
    yield "|---" * (len(hosts) + 1) + "|"
    for row in ROWS:
        found = [cells(row, results, host) for host in hosts]
        if row.aim != "-" and sum(c is not None for c in found) > 1:
            texts = ["-" if c is None else c[0] if c[1] in ("", "met") else f"{c[0]} ({c[1]})" for c in found]
            yield f"| {row.title} | {' | '.join(texts)} |"


# --- main ---------------------------------------------------------------------------------------------------------------------

def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="the benches")
    parser.add_argument("--table", action="store_true", help="the tables of docs/benchmarks/README.md")
    parser.add_argument("--self-test", action="store_true", help="the parsers on canned outputs")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these benches")
    parser.add_argument("--build", default="build/release", help="folder of the build, from the top of the tree")
    parser.add_argument("--host", help="name of this kind of machine; by default from /proc/cpuinfo")
    parser.add_argument("--state", default="", help="what else goes on here, in words")
    parser.add_argument("--out", type=pathlib.Path, help="file to write; by default docs/benchmarks/results/HOST-DATE.json")
    return parser.parse_args()


def main():
    args = arguments()
    if args.list:
        for bench in BENCHES:
            print(f"{bench.name:14} at most {bench.seconds:5} s   {bench.needs:28}  {filled(bench.command, args.build, 'PID')}")
        return 0
    if args.table:
        results = load()
        print("\n".join([*table_now(results), "", *table_by_host(results)]))
        return 0
    if args.self_test:
        return subprocess.run([sys.executable, "-B", str(pathlib.Path(__file__).with_name("run_all_test.py"))]).returncode
    unknown = set(args.only or ()) - {bench.name for bench in BENCHES}
    if unknown:
        sys.exit(f"no such bench: {', '.join(sorted(unknown))}; --list names them")
    host, date = args.host or kind_of(cpu_facts()), datetime.date.today().isoformat()
    out = args.out or RESULTS / f"{host}-{date}.json"
    benches = [bench for bench in BENCHES if not args.only or bench.name in args.only]
    return run_all(benches, args.build, out, host, date, args.state, lambda text: print(text, flush=True))


if __name__ == "__main__":
    sys.exit(main())
