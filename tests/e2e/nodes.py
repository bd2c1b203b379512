"""Nodes on one machine for a test: each has a network, PID, UTS, IPC and mount name space of its own (own host name, /proc,
/tmp, /run, /dev/shm), and two networks: one to perfd, one among the ranks. perfd is outside, reached by mutual TLS.

mpirun starts its daemons in the nodes by a script that enters them, in the place of ssh. One test at a time has nodes (a
lock); whatever a killed test left is removed at the next start. All processes die with the test: by the kernel's parent
death signal, and, inside of a node, with its first process."""
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import cluster
from cluster import BIN, BUILD, Cluster, wait_until

PREFIX = "pfe2e"          # of every network device of ours
SERVICE = "198.18.77"     # perfd's network. Source: RFC 2544 sets 198.18.0.0/15 aside for tests
FABRIC = "198.18.78"      # the network of the ranks
OUTSIDE = 254             # perfd and mpirun, in both
LOCK = "/tmp/perfd-e2e-nodes.lock"
MAKE_CERTS = pathlib.Path(__file__).resolve().parents[2] / "deploy/make-certs.sh"
LONGEST_S = 1800          # a node ends then, whatever happens

# The first process of a node: $1 its name, $2 its hosts file; the other folders are those it has in common with the machine.
SETUP = """set -e
if grep -q ' shared:' /proc/self/mountinfo; then echo 'its mounts would be seen outside' >&2; exit 97; fi
echo "$1" > /proc/sys/kernel/hostname; hosts=$2; shift 2
mount -t tmpfs -o mode=755,size=256m none /run
i=0; for keep in "$@"; do i=$((i+1)); mkdir -p /run/keep/$i; mount --bind "$keep" /run/keep/$i; done
mount -t tmpfs -o mode=1777,size=512m none /tmp
mount -t tmpfs -o mode=1777,size=512m none /dev/shm
i=0; for keep in "$@"; do i=$((i+1)); mkdir -p "$keep"; mount --bind /run/keep/$i "$keep"; umount /run/keep/$i; done
mount --bind "$hosts" /etc/hosts
ip link set lo up
echo ready
trap '' CHLD
exec sleep """ + str(LONGEST_S)

# In the place of ssh: HOST WORDS..., the words are one line for a shell.
ENTER = """#!/bin/sh
host=$1; shift
init=$(cat "{folder}/hosts/$host") || exit 255
exec nsenter -t "$init" -m -u -i -n -p -T -r -- /bin/sh -c "$*"
"""


def unshare(*arguments):
    """In a chroot whose root is no mount point propagation cannot be changed; SETUP looks whether it has to be."""
    mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    rooted = any(line.split()[4] == "/" for line in mounts)
    return ["unshare", "--propagation", "private" if rooted else "unchanged", *arguments]


def run(*command, timeout=20):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def why_not():
    """Why this machine cannot have nodes; empty when it can."""
    if os.geteuid() != 0:
        return "needs root: it makes networks, mounts and PID name spaces"
    missing = [tool for tool in ("ip", "unshare", "nsenter", "setpriv", "openssl", "mpirun") if not shutil.which(tool)]
    if missing:
        return f"{', '.join(missing)} is not installed"
    try:
        run(*unshare("--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--mount-proc", "ip", "link", "set", "lo",
                     "up"))
        run("ip", "link", "add", f"{PREFIX}-try", "type", "veth", "peer", "name", f"{PREFIX}-yrt")
        run("ip", "link", "del", f"{PREFIX}-try")
        run("ip", "link", "add", f"{PREFIX}-try", "type", "bridge")
        run("ip", "link", "del", f"{PREFIX}-try")
    except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
        return f"this machine gives no name spaces or networks: {error}"
    return ""


def devices():
    return [d["ifname"] for d in json.loads(run("ip", "-json", "link", "show")) if d["ifname"].startswith(PREFIX)]


def remove_devices():
    for name in devices():
        with contextlib.suppress(RuntimeError):  # one end of a pair takes the other along
            run("ip", "link", "del", name)


def children(pid):
    with contextlib.suppress(OSError):
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def pid_inside(pid):
    """The number that the process has in its own name space."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    raise AssertionError(f"/proc/{pid}/status has no NSpid")


class Node:
    def __init__(self, fleet, number, clock_s=0):
        self.fleet, self.number, self.name = fleet, number, f"node{number}"
        self.fabric = f"{FABRIC}.{number}"
        clock = ["--time", "--monotonic", clock_s, "--boottime", clock_s] if clock_s else []
        keep = [fleet.dir, *([BUILD] if str(BUILD).startswith(("/tmp/", "/run/")) else [])]
        self.process = fleet.spawn(f"init-{self.name}", unshare(
            "--net", "--uts", "--ipc", "--mount", "--pid", *clock, "--kill-child=KILL", "--mount-proc", "/bin/sh", "-c",
            SETUP, "sh", self.name, fleet.dir / "etc-hosts", *keep))
        wait_until(lambda: "ready" in fleet.log(f"init-{self.name}") or self.process.poll() is not None, 20,
                   f"{self.name} is up")
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} did not start: {fleet.log('init-' + self.name)}")
        self.init = children(self.process.pid)[0]
        for letter, network in (("s", SERVICE), ("f", FABRIC)):
            device = f"{PREFIX}-{letter}{number}"
            run("ip", "link", "add", device, "type", "veth", "peer", "name", f"{letter}0", "netns", self.init)
            run("ip", "link", "set", device, "master", f"{PREFIX}-{letter}", "up")
            run("nsenter", "-t", self.init, "-n", "ip", "address", "add", f"{network}.{number}/24", "dev", f"{letter}0")
            run("nsenter", "-t", self.init, "-n", "ip", "link", "set", f"{letter}0", "up")
        (fleet.dir / "hosts" / self.fabric).write_text(str(self.init))

    def command(self, *arguments):
        return ["nsenter", "-t", self.init, "-m", "-u", "-i", "-n", "-p", "-T", "-r", "--", *arguments]

    @property
    def spool(self):
        return pathlib.Path(f"/proc/{self.init}/root/run/spool")

    def cut_off(self):
        """From perfd: the network among the ranks goes on."""
        run("ip", "link", "set", f"{PREFIX}-s{self.number}", "down")

    def reconnect(self):
        run("ip", "link", "set", f"{PREFIX}-s{self.number}", "up")

    def pids(self, program):
        """As seen from outside."""
        mine = os.readlink(f"/proc/{self.init}/ns/pid")
        found = []
        for pid in cluster.ranks_of(program):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/ns/pid") == mine:
                    found.append(pid)
        return found


class Fleet(Cluster):
    """perfd outside, `count` nodes with an agent each, named by their host names. clock_s: what the monotonic clock of a node
    (by number) is ahead of the machine's. before_agent: called in an agent's process before it is one."""

    def __init__(self, count=4, daemon_flags=(), clock_s=None, before_agent=None):
        super().__init__(nodes=(), daemon_flags=daemon_flags)
        self.count, self.clock_s, self.before_agent = count, clock_s or {}, before_agent
        self.fleet, self.lock, self.port = {}, None, 0

    def __enter__(self):
        try:
            self.take_lock()
            remove_devices()
            self.make_networks()
            (self.dir / "hosts").mkdir()
            (self.dir / "enter").write_text(ENTER.format(folder=self.dir))
            (self.dir / "enter").chmod(0o755)
            names = self.names()
            lines = ["127.0.0.1 localhost", *(f"{FABRIC}.{n + 1} {name}" for n, name in enumerate(names))]
            (self.dir / "etc-hosts").write_text("\n".join(lines) + "\n")
            for number in range(1, self.count + 1):
                node = Node(self, number, self.clock_s.get(number, 0))
                self.fleet[node.name] = node
            self.start_service()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def names(self):
        return [f"node{n}" for n in range(1, self.count + 1)]

    def start_service(self):
        run(MAKE_CERTS, self.dir / "certs", "server", f"{SERVICE}.{OUTSIDE}", "agent", *self.names(), timeout=60)
        certs = self.dir / "certs"
        self.daemon_flags += ["--listen-tcp", f"{SERVICE}.{OUTSIDE}:{self.port}", "--tls-ca", certs / "ca.crt",
                              "--tls-cert", certs / "server.crt", "--tls-key", certs / "server.key"]
        self.start_daemon()
        for name in self.names():
            self.start_agent(name)
        self.wait_connected(self.count)

    def take_lock(self):
        self.lock = open(LOCK, "w")

        def taken():
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            return False
        wait_until(taken, 300, "no other test has nodes", 0.5)

    def make_networks(self):
        for letter, network in (("s", SERVICE), ("f", FABRIC)):
            run("ip", "link", "add", f"{PREFIX}-{letter}", "type", "bridge")
            run("ip", "address", "add", f"{network}.{OUTSIDE}/24", "dev", f"{PREFIX}-{letter}")
            run("ip", "link", "set", f"{PREFIX}-{letter}", "up")
        with socket.socket() as free:
            free.bind((f"{SERVICE}.{OUTSIDE}", 0))
            self.port = free.getsockname()[1]  # the same after a restart of perfd

    def spawn(self, name, command, env=None, **kwargs):
        """In a process group of its own, which ends with the test."""
        return super().spawn(name, ["setpriv", "--pdeathsig", "KILL", *command], env, start_new_session=True, **kwargs)

    def start_agent(self, node, flags=(), env=None, **kwargs):
        certs = self.dir / "certs"
        self.agents[node] = self.spawn(f"agent-{node}", self.fleet[node].command(
            BIN / "perf-agent", "--address", f"{SERVICE}.{OUTSIDE}:{self.port}", "--tls-ca", certs / "ca.crt",
            "--tls-cert", certs / f"agent-{node}.crt", "--tls-key", certs / f"agent-{node}.key", "--spool-dir",
            "/run/spool", *flags), env=env, preexec_fn=self.before_agent, **kwargs)
        return self.agents[node]

    def mpirun(self, name, command, env=None):
        """A rank on each node, in order; `env` goes to all of them."""
        hosts = ",".join(f"{node.fabric}:1" for node in self.fleet.values())
        options = {"plm_rsh_agent": self.dir / "enter", "plm_rsh_no_tree_spawn": 1, "pml": "ob1", "btl": "tcp,self",
                   "btl_tcp_if_include": f"{FABRIC}.0/24", "oob_tcp_if_include": f"{FABRIC}.0/24",
                   "mpi_yield_when_idle": 1}
        words = [word for key, value in options.items() for word in ("--mca", key, value)]
        words += [word for key in env or {} for word in ("-x", key)]
        return self.spawn(name, ["mpirun", "--allow-run-as-root", *words, "--bind-to", "none", "--wdir", self.dir, "-H",
                                 hosts, "-n", len(self.fleet), *command], env=env)

    def local_mpirun(self, name, command):
        """The same job, nobody looking, on no node."""
        return self.spawn(name, ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca",
                                 "mpi_yield_when_idle", "1", "-n", len(self.fleet), *command])

    def rank_pids(self, program):
        """By node name, as seen from outside."""
        return {name: node.pids(program) for name, node in self.fleet.items()}

    def __exit__(self, kind, *rest):
        try:
            self.end_agents()
            self.end_nodes()
            super().__exit__(kind, *rest)
        finally:
            for process in self.processes:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            if self.lock is not None:
                remove_devices()
                self.lock.close()
        if kind is None:
            self.check_nothing_left()

    def end_agents(self):
        """The agent is a child of the process that we have started, and a name space away from it."""
        for process in self.agents.values():
            for pid in children(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        for process in self.agents.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)

    def end_nodes(self):
        """Jobs first. A node's first process heeds nothing from inside and takes all others along."""
        inits = [node.process for node in self.fleet.values()]
        others = [p for p in self.processes if p not in inits and p is not self.daemon and p.poll() is None]
        for process in others:
            process.terminate()
        for process in others:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        for node in self.fleet.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(node.init, signal.SIGKILL)

    def check_nothing_left(self):
        mine = str(self.dir).encode()

        def left():
            found = []
            for entry in pathlib.Path("/proc").iterdir():
                with contextlib.suppress(OSError):
                    if entry.name.isdigit() and int(entry.name) != os.getpid() and mine in (
                            entry / "cmdline").read_bytes():
                        found.append((int(entry.name), (entry / "cmdline").read_bytes()))
            return found
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not left(), 5, "all processes have ended")
        assert not left(), f"processes are left: {left()}"
        assert not devices(), f"network devices are left: {devices()}"
        assert not self.dir.exists(), f"{self.dir} could not be removed"


class FleetJob:
    """The puppet `fleet`, a rank on each node, until it is told to end."""

    def __init__(self, fleet, slow=2, env=None):
        self.fleet, self.slow, self.stop = fleet, slow, fleet.dir / "stop"
        self.process = fleet.mpirun("job", [cluster.PUPPETS / "fleet", 0, self.stop, slow], env)
        wait_until(lambda: all(len(p) == 1 for p in fleet.rank_pids("fleet").values()), 30, "a rank runs on each node")
        self.pids = {name: pids[0] for name, pids in fleet.rank_pids("fleet").items()}

    def rows(self, name):
        rows = [json.loads(line) for line in self.fleet.log(name).splitlines() if line.startswith('{"rank"')]
        return sorted(rows, key=lambda row: row["rank"])

    def ends(self):
        """It ends well; all ranks took the same steps."""
        assert self.process.poll() is None, self.fleet.log("job")
        self.stop.write_text("")
        cluster.ended_well(self.process, 60, lambda: self.fleet.log("job"))
        rows = self.rows("job")
        assert [r["rank"] for r in rows] == list(range(len(self.fleet.fleet))), rows
        assert len({r["steps"] for r in rows}) == 1 and rows[0]["steps"] > 0, rows
        return rows

    def ends_right(self):
        """And it has computed what it computes when nobody looks."""
        rows = self.ends()
        begin = time.monotonic()
        alone = self.fleet.local_mpirun("alone", [cluster.PUPPETS / "fleet", rows[0]["steps"], self.stop, self.slow])
        assert alone.wait(240) == 0, self.fleet.log("alone")
        cluster.promised(rows == self.rows("alone"), (rows, self.rows("alone")))
        print(f"   {rows[0]['steps']} steps; the same output alone ({time.monotonic() - begin:.0f} s)", flush=True)
