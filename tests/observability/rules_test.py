#!/usr/bin/env python3
"""promtool on the configuration and rules, and on their unit tests, which must also be able to fail."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parents[1] / "deploy/observability"
FILES = ("alerts_test.yml", "recording_test.yml")


def promtool(*arguments):
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=120)


# Changes that the unit tests must notice, each by the test of its alert. Those of one line are made at once: a run takes seconds.
CHANGES = [
    {"PerfdSamplesMissing": ("ratio_rate5m > 0.05", "ratio_rate5m > 0.01"), "PerfdTooManySeries": ("> 9500", "> 9501"),
     "PerfdStore.*": ("perfd_store_healthy == 0", "perfd_store_healthy == 2"), "PerfdDown": ("for: 2m", "for: 9m"),
     "PerfdPolicyBroken": ("perfd_policy_healthy == 0", "perfd_policy_healthy == 2"),
     "PerfdHookFails": ('"failed|refused"', '"failed"'), "PerfdHookSlow": ("200ms:ratio_1h > 0.01", "200ms:ratio_1h > 0.004")},
    {"PerfdPolicyBroken": ("for: 5m  #", "for: 1m  #"), "PerfdHookFails": ('result=~"failed|refused"', 'result!="decided"'),
     "PerfdHookSlow": ("200ms:ratio_1h > 0.01", "200ms:ratio_1h > 0.03")},
]


def failed_alerts(changes):
    """The alerts, as the unit tests name them, of which one fails when the rules are changed so."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch)
        (copy / "tests/observability").mkdir(parents=True)
        shutil.copytree(DEPLOY / "rules", copy / "deploy/observability/rules")
        shutil.copy(HERE / "alerts_test.yml", copy / "tests/observability")
        rules = copy / "deploy/observability/rules/alerts.yml"
        text = rules.read_text()
        for old, new in changes.values():
            assert old in text, f"{old} is not in the rules"
            text = text.replace(old, new)
        rules.write_text(text)
        run = promtool("test", "rules", copy / "tests/observability/alerts_test.yml")
        return set(re.findall(r'expr: .*?alertname=~?\\"([^"\\]+)', run.stdout + run.stderr)) if run.returncode else set()


def main():
    if shutil.which("promtool") is None:
        print("SKIPPED: Prometheus is not installed")
        sys.exit(77)
    faults = []
    for arguments in [("check", "rules", *sorted((DEPLOY / "rules").glob("*.yml"))),
                      ("check", "config", DEPLOY / "prometheus.yml"), *(("test", "rules", HERE / f) for f in FILES)]:
        run = promtool(*arguments)
        print(f"{'ok   ' if run.returncode == 0 else 'FAIL '} promtool {' '.join(a if isinstance(a, str) else a.name for a in arguments)}")
        faults += [] if run.returncode == 0 else [run.stdout + run.stderr]
    for changes in CHANGES:
        failed = failed_alerts(changes)
        for name, (_, instead) in changes.items():
            print(f"{'ok   ' if name in failed else 'FAIL '} the test of {name} notices '{instead}'")
            faults += [] if name in failed else [f"the test of {name} does not fail with '{instead}'"]
        faults += [f"the test of {name} fails for no reason" for name in failed - set(changes)]
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
