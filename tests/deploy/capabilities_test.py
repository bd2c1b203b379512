#!/usr/bin/env python3
"""The agent with exactly the capabilities of its unit, as root and as a user of its own, profiles another user's program
with variants: nothing less would do, and nothing more is there. Needs root and setpriv."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import cluster  # noqa: E402
from cluster import BUILD, wait_until  # noqa: E402

BIN, PUPPET = BUILD / "bin", BUILD / "puppets/five_loops_gcc_O2"
AGENT_UID, OWNER_UID, DAEMON_UID = 61_471, 61_472, 61_473  # nobody's
USER_LINES = re.compile(r"(?m)^CapabilityBoundingSet=(.*)$")


def unit_capabilities():
    text = (ROOT / "deploy/systemd/perf-agent.service.in").read_text()
    return [name[len("CAP_"):].lower() for name in USER_LINES.search(text)[1].split()]


def missing():
    """Why the agent cannot be started here as its unit does it; None where it can."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return "needs root and setpriv"
    bounding = int(re.search(r"(?m)^CapBnd:\t(.*)$", pathlib.Path("/proc/self/status").read_text())[1], 16)
    lacking = [c for c in unit_capabilities() if not bounding & mask_of([c])]
    return f"this machine does not give {', '.join(lacking)}" if lacking else None


def mask_of(capabilities):
    header = pathlib.Path("/usr/include/linux/capability.h").read_text()
    return sum(1 << int(re.search(rf"(?m)^#define CAP_{c.upper()}\s+(\d+)", header)[1]) for c in capabilities)


MISSING = missing()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


def setpriv(uid, capabilities):
    """The command that starts a program as systemd starts the unit."""
    caps = ",".join(["-all"] + [f"+{c}" for c in capabilities])
    command = ["setpriv", "--no-new-privs", "--bounding-set", caps]
    if uid == 0:
        return command + ["--inh-caps", "-all"]
    return command + ["--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--inh-caps", caps, "--ambient-caps", caps]


class Site:
    """perfd and one agent as the users asked for, one program of a third."""

    def __init__(self, agent_uid, capabilities, daemon_uid=0):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="perfd-caps-"))
        self.dir.chmod(0o755)
        self.agent_uid, self.capabilities, self.daemon_uid, self.processes = agent_uid, capabilities, daemon_uid, []
        self.socket = self.dir / "run/perfd.sock"

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, *_):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)
        if kind and kind is not SystemExit:
            for log in self.dir.glob("*.log"):
                print(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-20:]))
        shutil.rmtree(self.dir, ignore_errors=True)

    def spawn(self, name, command, env=None):
        with open(self.dir / f"{name}.log", "ab") as log:
            process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env={**os.environ, **(env or {})}, cwd="/")
        self.processes.append(process)
        return process

    def start(self):
        state = self.dir / "agent"
        state.mkdir(mode=0o700)
        os.chown(state, self.agent_uid, self.agent_uid)
        (self.dir / "run").mkdir(mode=0o755)
        os.chown(self.dir / "run", self.daemon_uid, self.daemon_uid)
        as_daemon = setpriv(self.daemon_uid, []) if self.daemon_uid else []
        self.spawn("perfd", [*as_daemon, self.programs() / "perfd", "--store-dir", self.dir / "run/store", "--socket",
                             self.socket, "--metrics-listen", "127.0.0.1:0", "--agent-user", self.agent_uid])
        wait_until(self.socket.exists, 40, "perfd listens")
        # A program that only its owner may read, as users' programs are.
        home = self.dir / "home"
        home.mkdir(mode=0o700)
        shutil.copy(PUPPET, home / "owned_loops")
        (home / "owned_loops").chmod(0o700)
        for path in (home, home / "owned_loops"):
            os.chown(path, OWNER_UID, OWNER_UID)
        self.program = self.spawn("program", ["setpriv", "--reuid", OWNER_UID, "--regid", OWNER_UID, "--clear-groups",
                                              "--inh-caps", "-all", "--bounding-set", "-all",
                                              home / "owned_loops", "600"],
                                  {"OMP_NUM_THREADS": "1", "OMPI_MCA_ess_singleton_isolated": "1", "HOME": "/"})
        self.agent = self.spawn("agent", [*setpriv(self.agent_uid, self.capabilities), self.programs() / "perf-agent", "--address",
                                          f"unix:{self.socket}", "--daemon-uid", self.daemon_uid, "--node", "caps", "--spool-dir", state / "spool"])

    def programs(self):
        """The agent's programs where its user may execute them: a developer's folder is often private."""
        if all(p.stat().st_mode & 0o001 for p in [BIN, *BIN.parents]):
            return BIN
        copy = self.dir / "bin"
        if copy.exists():
            return copy
        copy.mkdir(mode=0o755)
        for name in ("perfd", "perf-agent", "perf-agent-reader", "perf-agent-tracer"):
            shutil.copy(BIN / name, copy / name)
        return copy

    def client(self, *arguments):
        return subprocess.run([str(BIN / "perfctl"), *map(str, arguments), "--daemon-uid", str(self.daemon_uid)], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, env={**os.environ, "PERFD_ADDRESS": f"unix:{self.socket}"})

    def json(self, *arguments):
        run = self.client(*arguments, "--json")
        assert run.returncode in (0, 8), (arguments, run)
        return json.loads(run.stdout)

    def rights(self):
        text = pathlib.Path(f"/proc/{self.agent.pid}/status").read_text()
        return {key: value.split() for key, value in re.findall(r"(?m)^(Uid|CapEff|CapBnd):\t(.*)$", text)}


def profile_with(agent_uid, daemon_uid=0):
    capabilities = unit_capabilities()
    with Site(agent_uid, capabilities, daemon_uid) as site:
        wait_until(lambda: any(n["connected"] for n in site.json("nodes")["nodes"]), 20, "the agent is connected")
        rights = site.rights()
        assert rights["Uid"] == [str(agent_uid)] * 4, rights
        for key in ("CapEff", "CapBnd"):
            assert int(rights[key][0], 16) == mask_of(capabilities), (key, rights)
        maps = set()

        def look():
            maps.update(re.findall(r"/dev/zero", pathlib.Path(f"/proc/{site.agent.pid}/maps").read_text()))
        # A full machine does not let a thread stop in time: that says nothing about rights, and is tried again.
        for left in (2, 1, 0):
            report, text = one_profile(site, look)
            if '"LS"' in json.dumps(report) or left == 0 or "does not stop" not in text:
                break
        # The binary was read (functions have lines) although only its owner may, and loops were altered.
        assert "owned_loops" in text and re.search(r"five_loops\.c:\d+", text), text
        assert '"LS"' in json.dumps(report), text
        assert site.program.poll() is None, "the program ended"
        # A page of the rank, shared with the agent: the bell (agent/shadow/region_bell.h).
        assert maps, "the agent could not hear what the rank had to tell it"


def one_profile(site, meanwhile=lambda: None):
    run = site.client("submit", "--pid", site.program.pid, "--node", "caps", "--duration", "8s", "--json")
    assert run.returncode == 0, run
    profile = json.loads(run.stdout)["id"]

    def over():
        meanwhile()
        return site.json("status", profile)["state"] in ("DONE", "PARTIAL", "FAILED", "CANCELLED")
    wait_until(over, 90, "the profile is over")
    status, text = site.json("status", profile), site.client("report", profile).stdout
    assert status["state"] == "DONE", (status, text)
    return site.json("report", profile), text


def test_as_root_without_more():
    profile_with(0)


def test_as_a_user_of_its_own():
    """As the units do it: perfd without any capability, and neither daemon is root."""
    profile_with(AGENT_UID, DAEMON_UID)


def test_a_plain_user_is_in_user_mode():
    """The same user without the capabilities serves nobody else: that the two tests above pass is due to them."""
    with Site(AGENT_UID, []) as site:
        wait_until(lambda: site.json("nodes")["nodes"], 20, "the agent is connected")
        run = site.client("submit", "--pid", site.program.pid, "--node", "caps", "--duration", "5s", "--variants", "none",
                          "--json")
        if run.returncode != 0:
            return
        profile = json.loads(run.stdout)["id"]
        wait_until(lambda: site.json("status", profile)["state"] in ("FAILED", "DONE", "PARTIAL"), 60, "it is over")
        assert site.json("status", profile)["state"] == "FAILED", site.json("status", profile)


if __name__ == "__main__":
    cluster.pytest_file(__file__)
