"""What happened to each case: read from the JUnit files of ctest, GoogleTest and pytest. Skips need a reason that is listed."""
import dataclasses
import fnmatch
import pathlib
import re
import xml.etree.ElementTree as ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclasses.dataclass
class Case:
    test: str            # of ctest: a program, or a file of pytest
    name: str            # Suite.Case of GoogleTest, a function of pytest; "" where the test is one case
    outcome: str
    seconds: float = 0.0
    reason: str = ""     # why it failed or was skipped

    @property
    def id(self):
        return f"{self.test}/{self.name}" if self.name else self.test


def parse(file):
    """Whatever tests have printed: XML has no place for most control characters."""
    text = pathlib.Path(file).read_bytes().decode(errors="replace")
    return ElementTree.fromstring(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "?", text))


def read_cases(test, file):
    """Of one file in JUnit format, as GoogleTest and pytest write it. An unreadable file has no case."""
    try:
        root = parse(file)
    except ElementTree.ParseError:
        return []
    cases = []
    for node in root.iter("testcase"):
        if node.get("status") == "notrun":  # disabled, or left out by a filter
            continue
        suite = node.get("classname", "")
        name = node.get("name") if by_pytest(node) else f"{suite}.{node.get('name')}"
        bad, skip = [*node.findall("failure"), *node.findall("error")], node.find("skipped")
        outcome = FAILED if bad else SKIPPED if skip is not None else PASSED
        reason = bad[0].get("message", "") if bad else skip.get("message") or skip.text or "" if skip is not None else ""
        cases.append(Case(test, name, outcome, float(node.get("time", 0)), reason.strip()))
    return cases


def by_pytest(node):
    return node.get("status") is None


def reason_in(output):
    """A program that is skipped as a whole says why on a line of its own."""
    found = re.findall(r"SKIPPED: (.*)", output)
    return found[-1] if found else ""


def read_results(ctest_junit, folder):
    """All cases of one call of ctest; folder: where the tests have put their files, named after them (a_test.xml, a_test_1.xml)."""
    folder, cases, seen = pathlib.Path(folder), [], set()
    for node in parse(ctest_junit).iter("testcase"):
        test, status = node.get("name"), node.get("status")
        files = [f for f in folder.glob("*.xml") if re.sub(r"_\d+$", "", f.stem) == test or f.stem == test]
        seen |= set(files)
        own = [case for file in sorted(files) for case in read_cases(test, file)]
        cases += own or [whole(test, node)]
        if own and status == "fail" and not any(c.outcome == FAILED for c in own):
            cases.append(Case(test, "", FAILED, 0.0, why(node) + ", though none of its cases failed"))
        if files and not own and status == "run":
            cases[-1] = Case(test, "", FAILED, 0.0, "it ran no case")
    for file in sorted(set(folder.glob("*.xml")) - seen):
        cases += read_cases(file.stem, file)
    return cases


def why(node):
    """Why ctest calls a test failed."""
    failure = node.find("failure")
    return (failure.get("message") if failure is not None else "") or "it failed"


def whole(test, node):
    """The one case of a test that writes no file: lint, fuzz targets, programs that died."""
    status, output = node.get("status"), node.findtext("system-out") or ""
    outcome = {"run": PASSED, "fail": FAILED}.get(status, SKIPPED)
    reason = why(node) if outcome == FAILED else ""
    if outcome == SKIPPED:
        skipped = node.find("skipped")
        reason = reason_in(output) or (skipped.get("message", "") if skipped is not None else status)
        if "SKIP_RETURN_CODE" not in (skipped.get("message", "") if skipped is not None else ""):
            outcome = FAILED  # ctest could not start it
    return Case(test, "", outcome, float(node.get("time", 0)), reason)


class Skips:
    """The list of reasons: `glob of cases | regular expression of the reason | why this is acceptable`."""

    def __init__(self, text):
        self.entries = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = [field.strip() for field in line.split(" | ")]
            if len(fields) != 3 or not all(fields):
                raise ValueError(f"line {number} is not `case | reason | why`: {line}")
            self.entries.append((fields[0], re.compile(fields[1]), fields[2]))

    def allows(self, case):
        return any(fnmatch.fnmatchcase(case.id, glob) and reason.search(case.reason) for glob, reason, _ in self.entries)

    def judge(self, cases):
        """A skip for another reason is a failure."""
        for case in cases:
            if case.outcome == SKIPPED and not self.allows(case):
                case.outcome, case.reason = FAILED, f"skipped, and tests/skips.txt does not list the reason: {case.reason}"
        return cases


def closing_line(cases):
    count = {outcome: sum(case.outcome == outcome for case in cases) for outcome in (PASSED, FAILED, SKIPPED)}
    return f"{count[PASSED]} passed, {count[FAILED]} failed, {count[SKIPPED]} skipped"


def replaced(cases, second):
    """The second try's results take the place of the first's, case by case; what stood for a whole test goes."""
    new, again = {case.id: case for case in second}, {case.test for case in second}
    kept = [new.pop(case.id, case) for case in cases if case.name or case.test not in again]
    return kept + list(new.values())
