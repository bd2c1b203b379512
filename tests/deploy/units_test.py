#!/usr/bin/env python3
"""The systemd units: valid, and as confined as docs/services.md says. Needs systemd-analyze, no running systemd."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = ROOT / "deploy/systemd"
EXPOSURE_LIMIT = {"perfd": 4.0, "perf-agent": 4.0}
# Design section 3, and what giving rights up takes (docs/adr/0017): nothing else may creep in.
AGENT_CAPABILITIES = {"CAP_SYS_PTRACE", "CAP_PERFMON", "CAP_IPC_LOCK", "CAP_SYS_NICE", "CAP_DAC_READ_SEARCH",
                      "CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_CHECKPOINT_RESTORE"}


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


def settings(text):
    """{key: [values]} in order; an empty value resets nothing here: our units do not use that but to say 'none'."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"^([A-Za-z]+)=(.*)$", line)
        if match:
            found.setdefault(match[1], []).append(match[2])
    return found


def build(folder, unit, change=lambda text: text):
    """The unit as it is installed, with a program that exists on every machine in place of ours."""
    text = (UNITS / f"{unit}.service.in").read_text()
    text = re.sub(r"@PERFD_BINDIR@/\S+", "/bin/true", text)
    path = pathlib.Path(folder) / f"{unit}.service"
    path.write_text(change(text))
    return path


def exposure(path):
    out = run("systemd-analyze", "security", "--offline=true", "--no-pager", path).stdout
    match = re.search(r"Overall exposure level for \S+: ([0-9.]+)", out)
    assert match, f"no exposure in the output of systemd-analyze:\n{out}"
    return float(match[1])


def complaints(path):
    verified = run("systemd-analyze", "verify", "--man=no", path)
    return (verified.stdout + verified.stderr).strip() + ("" if verified.returncode == 0 else " (failed)")


def main():
    if not shutil.which("systemd-analyze"):
        print("SKIPPED: systemd-analyze is not installed")
        return 77
    failed = []

    def check(what, good):
        print(f"{'ok   ' if good else 'FAIL '} {what}")
        if not good:
            failed.append(what)

    with tempfile.TemporaryDirectory(prefix="perfd-units-") as folder:
        for unit, limit in EXPOSURE_LIMIT.items():
            path = build(folder, unit)
            said = complaints(path)
            check(f"{unit}: systemd-analyze verify says nothing ({said or 'nothing'})", said == "")
            level = exposure(path)
            check(f"{unit}: exposure {level} is under {limit}", level < limit)
        # The checks can fail: a misspelt key, and a unit without its sandbox.
        said = complaints(build(folder, "perfd", lambda text: text.replace("WatchdogSec", "WatchdogSecs")))
        check("a misspelt key is found", "WatchdogSecs" in said)
        open_unit = build(folder, "perfd", lambda text: re.sub(
            r"(?m)^(Protect|Private|Restrict|Capability|Ambient|SystemCall|NoNew|Lock|Memory|UMask|Remove|User).*$", "", text))
        level = exposure(open_unit)
        check(f"a unit without its sandbox is exposed ({level})", level >= 4.0)

    daemon = settings((UNITS / "perfd.service.in").read_text())
    agent = settings((UNITS / "perf-agent.service.in").read_text())
    check("perfd has no capability", daemon["CapabilityBoundingSet"] == [""] and daemon["AmbientCapabilities"] == [""])
    for key in ("CapabilityBoundingSet", "AmbientCapabilities"):
        check(f"perf-agent has exactly its {key}", set(agent[key][0].split()) == AGENT_CAPABILITIES)
    check("peers keep their uid: no PrivateUsers", "PrivateUsers" not in daemon and "PrivateUsers" not in agent)
    check("the tracer outlives the first SIGTERM", agent["KillMode"] == ["mixed"])
    check("the tracer is not put off for long", agent["CPUQuotaPeriodSec"] == ["10ms"])
    for name, unit in (("perfd", daemon), ("perf-agent", agent)):
        check(f"{name} is capped and watched",
              all(key in unit for key in ("CPUQuota", "MemoryMax", "TasksMax", "WatchdogSec")) and unit["Type"] == ["notify"])
        check(f"{name} is not started again for a broken configuration", unit["RestartPreventExitStatus"] == ["2 5"])
    users = (UNITS / "perfd.sysusers").read_text()
    for user in (daemon["User"][0], agent["User"][0]):
        check(f"the user {user} is made by sysusers", re.search(rf"(?m)^u {user} ", users) is not None)
    print(f"{len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
