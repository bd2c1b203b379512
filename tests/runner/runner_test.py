"""The runner against what it must not miss: a lost case, an unlisted skip, a promise that is tried again, a silent quarter of
a minute, a test that is in no part."""
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import time

import pytest

import cases
import parts
import process
import run
import state
import suites
import tidy
from cases import Case, FAILED, PASSED, SKIPPED
from screen import Screen

ROOT = state.ROOT
BUILD = pathlib.Path(os.environ.get("PERFD_BUILD_DIR", ROOT / "build/ci"))

GTEST = """<testsuites><testsuite name="A">
<testcase name="Good" classname="A" status="run" result="completed" time="0.5"/>
<testcase name="Bad" classname="A" status="run" result="completed" time="0"><failure message="x.cc:3&#10;it is 4"/></testcase>
<testcase name="Not" classname="A" status="run" result="skipped" time="0"><skipped message="x.cc:9&#10;needs root"/></testcase>
<testcase name="Filtered" classname="A" status="notrun" result="suppressed" time="0"/>
</testsuite></testsuites>"""
PYTEST = """<testsuites><testsuite name="pytest">
<testcase classname="e2e.b_test" name="test_good" time="1.5"/>
<testcase classname="e2e.b_test" name="test_bad" time="2"><failure message="cluster.Broken: the text">..</failure></testcase>
<testcase classname="e2e.b_test" name="test_not" time="0"><skipped type="pytest.skip" message="no Chromium">x:1</skipped></testcase>
</testsuite></testsuites>"""


def ctest_file(folder, *tests):
    rows = "".join(f'<testcase name="{name}" classname="{name}" time="1" status="{status}">{inside}</testcase>'
                   for name, status, inside in tests)
    (folder / "ctest.junit").write_text(f"<testsuite>{rows}</testsuite>")
    return folder / "ctest.junit"


def read(folder, *tests):
    return {case.id: (case.outcome, case.reason) for case in cases.read_results(ctest_file(folder, *tests), folder)}


def test_cases_of_both_kinds_are_counted(tmp_path):
    (tmp_path / "a_test.xml").write_text(GTEST)
    (tmp_path / "e2e_b.xml").write_text(PYTEST)
    found = read(tmp_path, ("a_test", "fail", ""), ("e2e_b", "fail", ""))
    assert found == {
        "a_test/A.Good": (PASSED, ""), "a_test/A.Bad": (FAILED, "x.cc:3\nit is 4"), "a_test/A.Not": (SKIPPED, "x.cc:9\nneeds root"),
        "e2e_b/test_good": (PASSED, ""), "e2e_b/test_bad": (FAILED, "cluster.Broken: the text"),
        "e2e_b/test_not": (SKIPPED, "no Chromium")}


def test_a_test_that_dies_is_a_failure_with_and_without_its_file(tmp_path):
    (tmp_path / "a_test.xml").write_text(GTEST.replace("<failure", "<other"))
    died = '<failure message="SIGSEGV"/>'
    found = read(tmp_path, ("a_test", "fail", died), ("b_test", "fail", died))
    assert found["a_test"] == (FAILED, "SIGSEGV, though none of its cases failed")
    assert found["b_test"] == (FAILED, "SIGSEGV")
    (tmp_path / "a_test.xml").write_text("<testsuites><testsu")
    assert read(tmp_path, ("a_test", "fail", died))["a_test"] == (FAILED, "SIGSEGV")


def test_a_test_without_cases_is_a_failure(tmp_path):
    (tmp_path / "a_test.xml").write_text("<testsuites/>")
    assert read(tmp_path, ("a_test", "run", "")) == {"a_test": (FAILED, "it ran no case")}


def test_programs_say_why_they_are_skipped(tmp_path):
    skipped = '<skipped message="SKIP_RETURN_CODE=77"/><system-out>SKIPPED: no systemd\n</system-out>'
    found = read(tmp_path, ("deploy_units", "notrun", skipped), ("gone", "notrun", '<skipped message="Unable to find"/>'))
    assert found == {"deploy_units": (SKIPPED, "no systemd"), "gone": (FAILED, "Unable to find")}


def test_control_characters_in_what_a_test_prints_lose_nothing(tmp_path):
    skipped = '<skipped message="SKIP_RETURN_CODE=77"/><system-out>\x1b[1mSKIPPED: no systemd\x00</system-out>'
    assert read(tmp_path, ("deploy_units", "notrun", skipped)) == {"deploy_units": (SKIPPED, "no systemd?")}


def test_a_second_file_of_a_test_and_one_of_nobody_are_counted_too(tmp_path):
    (tmp_path / "a_test.xml").write_text(GTEST)
    (tmp_path / "a_test_1.xml").write_text(GTEST.replace('"A"', '"B"'))
    (tmp_path / "other.xml").write_text(GTEST)
    found = read(tmp_path, ("a_test", "fail", ""))
    assert {"a_test/A.Bad", "a_test/B.Bad", "other/A.Bad"} <= set(found)


def test_only_listed_reasons_excuse_a_skip():
    skips = cases.Skips("# a comment\n\na_test/A.* | needs (root|bash) | CI is root\n")
    judged = skips.judge([Case("a_test", "A.x", SKIPPED, 0, "x.cc:1\nneeds root"), Case("a_test", "A.y", SKIPPED, 0, "tired"),
                          Case("b_test", "A.x", SKIPPED, 0, "needs root"), Case("a_test", "A.z", PASSED)])
    assert [case.outcome for case in judged] == [SKIPPED, FAILED, FAILED, PASSED]
    assert "tests/skips.txt does not list the reason: tired" in judged[1].reason
    with pytest.raises(ValueError, match="line 2"):
        cases.Skips("a | b | c\na | b\n")


def test_the_list_of_skips_can_be_read():
    assert cases.Skips((ROOT / "tests/skips.txt").read_text()).entries


def test_a_second_try_replaces_case_by_case():
    first = [Case("a", "x", FAILED), Case("a", "y", PASSED), Case("a", "", FAILED), Case("b", "", FAILED)]
    merged = cases.replaced(first, [Case("a", "x", PASSED)])
    assert [(c.id, c.outcome) for c in merged] == [("a/x", PASSED), ("a/y", PASSED), ("b", FAILED)]
    assert cases.closing_line(merged) == "2 passed, 1 failed, 0 skipped"


# ---- second tries ---------------------------------------------------------------------------------------------------

def suite(name, *labels, locks=(), serial=False):
    return suites.Suite(name, frozenset(labels), frozenset(locks), serial, 60)


class FakeRun(run.Run):
    """Each call of ctest answers with the next of the results given."""

    def __init__(self, tmp_path, *answers):
        super().__init__(Screen(io.StringIO()), tmp_path)
        self.answers, self.called = list(answers), []

    def call(self, step, build, group, jobs, **env):
        self.called.append((tuple(s.name for s in group), env))
        return self.answers.pop(0), suites.Watch(self.screen, "", group, jobs, {})


def test_only_timing_is_tried_again_and_shown(tmp_path):
    bad = [Case("e2e_truth", "test_x", FAILED, 0, "0.3"), Case("unit_test", "A.x", FAILED, 0, "3 is 4")]
    tried = FakeRun(tmp_path, bad, [Case("e2e_truth", "test_x", PASSED)])
    tried.phase(parts.Tests("ci"), None, [suite("e2e_truth", "timing"), suite("unit_test", "unit")], 1)
    assert [case.id for case in tried.failed()] == ["unit_test/A.x"]
    assert tried.called[1] == (("e2e_truth",), {"PYTEST_ADDOPTS": " --last-failed"})
    assert "retry e2e_truth: test_x" in tried.screen.stream.getvalue()


def test_a_broken_promise_is_not_tried_again(tmp_path):
    broken = [Case("e2e_hpcc", "test_x", FAILED, 0, "cluster.Broken: a residual")]
    tried = FakeRun(tmp_path, broken)
    tried.phase(parts.Tests("ci"), None, [suite("e2e_hpcc", "timing")], 1)
    assert len(tried.called) == 1 and len(tried.failed()) == 1


def test_at_most_two_files_of_a_run_are_tried_again(tmp_path):
    names = ["e2e_a", "e2e_b", "e2e_c"]
    first = [Case(name, "test_x", FAILED) for name in names]
    tried = FakeRun(tmp_path, first, [Case("e2e_a", "test_x", PASSED)], [Case("e2e_b", "test_x", FAILED)])
    tried.phase(parts.Tests("ci"), None, [suite(name, "timing") for name in names], 1)
    assert [case.test for case in tried.failed()] == ["e2e_b", "e2e_c"] and len(tried.called) == 3


# ---- what runs beside what ------------------------------------------------------------------------------------------

def test_what_measures_has_the_machine_to_itself():
    quick, waits = suite("unit_test", "unit"), suite("e2e_html", "e2e")
    hold, truth = suite("hold_test", "integration"), suite("e2e_truth", "timing", locks=("cpus",))
    by_itself = suite("e2e_user", "e2e", serial=True)
    phases = suites.phases([truth, waits, hold, quick, by_itself])
    assert [group for _, group in phases] == [[quick], [hold, by_itself], [waits], [truth]]
    assert phases[1][0] == phases[3][0] == 1 and phases[2][0] >= 3
    assert [jobs for jobs, _ in suites.phases([waits], isolated=False)] == [1]


def test_tests_are_read_as_ctest_lists_them():
    text = json.dumps({"tests": [{"name": "e2e_a", "properties": [
        {"name": "LABELS", "value": ["timing"]}, {"name": "RESOURCE_LOCK", "value": ["cpus"]},
        {"name": "TIMEOUT", "value": 90.0}]}, {"name": "x_test"}]})
    found = suites.parse_suites(text)
    assert found == [suites.Suite("e2e_a", frozenset({"timing"}), frozenset({"cpus"}), False, 90.0),
                     suites.Suite("x_test", frozenset(), frozenset(), False, 600.0)]
    assert [s.name for s in suites.chosen(found, ("e2e_*",), ("timing",))] == ["e2e_a"]
    assert suites.chosen(found, ("*",), ("lint",)) == []


# ---- parts ----------------------------------------------------------------------------------------------------------

def whole_tests(steps):
    """What is run with no case of it left out."""
    return [s for s in steps if isinstance(s, parts.Tests) and not s.pytest]


@pytest.fixture(scope="module", name="known")
def known_tests():
    found = suites.known(BUILD) if (BUILD / "CTestTestfile.cmake").exists() else []
    if not found:
        pytest.skip(f"{BUILD} is not configured")
    return found


def test_every_test_is_in_a_part_with_all_its_cases(known):
    held = {s.name for part in parts.PARTS for step in whole_tests(part.steps) if step.preset == "ci"
            for s in suites.chosen(known, step.names, step.labels)}
    assert {s.name for s in known} - held == set()


def test_what_a_part_names_is_there(known):
    named = [(part.name, glob, step.labels) for part in parts.PARTS for step in part.steps
             if isinstance(step, parts.Tests) and step.preset == "ci" for glob in step.names]
    assert [(part, glob) for part, glob, labels in named if not suites.chosen(known, (glob,), labels)] == []


def test_tests_may_take_as_long_as_their_part_says(known):
    short = {}
    for part in parts.PARTS:
        tests = [step for step in part.steps if isinstance(step, parts.Tests) and step.preset == "ci"]
        allowed = sum(s.timeout for step in tests for s in suites.chosen(known, step.names, step.labels))
        if tests and allowed < 60 * part.minutes:
            short[part.name] = (allowed / 60, part.minutes)
    assert short == {}


def test_a_first_run_knows_about_how_long_whole_systems_take(known):
    expected = json.loads((ROOT / "tests/runner/expected.json").read_text())
    steps = [step for all_of_it in (parts.SMALL, *(part.steps for part in parts.PARTS)) for step in all_of_it
             if isinstance(step, parts.Tests) and not step.labels]
    assert [(run.key_of(step), s.name) for step in steps for s in suites.chosen(known, step.names)
            if s.name not in expected.get(run.key_of(step), {})] == []


def test_what_nobody_has_timed_is_expected_to_take_what_its_kind_takes():
    watch = suites.Watch(Screen(io.StringIO()), "ci", [suite("a_test", "unit"), suite("e2e_b", "e2e"), suite("e2e_c", "e2e")], 2,
                         {"e2e_b": 79})
    assert watch.left() == (1 + 79 + suites.UNKNOWN_S) / 2


def test_a_long_run_is_not_taken_for_a_short_one():
    keys = [run.key_of(step) for part in parts.PARTS for step in whole_tests(part.steps) if "e2e_promises" in step.names]
    assert len(set(keys)) == 2, keys


@pytest.mark.parametrize("preset,labels", [("asan", {"unit", "fuzz"}), ("tsan", {"unit", "integration"})])
def test_both_sanitizers_run_what_their_builds_are_for(preset, labels):
    assert any(set(step.labels) == labels for part in parts.PARTS for step in whole_tests(part.steps) if step.preset == preset)


def test_parts_take_at_most_an_hour_and_have_names_of_their_own():
    assert all(part.minutes <= 60 for part in parts.PARTS)
    assert len({part.name for part in parts.PARTS}) == len(parts.PARTS)
    assert all(parts.part(name) for name in parts.HELD_BY_SMALL)


def test_what_the_small_tier_holds_it_runs_completely():
    for name in parts.HELD_BY_SMALL:
        assert set(whole_tests(parts.part(name).steps)) <= set(whole_tests(parts.SMALL)), name


def test_both_halves_of_the_truths_are_all_of_them():
    halves = [part.steps[-1].pytest for part in parts.PARTS if part.name.startswith("builds-")]
    assert halves[1] == halves[0].replace("-k '", "-k 'not (").removesuffix("'") + ")'", halves


def test_every_file_of_the_tree_is_read_by_one_chunk_of_clang_tidy():
    files = [f"core/{n}.cc" for n in range(11)]
    chunks = [tidy.chunk_of(files, k, parts.TIDY_CHUNKS) for k in range(1, parts.TIDY_CHUNKS + 1)]
    assert sorted(sum(chunks, [])) == sorted(files)
    assert {step.chunk for part in parts.PARTS for step in part.steps if isinstance(step, parts.Tidy)} == set(
        range(1, parts.TIDY_CHUNKS + 1))


def test_a_changed_header_is_read_by_the_source_beside_it():
    assert tidy.sources_of(["core/a.h", "agent/b.cc", "README.md"], ["agent/b.cc", "core/a.cc", "core/c.cc"]) == [
        "agent/b.cc", "core/a.cc"]


# ---- what is remembered ---------------------------------------------------------------------------------------------

def test_what_has_passed_is_forgotten_when_a_file_changes(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    subprocess.run(["git", "init", "-q", tree], check=True)
    (tree / ".gitignore").write_text("build/\n")
    (tree / "a.cc").write_text("int a;")
    before = state.tree_state(tree)
    (tree / "build").mkdir()
    (tree / "build/a.o").write_text("code")
    assert state.tree_state(tree) == before
    passed = state.Passed(before, tmp_path)
    passed.add("unit")
    assert state.Passed(before, tmp_path).has("unit")
    for change in ("int b;", None):
        (tree / "a.cc").write_text(change) if change else (tree / "a.cc").unlink()
        now = state.tree_state(tree)
        assert now != before and not state.Passed(now, tmp_path).has("unit")
    (tree / "a.cc").write_text("int a;")
    assert state.tree_state(tree) == before
    shutil.rmtree(tree / ".git")
    assert state.tree_state(tree)


# ---- what is shown --------------------------------------------------------------------------------------------------

class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_nobody_waits_longer_than_a_quarter_of_a_minute_for_a_line():
    clock, stream = Clock(), io.StringIO()
    screen = Screen(stream, clock)
    watch = suites.Watch(screen, "ci", [suite("e2e_a"), suite("e2e_b")], 1, {"e2e_a": 100, "e2e_b": 40}, clock)
    watch.read("    Start 1: e2e_a")
    watch.read("1: tests/e2e/a_test.py::test_x")
    times = [0.0]
    for _ in range(100):
        clock.now += 1
        before = stream.tell()
        watch.tick()
        if stream.tell() > before:
            times.append(clock.now)
    assert max(b - a for a, b in zip(times, times[1:])) <= 10, times
    assert "[0 of 2] ci: e2e_a (test_x) 96 s; about 50 s left" in stream.getvalue()
    watch.read(" 1/2 Test #1: e2e_a ............................   Passed   97.20 sec")
    watch.read(" 2/2 Test #2: e2e_b ............................***Failed    3.00 sec")
    assert stream.getvalue().endswith("[1 of 2] passed e2e_a, 97 s\n[2 of 2] FAILED (Failed) e2e_b, 3 s\n")
    assert watch.took == {"e2e_a": 97.2, "e2e_b": 3.0}


def follow(tmp_path, kind, script):
    """(lines, seconds at which they came, exit code) of a command under deploy/progress.sh."""
    lines, at, begin = [], [0.0], time.monotonic()

    def note(line):
        lines.append(line)
        at.append(time.monotonic() - begin)
    code = process.run([ROOT / "deploy/progress.sh", kind, tmp_path / "log", "bash", "-c", textwrap.dedent(script)],
                       tmp_path / "out", 60, note)
    return lines, [b - a for a, b in zip(at, at[1:])], code


def test_a_slow_build_says_where_it_is_and_why_it_failed(tmp_path):
    lines, gaps, code = follow(tmp_path, "build", """
        echo '[0/2] Re-checking globbed directories...'
        echo '[1/4 0.1s] Building CXX object core/a.cc.o'
        sleep 12
        echo '[2/4 9.1s] Building CXX object core/b.cc.o'
        echo 'FAILED: core/c.cc.o'
        echo 'core/c.cc:7: error: this is wrong'
        exit 1""")
    assert code == 1 and max(gaps) < 12, (lines, gaps)
    assert any(line.startswith("[1 of 4] ") and "left" in line for line in lines), lines
    assert "core/c.cc:7: error: this is wrong" in lines
    assert "[2/4 9.1s]" in (tmp_path / "log").read_text()


def test_packages_are_counted_through_all_their_stages(tmp_path):
    lines, gaps, code = follow(tmp_path, "packages", """
        echo '0 upgraded, 2 newly installed, 0 to remove and 129 not upgraded.'
        echo 'Get:1 http://deb.debian.org/debian bookworm/main amd64 cowsay all 3.03 [21.4 kB]'
        echo 'Get:2 http://deb.debian.org/debian bookworm/main amd64 libc6 amd64 2.36 [2 kB]'
        echo 'Unpacking cowsay (3.03) ...'
        sleep 9
        echo 'Setting up cowsay (3.03) ...'
        exit 7""")
    assert code == 7 and max(gaps) < 12, (lines, gaps)
    assert any(line.startswith("[3 of 6] unpacking cowsay, ") for line in lines), lines


def test_what_takes_too_long_is_ended_with_all_it_started(tmp_path):
    with pytest.raises(process.TimeLimit):
        process.run(["bash", "-c", f"sleep 60 & echo $! >{tmp_path}/pid; wait"], tmp_path / "out", 1)
    pid = (tmp_path / "pid").read_text().strip()

    def gone():
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
        except OSError:
            return True
    deadline = time.monotonic() + 10  # the signal was sent; the kernel may take a moment
    while not gone() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert gone()


def test_the_table_says_where_the_time_went():
    text = run.table({"run": "small", "cpus": 2, "steps": [{"step": "build ci", "wall_s": 30.0, "cpu_s": 58.5},
                                                          {"step": "test ci", "wall_s": 10.0, "cpu_s": 2.0}]})
    assert "     30.0   75      58.5  build ci" in text and "     40.0  100      60.5  all of it" in text


def test_the_small_tier_has_one_of_each_kind():
    """Every file of e2e is in it, with some of its cases or with all of them."""
    files = {f"e2e_{file.stem.removesuffix('_test')}" for file in (ROOT / "tests/e2e").glob("*_test.py")}
    whole = {f"e2e_{name}" for name in parts.PROMISES}
    assert files - whole - set(parts.with_small_cases()) == {"e2e_phases"}  # a minute, of which `variants` shows nearly all


def test_what_cannot_be_built_fails_all_that_needs_it(tmp_path, monkeypatch):
    broken = run.Run(Screen(io.StringIO()), tmp_path)
    monkeypatch.setattr(broken, "follow", lambda kind, *_: kind == "configure")
    assert not broken.run((parts.Build("ci"), parts.Tests("ci"), parts.Tests("ci")))
    assert [case.id for case in broken.cases] == ["build/ci all", "build/ci", "build/ci"]
    assert not broken.run((parts.Build("ci"),)), "nor does a later part pass"


def test_a_busy_host_excuses_what_measures_and_no_promise(tmp_path):
    e2e = ROOT / "tests/e2e"
    shutil.copy(e2e / "conftest.py", tmp_path)
    (tmp_path / "x_test.py").write_text(textwrap.dedent("""
        import threading
        import cluster, pytest
        cluster.host_is_calm = lambda: False
        pytestmark = pytest.mark.only_calm
        def test_share(): assert 0.2 > 0.9
        def test_promise(): cluster.promised(False, "the text")
        @pytest.mark.promise
        def test_marked(): assert False
        def test_good(): pass
        @pytest.mark.promise
        def test_thread():
            thread = threading.Thread(target=lambda: 1 / 0)
            thread.start()
            thread.join()
        """))
    subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={tmp_path}/x.xml", tmp_path],
                   env={**os.environ, "PYTHONPATH": str(e2e), "PYTEST_ADDOPTS": ""}, capture_output=True, timeout=60, check=False)
    found = {case.name: case for case in cases.read_cases("e2e_x", tmp_path / "x.xml")}
    assert {name: case.outcome for name, case in found.items()} == {
        "test_share": SKIPPED, "test_promise": FAILED, "test_marked": FAILED, "test_good": PASSED, "test_thread": FAILED}
    assert "failed while this host was busy" in found["test_share"].reason and "Broken: the text" in found["test_promise"].reason
