#!/usr/bin/env python3
"""User mode over several nodes, as docs/user_mode.md has it: the page's own commands, run as a batch script by an ordinary user on
the first of four nodes, where mpirun starts an agent and a rank on each; and the page's commands for one node."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading

import pytest

import cluster
import nodes
from cluster import BIN, PUPPETS, wait_until
from nodes import FABRIC, Fleet
from user_mode_test import PARANOID, PROGRAMS, check_nothing_left, made_user, readable, setting
from worse_days_test import check_sums

SECONDS = 6
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/user_mode.md"
# What a test does not want as the page has it: an own program, which has arguments; less of it; conditions instead of sleeps.
CHANGES = [("./my_program", "./my_program 0 stop 9"), (r"sleep 5\b[^\n]*", "while [ ! -e go ]; do sleep 0.1; done"),
           ("perfctl submit", f"perfctl submit --duration {SECONDS}s"), (r"wait \$job", "touch stop; wait $job"),
           ("perfctl report last", "perfctl report last && perfctl report last --json > report.json")]
# In the place of ssh: HOST WORDS..., the words are one line for a shell.
LOGIN = """#!/usr/bin/env python3
import socket, sys
door = socket.socket(socket.AF_UNIX)
door.connect("{path}")
socket.send_fds(door, [chr(0).join(sys.argv[1:]).encode()], [0, 1, 2])
sys.exit(int(door.recv(16) or b"255"))
"""

pytestmark = [pytest.mark.usefixtures("several_nodes"),
              pytest.mark.skipif(not (cluster.PUPPETS / "fleet").exists(), reason="the puppets are not built (mpicc is missing)")]


def commands(heading):
    """The page's, changed as above: each change must find its place."""
    block = re.search(rf"^## {heading}\n(?:(?!    ).*\n)*((?:    .*\n)+)", PAGE.read_text(), re.M)[1]
    for pattern, text in CHANGES:
        block, count = re.subn(pattern, lambda _, text=text: text, block)
        assert count == 1, (heading, pattern, count)
    return re.sub(r"^    ", "", block, flags=re.M)


class Door:
    """Lets one person into the nodes, from inside of any of them: a process of theirs, with their standard streams."""

    def __init__(self, fleet, person, environment):
        self.fleet, self.person, self.environment = fleet, person, environment
        path, self.login = fleet.dir / "door", fleet.dir / "login"
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        os.chown(path, person.uid, person.gid)
        path.chmod(0o600)
        self.socket.listen(16)
        self.login.write_text(LOGIN.format(path=path))
        self.login.chmod(0o755)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                guest, _ = self.socket.accept()
                threading.Thread(target=self.admit, args=[guest], daemon=True).start()

    def admit(self, guest):
        words, streams, _, _ = socket.recv_fds(guest, 1 << 16, 3)
        host, *command = words.decode().split("\0")
        process = subprocess.Popen(self.command(host, "/bin/sh", "-c", " ".join(command)), stdin=streams[0], stdout=streams[1],
                                   stderr=streams[2])
        for stream in streams:
            os.close(stream)
        threading.Thread(target=self.follow, args=[guest, process], daemon=True).start()
        code = process.wait()  # this thread started it: with it the process would end
        with contextlib.suppress(OSError):
            guest.sendall(str(code & 255).encode())

    @staticmethod
    def follow(guest, process):
        with contextlib.suppress(OSError):
            guest.recv(1)  # whoever wanted it is gone
        process.terminate()

    def command(self, host, *words):
        environment = [f"{key}={value}" for key, value in self.environment.items()]
        return [str(word) for word in self.fleet.fleet[host].command(
            "setpriv", "--pdeathsig", "KILL", "--reuid", self.person.uid, "--regid", self.person.gid, "--clear-groups", "env", "-i",
            *environment, *words)]

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Allocation(Fleet):
    """Nodes on which nothing runs but what one person starts there."""

    def __init__(self, person, count):
        super().__init__(count)
        self.person, self.home = person, self.dir / "home"
        (self.home / "deploy").mkdir(parents=True)
        shutil.copy(nodes.MAKE_CERTS, self.home / "deploy")
        shutil.copy(PUPPETS / "fleet", self.home / "my_program")
        (self.home / "hosts").write_text("".join(f"{name} slots=1\n" for name in self.names()))
        for path in (self.home, *self.home.rglob("*")):
            os.chown(path, person.uid, person.gid)
        self.home.chmod(0o700)
        self.state = self.home / ".local/state/perf-agent"
        self.before = self.left()
        programs = readable(person, self.dir, BIN, PROGRAMS)
        # Batch jobs often have no XDG_RUNTIME_DIR.
        self.environment = {"HOME": self.home, "USER": person.name, "LOGNAME": person.name, "LANG": "C.UTF-8",
                            "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin"}
        options = {"plm_rsh_agent": self.dir / "login", "plm_rsh_no_tree_spawn": 1, "pml": "ob1", "btl": "tcp,self",
                   "btl_tcp_if_include": f"{FABRIC}.0/24", "oob_tcp_if_include": f"{FABRIC}.0/24", "mpi_yield_when_idle": 1,
                   "hwloc_base_binding_policy": "none"}
        self.environment.update({f"OMPI_MCA_{key}": value for key, value in options.items()})

    def start_service(self):
        self.door = Door(self, self.person, self.environment)

    def __exit__(self, kind, *rest):
        super().__exit__(kind, *rest)
        if door := getattr(self, "door", None):
            door.close()
        if kind is None:
            check_nothing_left(self.person)

    def left(self):
        return {path.relative_to(self.home).as_posix() for path in self.home.rglob("*")}

    def run_page(self, heading, ranks, **environment):
        """The report as JSON."""
        script = self.home / "script"
        script.write_text(f"cd {self.home}\n{commands(heading)}\necho all is over\n")
        script.chmod(0o644)
        words = [f"{key}={value}" for key, value in environment.items()]
        job = self.spawn("script", self.door.command("node1", "env", *words, "/bin/sh", script))
        wait_until(lambda: len(self.ranks()) == ranks or job.poll() is not None, 40, "all ranks run")
        (self.home / "go").write_text("")
        assert job.wait(90) == 0 and "all is over" in self.log("script"), self.log("script")
        report = json.loads((self.home / "report.json").read_text())
        for name in ("script", "go", "stop", "report.json"):
            (self.home / name).unlink()
        return report

    def ranks(self):
        return [pid for pids in self.rank_pids("my_program").values() for pid in pids]

    def store(self):
        return pathlib.Path(f"/proc/{self.fleet['node1'].init}/root/tmp/{self.person.name}-perfd")

    def check_report(self, report, places):
        check_sums(report)
        assert report["status"]["state"] == "DONE", report["status"]
        assert report["status"]["requester"]["uid"] == self.person.uid, report["status"]
        assert sorted((r["node"], r["rank"]) for r in report["ranks"]) == places, report["ranks"]
        assert {r["uid"] for r in report["ranks"]} == {self.person.uid}, report["ranks"]
        # A rank is sampled while it computes: fewer of them where it had to wait for a CPU, by the scheduler's account.
        assert all(r["samples"] > 15 * max(0, 1 - r["cpu_wait_seconds"] / SECONDS) for r in report["ranks"]), report["ranks"]
        assert report["loops"][0]["function"] == "Divide", report["loops"]

    def check_left(self, *made):
        """Nothing but the store, and what the script made itself."""
        extra = {path for path in self.left() - self.before if path.split("/")[0] not in made}
        assert extra <= {".local", ".local/state", ".local/state/perf-agent"}, extra
        assert self.state.is_dir(), "the agents had their spools in another place"
        kept = sorted(path.name for path in self.store().iterdir())
        assert "perfd.db" in kept and "sock" not in kept, kept


@pytest.mark.small
def test_the_commands_of_the_page():
    with setting(PARANOID, 2), made_user() as person, Allocation(person, 4) as a:
        if int(PARANOID.read_text()) > 2:
            pytest.skip(f"kernel.perf_event_paranoid is {PARANOID.read_text().strip()} and cannot be set")
        report = a.run_page("Several nodes", 4, OMPI_MCA_orte_default_hostfile=a.home / "hosts")
        a.check_report(report, [(f"node{n}", n - 1) for n in (1, 2, 3, 4)])
        a.check_left("certs")
        # The keys are nobody else's business.
        open_to_others = [p.name for p in (a.home / "certs").glob("*.key") if p.stat().st_mode & 0o077]
        assert not open_to_others and (a.home / "certs").stat().st_mode & 0o077 == 0, open_to_others
        print(f"   several nodes: {report['accounting']['kept']} samples of {len(report['ranks'])} ranks")
        report = a.run_page("One node", 4, OMPI_MCA_rmaps_base_oversubscribe=1)
        a.check_report(report, [("node1", n) for n in (0, 1, 2, 3)])
        assert report["status"]["id"] != "p-000001", "the store is there, with the profile of before"
        a.check_left("certs")
        print(f"   one node: {report['accounting']['kept']} samples of {len(report['ranks'])} ranks")


if __name__ == "__main__":
    cluster.pytest_file(__file__)
