#!/usr/bin/env python3
"""The system call filters of the units allow what perfd, the agent and its helpers really call, from the start through a
profile with variants to the end. Needs root, strace and systemd-analyze."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import capabilities_test
from capabilities_test import ROOT, Site, one_profile, wait_until


def group(name, seen=None):
    """The system calls of a systemd group, with the groups in it."""
    out = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", name], capture_output=True, text=True,
                         timeout=30).stdout
    found = set()
    for line in out.splitlines()[1:]:
        word = line.strip()
        if word.startswith("@"):
            found |= group(word)
        elif word and not word.startswith("#"):
            found.add(word)
    assert found, f"systemd knows no {name}"
    return found


def allowed(unit):
    """SystemCallFilter= lines add up; a line that begins with ~ takes away."""
    result = set()
    for line in re.findall(r"(?m)^SystemCallFilter=(.*)$", (ROOT / f"deploy/systemd/{unit}.service.in").read_text()):
        calls = set()
        for word in line.lstrip("~").split():
            calls |= group(word) if word.startswith("@") else {word}
        result = result - calls if line.startswith("~") else result | calls
    return result


def called(summary):
    """Names in the table of strace -c."""
    return set(re.findall(r"(?m)^\s*[\d.]+\s+[\d.]+\s+\d+\s+\d+\s+(?:\d+\s+)?(\w+)$", summary.read_text())) - {"total"}


class TracedSite(Site):
    """Both daemons under strace, which has their rights and does not see how they were taken on."""
    FILES = {"perfd": "run/perfd.calls", "agent": "agent/agent.calls"}

    def spawn(self, name, command, env=None):
        if name in self.FILES:
            words = [str(word) for word in command]
            program = next(i for i, word in enumerate(words) if word.startswith("/"))
            command = words[:program] + ["strace", "-f", "-c", "-o", self.dir / self.FILES[name]] + words[program:]
        return super().spawn(name, command, env)

    def end(self, name, process):
        """Ends the program below strace, which then writes its table."""
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGTERM)
        process.wait(40)
        return called(self.dir / self.FILES[name])


def main():
    missing = [tool for tool in ("strace", "systemd-analyze", "setpriv") if not shutil.which(tool)]
    if os.geteuid() != 0 or missing or not capabilities_test.PUPPET.exists():
        print(f"SKIPPED: needs root, built programs and {', '.join(missing) or 'nothing else'}")
        return 77
    failed = 0
    with TracedSite(capabilities_test.AGENT_UID, capabilities_test.unit_capabilities(),
                    capabilities_test.DAEMON_UID) as site:
        wait_until(lambda: any(n["connected"] for n in site.json("nodes")["nodes"]), 40, "the agent is connected")
        one_profile(site)
        for name, unit, process in (("agent", "perf-agent", site.agent), ("perfd", "perfd", site.processes[0])):
            calls, allows = site.end(name, process), allowed(unit)
            assert len(calls) > 30, f"strace saw only {sorted(calls)}"
            refused = sorted(calls - allows)
            print(f"{'FAIL ' if refused else 'ok   '} {unit}: {len(calls)} system calls, refused by its unit: {refused or 'none'}")
            failed += bool(refused)
            if name == "agent":
                for call in ("ptrace", "perf_event_open", "seccomp", "setfsuid"):
                    print(f"{'ok   ' if call in calls else 'FAIL '} the agent called {call}: the profile was a real one")
                    failed += call not in calls
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
