#!/usr/bin/env python3
"""The system call filters of the units allow what perfd, the agent and its helpers really call, from the start through a
profile with variants to the end. Needs root, strace and systemd-analyze."""
import os
import pathlib
import re
import signal
import subprocess

import pytest

import capabilities_test
from capabilities_test import ROOT, Site, one_profile, wait_until

pytestmark = pytest.mark.skipif(capabilities_test.MISSING is not None, reason=str(capabilities_test.MISSING))


def group(name):
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


def test_units_allow_what_is_called():
    refused = {}
    with TracedSite(capabilities_test.AGENT_UID, capabilities_test.unit_capabilities(),
                    capabilities_test.DAEMON_UID) as site:
        wait_until(lambda: any(n["connected"] for n in site.json("nodes")["nodes"]), 40, "the agent is connected")
        one_profile(site)
        for name, unit, process in (("agent", "perf-agent", site.agent), ("perfd", "perfd", site.processes[0])):
            calls = site.end(name, process)
            assert len(calls) > 30, f"strace saw only {sorted(calls)}"
            refused[unit] = sorted(calls - allowed(unit))
            print(f"   {unit}: {len(calls)} system calls, refused by its unit: {refused[unit] or 'none'}")
            if name == "agent":  # the profile was a real one
                assert {"ptrace", "perf_event_open", "seccomp", "setfsuid"} <= calls, sorted(calls)
    assert refused == {"perf-agent": [], "perfd": []}, refused


if __name__ == "__main__":
    capabilities_test.cluster.pytest_file(__file__)
