"""The tests of one build as ctest knows them, what may run beside what, and one call of ctest with its progress."""
import collections
import dataclasses
import fnmatch
import json
import os
import re
import shutil
import time

import cases
import process
from screen import duration

MEASURED_ALONE = "cpus"  # the RESOURCE_LOCK of what measures
WAITING = ("e2e_", "deploy_")  # whole programs, each in name spaces of its own; all other integration tests are by themselves
SIDE_BY_SIDE = 3         # of what mostly waits
UNKNOWN_S = 20           # for a test that nobody has timed yet
QUICK_S = {"unit": 1, "lint": 3, "fuzz": 4, "integration": 11}  # the same, by its label; expected.json has what takes longer
LONGEST_S = 3600


@dataclasses.dataclass(frozen=True)
class Suite:
    name: str
    labels: frozenset
    locks: frozenset
    serial: bool
    timeout: float


def parse_suites(text):
    """Of `ctest --show-only=json-v1`."""
    found = []
    for test in json.loads(text)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        found.append(Suite(test["name"], frozenset(properties.get("LABELS", [])),
                           frozenset(properties.get("RESOURCE_LOCK", [])), bool(properties.get("RUN_SERIAL", False)),
                           float(properties.get("TIMEOUT", 600))))
    return found


def known(build):
    return parse_suites(process.output("ctest", "--test-dir", build, "--show-only=json-v1") or '{"tests": []}')


def chosen(suites, globs=("*",), labels=()):
    return [s for s in suites if any(fnmatch.fnmatchcase(s.name, g) for g in globs) and (not labels or s.labels & set(labels))]


def phases(suites, isolated=True):
    """[(jobs, suites)]: what is quick on all CPUs, what has to be by itself one at a time, what waits side by side where each
    has name spaces of its own (tests/e2e/isolated.py); what measures comes last, with the machine to itself."""
    groups = collections.OrderedDict((key, []) for key in ("quick", "serial", "waiting", "alone"))
    for suite in suites:
        kind = ("alone" if MEASURED_ALONE in suite.locks else "serial" if suite.serial else
                "waiting" if suite.name.startswith(WAITING) else "serial" if "integration" in suite.labels else "quick")
        groups[kind].append(suite)
    cpus = os.cpu_count() or 1
    jobs = {"quick": cpus, "serial": 1, "waiting": max(SIDE_BY_SIDE, cpus) if isolated else 1, "alone": 1}
    return [(jobs[kind], group) for kind, group in groups.items() if group]


def usual(suite):
    return max((seconds for label, seconds in QUICK_S.items() if label in suite.labels), default=UNKNOWN_S)


class Watch:
    """Reads what `ctest --verbose` prints: says what has ended and what runs, and keeps the output of each test."""

    def __init__(self, screen, title, suites, jobs, expected, clock=time.monotonic):
        self.screen, self.title, self.jobs, self.clock = screen, title, jobs, clock
        self.expected = {suite.name: expected.get(suite.name, usual(suite)) for suite in suites}
        self.waiting = {suite.name for suite in suites}
        self.of, self.done = len(suites), 0
        self.running, self.names, self.case, self.took = {}, {}, {}, {}
        self.output = collections.defaultdict(lambda: collections.deque(maxlen=3000))

    def read(self, line):
        if match := re.match(r"^(\d+): (.*)", line):
            name = self.names.get(match[1], "")
            self.output[name].append(match[2])
            if found := re.search(r"::(test_\w+)|^\[ RUN      \] (\S+)", match[2]):
                self.case[name] = found[1] or found[2]
        elif match := re.match(r"^ +Start +(\d+): (\S+)", line):
            self.names[match[1]] = match[2]
            self.running[match[2]] = self.clock()
            self.waiting.discard(match[2])
        elif match := re.match(r"^ *\d+/\d+ Test +#\d+: (\S+) [. ]*(\**\w.*?) +([\d.]+) sec", line):
            self.ended(match[1], match[2], float(match[3]))

    def ended(self, name, how, seconds):
        self.running.pop(name, None)
        self.took[name] = seconds
        self.done += 1
        said = "passed" if how == "Passed" else "skipped" if "Skipped" in how else f"FAILED ({how.strip('*')})"
        self.screen.line(f"[{self.done} of {self.of}] {said} {name}, {duration(seconds)}")

    def left(self):
        """Seconds, by what the tests took the last time."""
        now = self.clock()
        # What has taken longer than ever takes a tenth longer still.
        rest = [max((now - begin) / 10, self.expected.get(name, UNKNOWN_S) - (now - begin)) for name, begin in self.running.items()]
        waiting = sum(self.expected.get(name, UNKNOWN_S) for name in self.waiting)
        return max([(sum(rest) + waiting) / self.jobs, *rest])

    def tick(self):
        now = self.clock()
        what = ", ".join(f"{name}{' (' + self.case[name] + ')' if name in self.case else ''} {duration(now - begin)}"
                         for name, begin in self.running.items())
        self.screen.moment(f"[{self.done} of {self.of}] {self.title}: {what or 'starting'}; "
                           f"about {duration(max(1, round(self.left())))} left")

    def excerpt(self, name):
        """What a reader needs of a failed test's output."""
        lines = list(self.output[name])
        wanted = re.compile(r": Failure|FAILED  \]|^E   |Traceback|AssertionError|^FAILED|^FAIL |ERROR: |WARNING: ThreadSan|"
                            r"runtime error")
        near = sorted({n for i, line in enumerate(lines) if wanted.search(line) for n in range(i - 1, i + 6)})
        shown = [lines[n] for n in near if 0 <= n < len(lines) - 30][:60] + lines[-30:]
        return [f"    {line[:600]}" for line in shown]


def call(build, suites, jobs, folder, watch, env=None):
    """One call of ctest; the cases. folder: takes its log and its results."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    junit, log = folder / "ctest.junit", folder / "ctest.log"
    command = ["ctest", "--test-dir", build, "--verbose", "-j", jobs, "--output-junit", junit, "--test-output-size-passed",
               1 << 20, "--test-output-size-failed", 1 << 20, "-R", "^(" + "|".join(re.escape(s.name) for s in suites) + ")$"]
    limit = min(LONGEST_S, sum(s.timeout for s in suites) / jobs + max(s.timeout for s in suites) + 60)
    try:
        process.run(command, log, limit, watch.read, watch.tick,
                    {"GTEST_OUTPUT": f"xml:{folder}/", "PERFD_RESULTS": str(folder), **(env or {})})
    except process.TimeLimit:
        return [cases.Case("ctest", watch.title, cases.FAILED, limit, f"not over after {duration(limit)}")]
    if not junit.exists():
        return [cases.Case("ctest", watch.title, cases.FAILED, 0.0, f"ctest wrote no results; see {log}")]
    return cases.read_results(junit, folder)
