"""Runs steps one after the other and keeps what they found: cases, and where the time went."""
import os
import pathlib
import resource
import sys
import time

import cases
import parts
import process
import state
import suites
import tidy
from screen import duration

MOST_RETRIES = 2  # files with the label `timing` that may be tried a second time in one run
BUILD_LIMIT_S = 3600
PROGRESS = state.ROOT / "deploy/progress.sh"
TIMING = "timing"
BROKEN = "Broken"  # cluster.Broken: a promise to the owner of a job. Nothing excuses it


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def shown(case):
    return f"{case.id}: {' '.join(case.reason.split())[:300]}"


def key_of(step):
    """Under which the durations of its tests are kept: those of a long run are others."""
    words = (step.preset, step.pytest, *(f"{name}={value}" for name, value in step.env))
    return " ".join(word for word in words if word)


class Run:
    def __init__(self, screen, logs=state.LOGS):
        self.screen, self.logs = screen, logs
        self.cases, self.steps, self.slow = [], [], []
        self.retries, self.calls, self.unusable, self.configured = 0, 0, set(), set()
        self.skips = cases.Skips((state.ROOT / "tests/skips.txt").read_text())
        self.expected = state.Notes("expected.json", pathlib.Path(__file__).parent).values  # where nothing has run before
        self.durations = state.Notes("durations.json", logs)
        logs.mkdir(parents=True, exist_ok=True)

    def failed(self):
        return [case for case in self.cases if case.outcome == cases.FAILED]

    def timed(self, name, function, *arguments):
        """The function's value; what it took goes to the table."""
        wall, cpu = time.monotonic(), cpu_seconds()
        try:
            return function(*arguments)
        finally:
            self.steps.append({"step": name, "wall_s": round(time.monotonic() - wall, 1),
                               "cpu_s": round(cpu_seconds() - cpu, 1)})

    def run(self, steps):
        """True when nothing failed."""
        before = len(self.failed())
        for step in steps:
            if isinstance(step, parts.Tidy):
                self.tidy(step)
            elif step.preset in self.unusable:
                self.add("build", step.preset, cases.FAILED, f"left out, for {step.preset} does not build: {step}")
            elif isinstance(step, parts.Tests):
                self.test(step)
            else:
                self.build(step)
        return len(self.failed()) == before

    # Builds.

    def build(self, step):
        folder = state.ROOT / "build" / step.preset
        done = self.is_configured(step) or self.timed(f"configure {step.preset}", self.configure, step)
        if done and isinstance(step, parts.Build):
            done = self.timed(f"build {step.preset}", self.follow, "build", f"{step.preset}, build: ",
                              self.logs / f"{step.preset}-build.log", ["ninja", "-C", folder, *step.targets])
        self.add("build", f"{step.preset} {' '.join(getattr(step, 'targets', ('configuration',)))}",
                 cases.PASSED if done else cases.FAILED, "" if done else "it does not build")
        if not done:
            self.unusable.add(step.preset)

    def add(self, test, name, outcome, reason=""):
        """A case that is no test's; once, however many parts need the same build."""
        case = cases.Case(test, name, outcome, 0.0, reason)
        if outcome == cases.FAILED or case not in self.cases:
            self.cases.append(case)

    def is_configured(self, step):
        """In this run, with these options."""
        return (step.preset, step.options) in self.configured or (
            not step.options and any(preset == step.preset for preset, _ in self.configured))

    def configure(self, step):
        self.configured = {c for c in self.configured if c[0] != step.preset} | {(step.preset, step.options)}
        log = self.logs / f"{step.preset}-configure.log"
        done = self.follow("configure", f"{step.preset}, configure: ", log, ["cmake", "--preset", step.preset, *step.options])
        if not done:
            for line in log.read_text(errors="replace").splitlines()[-30:]:
                self.screen.line(f"    {line}")
        return done

    def follow(self, kind, prefix, log, command):
        """Under deploy/progress.sh, which says where it is, and on failure what went wrong."""
        begin = time.monotonic()
        try:
            self.screen.clear()
            code = process.passing([PROGRESS, kind, log, *command], BUILD_LIMIT_S, {"PROGRESS_STEP": prefix}, state.ROOT)
        except process.TimeLimit:
            self.screen.line(f"{prefix}not over after {duration(BUILD_LIMIT_S)}")
            return False
        self.screen.line(f"{prefix}{'done' if code == 0 else 'FAILED'} in {duration(time.monotonic() - begin)}")
        return code == 0

    # Tests.

    def test(self, step):
        build = state.ROOT / "build" / step.preset
        wanted = suites.chosen(suites.known(build), step.names, step.labels)
        if not wanted:
            self.add("ctest", f"{step.preset} {step.labels or step.names}", cases.FAILED, "there are no such tests")
        isolated = process.succeeds(sys.executable, "-B", state.ROOT / "tests/e2e/isolated.py", "--possible")
        for jobs, group in suites.phases(wanted, isolated):
            what = " ".join(step.labels) or f"{len(group)} of e2e {step.pytest}"
            self.timed(f"test {step.preset}: {what}, {jobs} at a time", self.phase, step, build, group, jobs)

    def call(self, step, build, group, jobs, **env):
        """One call of ctest: its cases, judged, and what it printed."""
        self.calls += 1
        key = key_of(step)
        took = self.durations.values.setdefault(key, {})
        watch = suites.Watch(self.screen, step.preset, group, jobs, {**self.expected.get(key, {}), **took})
        folder = self.logs / f"results-{step.preset}-{self.calls}"
        environment = {**dict(step.env), **({"PYTEST_ADDOPTS": step.pytest} if step.pytest else {}), **env}
        found = self.skips.judge(suites.call(build, group, jobs, folder, watch, environment))
        took.update(watch.took)
        self.durations.save()
        return found, watch

    def phase(self, step, build, group, jobs):
        found, watch = self.call(step, build, group, jobs)
        for suite in group:
            bad = [case for case in found if case.test == suite.name and case.outcome == cases.FAILED]
            if not bad:
                continue
            self.show(step.preset, bad, watch.excerpt(suite.name))
            if TIMING in suite.labels and self.retries < MOST_RETRIES and not any(BROKEN in case.reason for case in bad):
                self.retries += 1
                self.screen.line(f"retry {suite.name}: {', '.join(case.name for case in bad)}")
                second, watch_of_second = self.call(step, build, [suite], 1, PYTEST_ADDOPTS=f"{step.pytest} --last-failed")
                found = cases.replaced(found, second)
                self.show(step.preset, [c for c in second if c.outcome == cases.FAILED], watch_of_second.excerpt(suite.name))
        self.slow += [(case.seconds, f"[{step.preset}] {case.id}") for case in found]
        self.cases += found

    def show(self, preset, bad, excerpt):
        for line in excerpt if bad else []:
            self.screen.line(line)
        for case in bad:
            self.screen.line(f"FAILED [{preset}] {shown(case)}")

    def tidy(self, step):
        build = state.ROOT / "build/asan"
        files, said = tidy.choose(step, build)
        self.screen.line(said)
        found = self.timed(said.split(";")[0], tidy.check, build, files, self.screen)
        self.slow += [(case.seconds, case.id) for case in found]
        self.cases += found

    # The end.

    def close(self, name, wall):
        """Skips, the slowest, where the time went, and failures by the closing line: who reads only the end has them."""
        for case in self.cases:
            if case.outcome == cases.SKIPPED:
                self.screen.line(f"skipped {shown(case)}")
        slowest = [f"{seconds:8.1f} s  {what}" for seconds, what in sorted(self.slow, reverse=True)[:20]]
        if slowest:
            (self.logs / "slowest.txt").write_text("\n".join(slowest) + "\n")
            self.screen.line("the twenty slowest:\n" + "\n".join(slowest))
        times = state.Notes("times.json", self.logs)
        times.values = {"run": name, "wall_s": round(wall, 1), "cpus": os.cpu_count(), "steps": self.steps}
        times.save()
        self.screen.line(table(times.values))
        for case in self.failed():
            self.screen.line(f"FAILED {shown(case)}")
        self.screen.line(cases.closing_line(self.cases))


def table(times):
    """Where the time went, of a run that is over."""
    if not times.get("steps"):
        return "nothing has run here yet"
    wall = sum(step["wall_s"] for step in times["steps"])
    lines = [f"where the time went ({times['run']}, {times['cpus']} CPUs):",
             f"{'wall s':>9} {'%':>4} {'CPU s':>9}  step"]
    for step in times["steps"]:
        share = 100 * step["wall_s"] / wall if wall else 0
        lines.append(f"{step['wall_s']:9.1f} {share:4.0f} {step['cpu_s']:9.1f}  {step['step']}")
    lines.append(f"{wall:9.1f}  100 {sum(step['cpu_s'] for step in times['steps']):9.1f}  all of it")
    return "\n".join(lines)
