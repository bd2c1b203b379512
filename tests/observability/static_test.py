#!/usr/bin/env python3
"""Rules and dashboards against the code and its documentation, without running anything:
metrics that exist, labels that they have, a runbook and a test of every alert, recordings that are used, dashboards that are
as their generator writes them. Every check is shown to find what it looks for."""
import json
import pathlib
import re
import subprocess
import sys
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "deploy/observability"
TESTS = pathlib.Path(__file__).resolve().parent
OWN = ("perfd_", "process_")                 # what perfd's page has
FOREIGN = {"up", "scrape_samples_scraped", "ALERTS"}  # what Prometheus makes
TARGET_LABELS = {"cluster", "instance", "job", "le", "alertname", "alertstate"}
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def metrics_in_docs():
    """{name: labels} of the table in docs/metrics.md."""
    found = {}
    for line in (ROOT / "docs/metrics.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 4 and (name := re.fullmatch(r"`(\w+)`", cells[1])):
            found[name[1]] = set(re.findall(r"\w+", cells[3]))
    return found


def metrics_in_code():
    text = "".join(p.read_text() for p in (ROOT / "daemon/metrics").glob("*.cc"))
    return set(re.findall(r'"((?:perfd|process)_[a-z0-9_]+)"', text))


def names_in(expression):
    """Names that could be metrics or recordings. Strings and what stands in by (...), on (...) are none."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\b(by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)", "", bare)
    return {name for name in re.findall(r"[A-Za-z_:][\w:]*", bare)
            if ":" in name.strip(":") or name.startswith(OWN) or name in FOREIGN}


def base(name, known):
    return name if name in known else SUFFIX.sub("", name)


def unknown_names(expression, known, recorded):
    return {n for n in names_in(expression)
            if n not in FOREIGN and n not in recorded and base(n, known) not in known}


def unknown_labels(expression, known):
    """metric{label ...}: labels that the documentation does not give to the metric."""
    wrong = set()
    for name, inside in re.findall(r"((?:perfd|process)_\w+)\{([^}]*)\}", expression):
        labels = known.get(base(name, known))
        for label in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)', re.sub(r'"[^"]*"', '""', inside)):
            if labels is not None and label not in labels | TARGET_LABELS:
                wrong.add(f"{name}{{{label}}}")
    return wrong


def rules(path):
    """[(kind, name, expression, text)] of a file of rules: one block for each '- alert:' or '- record:'."""
    blocks = re.split(r"(?m)^ +- (?=(?:alert|record): )", path.read_text())[1:]
    found = []
    for block in blocks:
        block = re.split(r"(?m)^  - name: ", block)[0]
        block = "\n".join(line for line in block.splitlines() if not line.lstrip().startswith("#"))
        kind, name = re.match(r"(\w+): (\S+)", block).groups()
        expression = re.search(r"(?ms)^ +expr: (.*?)(?=^ +(?:for|labels|annotations):|\Z)", block)[1].removeprefix("|")
        found.append((kind, name, expression, block))
    return found


ALERTS = rules(HERE / "rules/alerts.yml")
RECORDINGS = rules(HERE / "rules/recording.yml")
RECORDED = {name for _, name, _, _ in RECORDINGS}
DASHBOARDS = {p.name: json.loads(p.read_text()) for p in sorted((HERE / "grafana/dashboards").glob("*.json"))}


def queries():
    """(where, expression) of every rule, panel and variable."""
    for _, name, expression, _ in ALERTS + RECORDINGS:
        yield name, expression
    for file, board in DASHBOARDS.items():
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                yield f"{file}: {panel['title']}", target["expr"]
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                yield f"{file}: ${variable['name']}", variable["definition"]


def faults_of_alert(block):
    wanted = {"severity": r"severity: (critical|warning|info)", "summary": r"summary: '.{15,}'",
              "description": r"description: '.{40,}'", "runbook": r"runbook: '.{40,}'"}
    return [word for word, pattern in wanted.items() if not re.search(pattern, block)]


def untested(alerts, text):
    """Alerts that no case expects to fire, or none expects to be silent."""
    def seen(name, silent):
        for case in re.split(r"(?m)^ +- (?=expr:|\{ expr:)", text):
            pattern = re.search(r'alertname=(~?)"([^"]+)"', case)
            covers = pattern and (re.fullmatch(pattern[2], name) if pattern[1] else pattern[2] == name)
            if covers and bool(re.search(r"exp_samples: \[\]", case)) == silent:
                return True
        return False
    return [name for name in alerts if not (seen(name, True) and seen(name, False))]


def overlaps(panels):
    taken, faults = {}, []
    for panel in panels:
        g = panel["gridPos"]
        if g["x"] + g["w"] > 24 or min(g["w"], g["h"]) < 1:
            faults.append(f"{panel['title']}: outside the grid")
        for cell in ((x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])):
            if cell in taken:
                faults.append(f"{panel['title']} on {taken[cell]}")
                break
            taken[cell] = panel["title"]
    return faults


def test_documentation_and_code_have_the_same_metrics():
    docs, code = set(metrics_in_docs()), metrics_in_code()
    assert {n for n in code if n.startswith("perfd_")} == docs, (sorted(docs ^ {n for n in code if n.startswith("perfd_")}))
    assert len(docs) > 25, docs


def test_every_query_asks_for_metrics_and_labels_that_exist():
    known = metrics_in_docs()
    known |= {name: set() for name in metrics_in_code() if name.startswith("process_")}
    faults = [f"{where}: {sorted(bad)}" for where, expression in queries()
              if (bad := unknown_names(expression, known, RECORDED) | unknown_labels(expression, known))]
    assert not faults, "\n".join(faults)
    asked = [where for where, expression in queries() if names_in(expression)]
    assert len(asked) == len(list(queries())) and len(asked) > 100, "a query asks for nothing"
    # The checks find what is wrong.
    assert unknown_names('rate(perfd_nonsense_total{a="perfd_other"}[5m]) by (perfd_label)', known, RECORDED) == {
        "perfd_nonsense_total"}
    assert unknown_names("cluster:perfd_nothing:rate5m", known, RECORDED)
    assert not unknown_names("perfd_stop_seconds_bucket", known, RECORDED)
    assert unknown_labels('perfd_profiles{states="DONE"}', known) == {"perfd_profiles{states}"}
    assert not unknown_labels('perfd_profiles{state=~"DONE|x=1", cluster="c"}', known)


def unshown(known, expressions):
    """Documented metrics that nothing asks for."""
    return set(known) - {base(name, known) for expression in expressions for name in names_in(expression)}


def test_every_metric_is_shown_or_watched():
    known = metrics_in_docs()
    # When a profile ended: for questions of one's own. The dashboards have when it was submitted, and its state.
    assert unshown(known, [e for _, e in queries()]) == {"perfd_profile_finished_timestamp_seconds"}
    assert unshown(["perfd_a_total", "perfd_b_seconds"], ["rate(perfd_b_seconds_bucket[5m])"]) == {"perfd_a_total"}


def test_every_recording_is_used():
    used = set().union(*(names_in(expression) for where, expression in queries() if where not in RECORDED))
    assert RECORDED <= used, RECORDED - used


def test_every_alert_says_what_it_means_and_what_to_do_and_is_tested():
    assert len(ALERTS) > 15 and len({name for _, name, _, _ in ALERTS}) == len(ALERTS)
    faults = [f"{name}: {missing}" for _, name, _, block in ALERTS if (missing := faults_of_alert(block))]
    assert not faults, faults
    assert faults_of_alert("labels: { severity: low }") == ["severity", "summary", "description", "runbook"]
    text = (TESTS / "alerts_test.yml").read_text()
    missing = untested([name for _, name, _, _ in ALERTS], text)
    assert not missing, missing
    assert untested(["PerfdDown", "PerfdOther"], text) == ["PerfdOther"]
    assert untested(["PerfdDown"], re.sub(r"exp_samples: \[\]", "exp_samples: [{ value: 1 }]", text)) == ["PerfdDown"]
    for name in RECORDED:
        assert name in (TESTS / "recording_test.yml").read_text(), f"{name} has no test"


def test_dashboards_are_as_their_generator_writes_them():
    generator = HERE / "make_dashboards.py"
    run = subprocess.run([sys.executable, "-B", generator, "--check"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    check = (f"import sys; sys.argv = ['x', '--check']; sys.path.insert(0, {str(HERE)!r})\n"
             "import make_dashboards as m; m.VARIABLES['user']['label'] = 'Someone'; m.main()")
    run = subprocess.run([sys.executable, "-B", "-c", check], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "fleet.json" in run.stderr and "health.json" not in run.stderr, run


def test_dashboards_are_sound():
    assert set(DASHBOARDS) == {"fleet.json", "job.json", "loops.json", "imbalance.json", "health.json"}
    assert len({b["uid"] for b in DASHBOARDS.values()}) == len(DASHBOARDS)
    for file, board in DASHBOARDS.items():
        panels = board["panels"]
        assert len({p["id"] for p in panels}) == len(panels), file
        assert not overlaps(panels), (file, overlaps(panels))
        names = {v["name"] for v in board["templating"]["list"]}
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(board))) - {"__rate_interval", "__range", "__value", "__all",
                                                                    "__url_time_range", "__data"}
        assert used <= names, f"{file}: {used - names} are no variables"
        assert {"datasource", "cluster"} <= names, file
        for panel in panels:
            if panel["type"] not in ("row", "text", "alertlist"):
                assert panel["targets"] and panel["description"], f"{file}: {panel['title']}"
                refs = [t["refId"] for t in panel["targets"]]
                assert len(set(refs)) == len(refs), f"{file}: {panel['title']}: {refs}"
    everything = {v["name"] for b in DASHBOARDS.values() for v in b["templating"]["list"]}
    assert {"cluster", "user", "program", "job"} <= everything
    assert "${perfd}/profiles/" in json.dumps(DASHBOARDS["fleet.json"]) and "${perfd}/profiles/" in json.dumps(DASHBOARDS["job.json"])
    one = {"title": "a", "gridPos": {"x": 0, "y": 0, "w": 2, "h": 2}}
    assert overlaps([one, one]) and overlaps([{**one, "gridPos": {"x": 20, "y": 0, "w": 5, "h": 1}}])


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
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
