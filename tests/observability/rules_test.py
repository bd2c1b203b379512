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


def failed_alerts(threshold, instead):
    """How many unit tests fail when a threshold in the rules is another."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch)
        (copy / "tests/observability").mkdir(parents=True)
        shutil.copytree(DEPLOY / "rules", copy / "deploy/observability/rules")
        for name in FILES:
            shutil.copy(HERE / name, copy / "tests/observability")
        rules = copy / "deploy/observability/rules/alerts.yml"
        changed = rules.read_text().replace(threshold, instead)
        assert changed != rules.read_text(), f"{threshold} is not in the rules"
        rules.write_text(changed)
        run = promtool("test", "rules", copy / "tests/observability/alerts_test.yml")
        return len(re.findall(r"FAILED", run.stdout + run.stderr)) if run.returncode else 0


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
    for threshold, instead in [("ratio_rate5m > 0.05", "ratio_rate5m > 0.01"), ("> 9500", "> 9501"),
                               ("perfd_store_healthy == 0", "perfd_store_healthy == 2"), ("for: 2m", "for: 9m")]:
        caught = failed_alerts(threshold, instead) > 0
        print(f"{'ok   ' if caught else 'FAIL '} the tests notice '{instead}'")
        faults += [] if caught else [f"no test fails with '{instead}' for '{threshold}'"]
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
