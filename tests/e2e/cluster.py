"""A whole perfd on one machine for a test: daemon, agents, MPI jobs, perfctl. Everything it starts it also ends."""
import json
import mmap
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("PERFD_BUILD_DIR", pathlib.Path(__file__).resolve().parents[2] / "build/ci"))
BIN = BUILD / "bin"
PUPPETS = BUILD / "puppets"
SOURCES = pathlib.Path(__file__).resolve().parents[1] / "puppets"  # of the puppets
OVER = ("DONE", "PARTIAL", "FAILED", "CANCELLED")  # states of a profile that do not change any more
OPEN = []  # clusters that are up: what they wrote is shown when a test fails


class Broken(AssertionError):
    """A promise to the owner of the job. No host excuses it."""


def promised(kept, found):
    if not kept:
        raise Broken(found)


def promised_within(condition, seconds, what, pause=0.05):
    """As wait_until, for what a job was promised: give it more time than any host needs."""
    try:
        return wait_until(condition, seconds, what, pause)
    except AssertionError as error:
        raise Broken(str(error)) from error


def ended_well(process, seconds, log):
    """A job that was profiled comes to its end, and says by its exit code that it is right. log(): what it has printed."""
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired as error:
        raise Broken(f"still runs after {seconds} s: {log()}") from error
    promised(code == 0, (code, log()))


def wait_until(condition, seconds, what, pause=0.05):
    """The condition's value once it is true; an error after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds} s still not: {what}")
        time.sleep(pause)


def profile_again(profile, enough, most=4):
    """The first profile that has what is wanted: on a busy host a short one may rightly name nothing, or have no shadow, since its team did
    not meet. `profile` makes one and checks what holds of any of them."""
    for _ in range(most):
        made = profile()
        if enough(made):
            return made
    raise AssertionError(f"none of {most} profiles has what is wanted, the last: {made}")


def shadows_of(report):
    return sum(v["cost"]["shadows"] for v in report["verdicts"])


class Cluster:
    def __init__(self, nodes=("node1",), daemon_flags=()):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="perfd-e2e-"))
        self.dir.chmod(0o755)
        self.socket = self.dir / "perfd.sock"
        self.processes = []
        self.nodes, self.daemon_flags = nodes, list(daemon_flags)
        self.daemon, self.agents = None, {}

    def __enter__(self):
        OPEN.append(self)
        try:
            self.start_daemon()
            for node in self.nodes:
                self.start_agent(node)
            self.wait_connected(len(self.nodes))
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, *_):
        self.end(self.processes)
        if kind is not None and kind.__name__ not in ("SystemExit", "Skipped"):
            self.show_logs()
        if self in OPEN:
            OPEN.remove(self)
        shutil.rmtree(self.dir, ignore_errors=True)

    @staticmethod
    def end(processes):
        for process in reversed(processes):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)

    def show_logs(self):
        for log in sorted(self.dir.glob("*.log")):
            print(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-25:]), flush=True)

    def spawn(self, name, command, env=None, **kwargs):
        with open(self.dir / f"{name}.log", "ab") as log:
            process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env={**os.environ, **(env or {})}, **kwargs)
        self.processes.append(process)
        return process

    def start_daemon(self, env=None):
        self.daemon = self.spawn("perfd", [BIN / "perfd", "--store-dir", self.dir / "store", "--socket", self.socket,
                                           "--metrics-listen", "127.0.0.1:0", *self.daemon_flags], env=env)
        wait_until(lambda: self.socket.exists() and self.perfctl("version").returncode == 0, 20, "perfd answers")

    def start_agent(self, node, flags=(), env=None, **kwargs):
        self.agents[node] = self.spawn(f"agent-{node}", [
            BIN / "perf-agent", "--address", f"unix:{self.socket}", "--node", node, "--spool-dir",
            self.dir / f"spool-{node}", *flags], env=env, **kwargs)
        return self.agents[node]

    def wait_connected(self, count):
        def connected():
            run = self.perfctl("nodes", "--json")
            return run.returncode == 0 and sum(n["connected"] for n in json.loads(run.stdout)["nodes"]) == count
        wait_until(connected, 20, f"{count} nodes connected")

    def metrics_url(self):
        text = (self.dir / "perfd.log").read_text()
        return re.findall(r"http://\S+", text)[-1]

    def perfctl(self, *arguments, timeout=120, env=None, **kwargs):
        return subprocess.run([str(BIN / "perfctl"), *map(str, arguments)], capture_output=True, text=True,
                              timeout=timeout, stdin=subprocess.DEVNULL,
                              env={**os.environ, "PERFD_ADDRESS": f"unix:{self.socket}", **(env or {})}, **kwargs)

    def json(self, *arguments, **kwargs):
        run = self.perfctl(*arguments, "--json", **kwargs)
        assert run.returncode in (0, 8), f"perfctl {arguments}: exit {run.returncode}\n{run.stdout}\n{run.stderr}"
        return json.loads(run.stdout)

    def submit(self, *arguments, expect=0):
        """Samples only, unless the test asks for variants."""
        if "--variants" not in arguments:
            arguments = (*arguments, "--variants", "none")
        run = self.perfctl("submit", *arguments, "--json")
        assert run.returncode == expect, f"submit {arguments}: exit {run.returncode}\n{run.stdout}\n{run.stderr}"
        return json.loads(run.stdout)["id"]

    def wait_state(self, profile, states, seconds):
        def reached():
            status = self.json("status", profile)
            return status if status["state"] in states else None
        return wait_until(reached, seconds, f"{profile} in {states}")

    def wait_over(self, profile, seconds=90):
        return self.wait_state(profile, OVER, seconds)

    def mpirun(self, name, ranks, command, threads=1, env=None, launcher=()):
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return self.spawn(name, ["mpirun", *root, "--oversubscribe", "--bind-to", "none", "-n", ranks, *launcher,
                                 *command],
                          env={"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive", **(env or {})})

    def log(self, name):
        return (self.dir / f"{name}.log").read_text(errors="replace")


PROBES = 10
# What a machine that nobody else uses shows is 1.03 to 1.1; others on the second thread of a core make it 1.3 to 2.
CALM = {"loads": 1.2, "level": 1.15, "chase": 1.3}
CALM_DRIFT = 1.15  # between the medians of probes


def caches_are_calm():
    """Others may use the same cores and caches without taking CPU time: tests/puppets/host_probe.c, over some three seconds."""
    probes = []
    for _ in range(PROBES):
        probes.append(json.loads(subprocess.run([PUPPETS / "host_probe"], capture_output=True, text=True, timeout=30,
                                                check=True).stdout))
        time.sleep(0.2)
    worst = {key: max(p[key] for p in probes) for key in CALM}
    ticks = [p["ticks"] for p in probes]
    drift = max(ticks) / min(ticks)
    calm = all(worst[key] <= CALM[key] for key in CALM) and drift <= CALM_DRIFT
    print(f"host: {'calm' if calm else 'others use its cores or caches'}: {worst}, drift {drift:.2f}", flush=True)
    return calm


def host_is_calm():
    """Two processes of pure arithmetic must get two CPUs, and their caches for themselves: otherwise the machine, not perfd,
    decides the shares. And a shadow of tens of megabytes must not be all copying."""
    return cpus_are_free() and caches_are_calm() and pages_are_cheap()


DEAR_PAGE_US = 10  # 0.6 to 7 are usual; 12,000 pages that are put aside and restored take a shadow's 500 ms at 20


def pages_are_cheap():
    """What copying a page on its first write takes, in CPU time of a process that nobody measures."""
    took, pages = [], 512
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 4096 * pages)
        file.flush()
        for _ in range(9):
            with mmap.mmap(file.fileno(), 4096 * pages, flags=mmap.MAP_PRIVATE) as copy:
                sum(copy[i * 4096] for i in range(pages))
                begin = time.thread_time()
                for i in range(pages):
                    copy[i * 4096] = 1
                took.append((time.thread_time() - begin) / pages * 1e6)
    middle = sorted(took)[len(took) // 2]
    judged = "as usual" if middle < DEAR_PAGE_US else "too long for large shadows"
    print(f"host: copying a page takes {middle:.1f} us, {judged}", flush=True)
    return middle < DEAR_PAGE_US


def cpus_are_free():
    code = "import time\nt=time.process_time()\nwhile time.process_time()-t<0.5: pass"
    begin = time.monotonic()
    children = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    for child in children:
        child.wait(30)
    return time.monotonic() - begin < 1.2


def ranks_of(command):
    """Processes whose executable has this base name, by pid."""
    pids = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "exe").split("/")[-1] == command:
                    pids.append(int(entry.name))
            except OSError:
                pass
    return sorted(pids)


def marked_lines(source):
    """{name: (first, last)} of the lines between 'LOOP name begin' and 'LOOP name end'."""
    marks = {}
    for number, line in enumerate(pathlib.Path(source).read_text().splitlines(), 1):
        for name, edge in re.findall(r"LOOP (\w+) (begin|end)", line):
            first, last = marks.get(name, (0, 0))
            marks[name] = (number, last) if edge == "begin" else (first, number)
    return marks


def pytest_file(file):
    """For a file of tests that is called as a program; under Debian's Python, which has pytest, where there is one."""
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    os.execv(python, [python, "-B", "-m", "pytest", "-v", "-s", "-p", "no:cacheprovider", file, *sys.argv[1:]])
