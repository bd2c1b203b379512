#!/usr/bin/env python3
"""perfctl hook as a scheduler's prolog calls it: whatever is wrong around it, it ends with 0, in time, with nothing on standard
output and at most one line on standard error. Prints how long a call takes, from start to exit."""
import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

import pytest

import cluster
from cluster import wait_until

PERFCTL = cluster.BIN / "perfctl"
JOB = {"SLURM_JOB_ID": "4711", "SLURM_JOB_UID": "0", "SLURM_JOB_USER": "root", "SLURM_JOB_NODELIST": "node1",
       "SLURMD_NODENAME": "node1"}
NOBODY = "65534"
GRACE = 0.7  # for a busy machine; nobody waits so long for a reason of ours


def call(arguments, environment=None, timeout_ms=300, stderr=subprocess.PIPE, before=None):
    """Without PATH and HOME, as Slurm does. Returns (seconds, text of standard error)."""
    begin = time.monotonic()
    run = subprocess.run([PERFCTL, "hook", *arguments], env=JOB if environment is None else environment, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=stderr, timeout=30, cwd="/", preexec_fn=before)
    seconds = time.monotonic() - begin
    assert run.returncode == 0, (arguments, run)
    assert run.stdout == b"", (arguments, run)
    text = (run.stderr or b"").decode()
    assert text.count("\n") <= 1, (arguments, text)
    if seconds >= timeout_ms / 1000 + GRACE:
        idle = seconds_of_a_call_that_waits_for_nobody()
        assert seconds - idle < timeout_ms / 1000 + GRACE, (arguments, seconds, idle)
    return seconds, text


def seconds_of_a_call_that_waits_for_nobody():
    """What it costs on this machine just now to start the program and to end it."""
    begin = time.monotonic()
    subprocess.run([PERFCTL, "hook", "prolog", "--address", "unix:/nonexistent/perfd.sock"], env=JOB, stdin=subprocess.DEVNULL,
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, cwd="/")
    return time.monotonic() - begin


class Place:
    def __enter__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="perfd-hook-"))
        self.path = self.dir / "perfd.sock"
        self.address = f"unix:{self.path}"
        return self

    def __exit__(self, *_):
        if self.path.exists():
            self.path.unlink()
        self.dir.rmdir()

    def listener(self):
        """Takes connections and never answers."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.path))
        listener.listen(16)
        return listener


@pytest.mark.small
def test_nobody_listens():
    with Place() as place:
        for name in ("prolog", "epilog"):
            _, text = call([name, "--address", place.address])
            assert "does not listen" in text, text
        place.listener().close()  # a socket whose daemon was killed
        _, text = call(["prolog", "--address", place.address])
        assert "does not listen" in text, text


@pytest.mark.small
def test_a_server_that_hangs():
    with Place() as place, place.listener():
        for timeout in (100, 300):
            seconds, text = call(["prolog", "--address", place.address, "--timeout", f"{timeout}ms"], timeout_ms=timeout)
            assert "in time" in text, text
            assert seconds >= timeout / 1000 * 0.9, seconds
        seconds, _ = call(["epilog", "--address", place.address])
        assert seconds >= 0.27, seconds


def test_wrong_usage_and_environment():
    with Place() as place:
        _, text = call(["prolog", "--address", place.address], environment={})
        assert "SLURM_JOB_ID is not set" in text, text
        _, text = call(["prolog", "--frob"])
        assert "frob" in text, text
        for arguments in ([], ["prolgo"], ["begin"], ["begin", "--job", "1"], ["begin", "--job", "1", "--user", "no such user"],
                          ["prolog", "--timeout", "soon", "--address", place.address], ["prolog", "--address", "nonsense"],
                          ["prolog", "--address", "unix:" + "x" * 300], ["prolog", "--address", "127.0.0.1:1"],
                          ["begin", "--job", "x" * 300, "--user", "0", "--address", place.address]):
            call(arguments)


def test_signals_and_standard_error():
    with Place() as place, place.listener():
        hang = ["prolog", "--address", place.address, "--timeout", "200ms"]
        # A scheduler that blocks or ignores signals.
        call(hang, timeout_ms=200, before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM, signal.SIGTERM]))
        call(hang, timeout_ms=200, before=lambda: signal.signal(signal.SIGALRM, signal.SIG_IGN))
        # Standard error closed, or a pipe that is full and that nobody reads.
        call(hang, timeout_ms=200, stderr=None, before=lambda: os.close(2))
        read, write = os.pipe()
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(write, True)
        call(hang, timeout_ms=200, stderr=write)
        os.close(read)
        os.close(write)
        # Ended from outside.
        process = subprocess.Popen([PERFCTL, "hook", *hang[:-1], "5s"], env=JOB, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        _, text = process.communicate(timeout=10)
        assert process.returncode == 0 and b"signal" in text, (process.returncode, text)


def test_too_little_memory():
    import resource
    with Place() as place:
        for mib in (64, 96, 128, 192, 256):
            def limit(mib=mib):
                resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
            run = subprocess.run([PERFCTL, "hook", "prolog", "--address", place.address], env=JOB, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, preexec_fn=limit)
            # The loader itself may fail, before there is any of our code.
            assert run.returncode in (0, 127), run
            assert run.stdout == b"", run


MAKE_CERTS = pathlib.Path(__file__).resolve().parents[2] / "deploy/make-certs.sh"


@pytest.mark.small
def test_over_tls():
    """perfd on another host than the jobs: a prolog shows the certificate of its node's agent, and speaks for that node's jobs."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    with tempfile.TemporaryDirectory(prefix="perfd-hook-tls-") as folder:
        ours, others, policy = (pathlib.Path(folder) / name for name in ("ours", "others", "policy.yaml"))
        policy.write_text("every: 1\n")
        for certs in (ours, others):
            subprocess.run([MAKE_CERTS, certs, "server", "127.0.0.1", "agent", "node1", "node2", "user", "root", "nobody"],
                           check=True, timeout=60, stdout=subprocess.DEVNULL)
        with cluster.Cluster(nodes=(), daemon_flags=[
                "--policy", policy, "--listen-tcp", "127.0.0.1:0", "--tls-admin", "root", "--tls-ca", ours / "ca.crt",
                "--tls-cert", ours / "server.crt", "--tls-key", ours / "server.key"]) as daemon:
            address = re.search(r"mutual TLS on (\S+)", daemon.log("perfd"))[1]

            def tls(name, who, job, certs=ours):
                seconds, text = call([name, "--address", address, "--tls-ca", ours / "ca.crt", "--tls-cert", certs / f"{who}.crt",
                                      "--tls-key", certs / f"{who}.key", "--timeout", "5s"], timeout_ms=5000,
                                     environment={**JOB, "SLURM_JOB_ID": job})
                times.append(seconds)
                return text

            times = []
            first = tls("prolog", "agent-node1", "1")
            assert tls("prolog", "agent-node1", "1") == first  # decided once
            assert tls("epilog", "agent-node1", "1") == ""
            tls("prolog", "user-root", "2")  # an administrator
            text = tls("prolog", "agent-node2", "3")
            assert "node node2 may not speak for a job on node1" in text, text
            text = tls("prolog", "user-nobody", "4")
            assert "may not speak for the scheduler" in text, text
            assert tls("prolog", "agent-node1", "5", certs=others) != ""  # another site's: no connection
            jobs = daemon.json("hook", "list")["jobs"]
            assert sorted(job["job"] for job in jobs) == ["1", "2"], jobs
            print(f"over TLS: start to exit median {median(times) * 1e3:.1f} ms")


def median(values):
    return sorted(values)[len(values) // 2]


def test_how_long_it_takes():
    with Place() as place:
        down = [call(["prolog", "--address", place.address])[0] for _ in range(20)]
    policy = tempfile.NamedTemporaryFile("w", suffix=".yaml")
    policy.write("every: 3\n")
    policy.flush()
    with policy, cluster.Cluster(nodes=(), daemon_flags=["--policy", policy.name]) as daemon:
        up = []
        for number in range(20):
            seconds, text = call(["prolog", "--address", f"unix:{daemon.socket}"], environment={**JOB, "SLURM_JOB_ID": str(1 + number)})
            assert "is not profiled" in text, text
            up.append(seconds)
    for name, times in (("perfd up", up), ("perfd down", down)):
        print(f"{name}: start to exit median {median(times) * 1e3:.1f} ms, longest {max(times) * 1e3:.1f} ms")


@contextlib.contextmanager
def profiling(every):
    """perfd with an agent on node1 and room for as many profiles of jobs as come."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as policy:
        policy.write(f"every: {every}\nquota: {{ active: 1000, per_day: 10000 }}\n"
                     "presets: { default: { duration: 20s, variants: { set: [] } } }\n")
        policy.flush()
        with cluster.Cluster(daemon_flags=["--policy", policy.name]) as c:
            yield c


def job_on(job, node, nodes):
    """Of somebody else: what runs as root is none of the job's, also the calls themselves."""
    return {**JOB, "SLURM_JOB_ID": str(job), "SLURM_JOB_UID": NOBODY, "SLURM_JOB_USER": "nobody", "SLURM_JOB_NODELIST": nodes,
            "SLURMD_NODENAME": node}


def metrics(c):
    with urllib.request.urlopen(c.metrics_url(), timeout=10) as answer:
        return answer.read().decode()


def calls_by_result(c):
    found = re.findall(r'perfd_hook_calls_total{result="(\w+)"} (\S+)', metrics(c))
    return {name: int(float(count)) for name, count in found}


def own_time(c, calls):
    """What perfd took of them, for people."""
    text = wait_until(lambda: f"perfd_hook_seconds_count {calls}\n" in (text := metrics(c)) and text, 20,
                      f"{calls} calls in the metrics")
    buckets = re.findall(r'perfd_hook_seconds_bucket{le="([\d.e-]+)"} (\d+)', text)
    most = next((f"all within {float(bound) * 1e3:g} ms" for bound, count in buckets if int(count) == calls), "some much longer")
    seconds = float(re.search(r"perfd_hook_seconds_sum (.*)", text)[1])
    return f"{seconds / calls * 1e3:.1f} ms on the average, {most}"


def connections_to(path):
    """Those that wait to be accepted, too (proc(5), /proc/net/unix)."""
    lines = pathlib.Path("/proc/net/unix").read_text().splitlines()
    return sum(line.endswith(f" {path}") for line in lines) - 1  # the listener


def test_a_hundred_nodes_at_once():
    """A job of a hundred nodes: all of them tell of it together, half as Slurm's Prolog does and half in the general way."""
    numbers = range(1, 101)
    wait = ("--timeout", "30s")
    with profiling(every=1) as c, concurrent.futures.ThreadPoolExecutor(len(numbers)) as pool:
        address = ("--address", f"unix:{c.socket}", *wait)

        def tell(prolog, begin, job, number):
            node = f"node{number}"
            general = [begin, "--scheduler", "Slurm", "--job", str(job), "--user", NOBODY, "--nodes", "node[1-100]", "--node", node]
            seconds, text = call([*([prolog] if number % 2 else general), *address], timeout_ms=30000,
                                 environment=job_on(job, node, "node[1-100]"))
            assert text == "", (job, node, text)  # it is profiled
            return seconds

        def all_tell(prolog, begin, job, of=numbers):
            return [pool.submit(tell, prolog, begin, job, number) for number in of]

        def results(calls):
            return sorted(call.result(60) for call in calls)

        def record(job):
            [found] = [entry for entry in c.json("hook", "list")["jobs"] if entry["job"] == str(job)]
            return found

        times = results(all_tell("prolog", "begin", 1))
        own = own_time(c, len(times))
        # Again, and now perfd finds all of them before its door at the same moment.
        c.daemon.send_signal(signal.SIGSTOP)
        try:
            before = connections_to(c.socket)
            calls = all_tell("prolog", "begin", 2)
            wait_until(lambda: connections_to(c.socket) >= before + len(numbers), 25, "all calls wait")
        finally:
            c.daemon.send_signal(signal.SIGCONT)
        results(calls)
        jobs = c.json("hook", "list")
        assert sorted((job["job"], job["number"], job["decision"]) for job in jobs["jobs"]) == [
            ("1", 1, "profile"), ("2", 2, "profile")], jobs
        assert jobs["decisions"]["profile"] == 2 and jobs["active"] == 2, jobs
        profiles = {profile["id"] for profile in c.json("list")["profiles"]}
        assert profiles == {record(1)["profile"], record(2)["profile"]} and len(profiles) == 2, profiles
        # All end at once.
        results(all_tell("epilog", "end", 1))
        wait_until(lambda: record(1)["ended_unix_ns"] > 0, 10, "the end of job 1 is stored")
        assert c.wait_over(record(1)["profile"], 20)["state"] == "FAILED"  # nothing of it ever ran
        # All but one: the run is not over. What job 3 is told is in the store, and so is what was said before.
        results(all_tell("epilog", "end", 2, of=numbers[1:]))
        call(["prolog", *address], environment=job_on(3, "node1", "node1"), timeout_ms=30000)
        assert record(2)["ended_unix_ns"] == 0, record(2)
        results(all_tell("epilog", "end", 2, of=numbers[:1]))
        wait_until(lambda: record(2)["ended_unix_ns"] > 0, 10, "the end of job 2 is stored")
        wanted = {"decided": 3, "repeated": 198, "ended": 200, "failed": 0, "refused": 0}
        wait_until(lambda: wanted.items() <= calls_by_result(c).items(), 20, f"{wanted}")
        print(f"100 calls at once: start to exit median {median(times) * 1e3:.0f} ms, p99 {times[98] * 1e3:.0f} ms, longest "
              f"{times[-1] * 1e3:.0f} ms; of that in perfd {own}")


class Callers:
    """Threads that go on telling of jobs of two nodes each, whatever becomes of perfd."""

    def __init__(self, address, threads):
        self.address = address
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.answers, self.unanswered, self.ended = {}, 0, 0  # by job: what was said about it
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.running = [self.pool.submit(self.run, index) for index in range(threads)]

    def call(self, name, job, node):
        return call([name, "--address", self.address, "--timeout", "5s"], timeout_ms=5000,
                    environment=job_on(job, node, "node[1-2]"))[1]

    def run(self, index):
        job = 10000 * (index + 1)
        while not self.stop.is_set():
            job += 1
            for node in ("node1", "node2"):
                text = self.call("prolog", job, node)
                said = re.search(r"is not profiled: (.*)", text)
                with self.lock:
                    if text == "" or said:
                        self.answers.setdefault(str(job), []).append(said[1] if said else "")
                    else:
                        self.unanswered += 1
            for node in ("node1", "node2"):
                self.call("epilog", job, node)

    def check(self):
        for thread in self.running:
            if thread.done():
                thread.result()  # what went wrong
        return True

    def await_more(self, what, count, seconds):
        """Until so many more are answered, or are not."""
        def number():
            return len(self.answers) if what == "answers" else self.unanswered
        before = number()
        wait_until(lambda: self.check() and number() >= before + count, seconds, f"{count} more {what}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.pool.shutdown()


def test_perfd_is_killed_twice_while_jobs_begin():
    with profiling(every=3) as c:
        with Callers(f"unix:{c.socket}", threads=8) as callers:
            for _ in range(2):
                callers.await_more("answers", 15, 60)
                c.daemon.kill()
                c.daemon.wait(10)
                callers.await_more("unanswered", 8, 30)
                c.start_daemon()
            c.wait_connected(1)
            callers.await_more("answers", 15, 60)
        for thread in callers.running:
            thread.result()
        jobs = c.json("hook", "list", "--limit", 1000)["jobs"]
        assert 45 <= len(jobs) < 1000, len(jobs)
        # Each job once, and the numbers without gap or double.
        names = [job["job"] for job in jobs]
        assert len(set(names)) == len(names), sorted(names)
        numbers = sorted(job["number"] for job in jobs)
        assert numbers == list(range(1, len(jobs) + 1)), numbers
        # Every third one is chosen; while perfd has just come back and node1 has not, there is nobody to profile it.
        for job in jobs:
            assert job["decision"] in (("profile", "unavailable") if job["number"] % 3 == 0 else ("not_chosen",)), job
        # A profile for each that says so, and no other.
        profiled = [job["profile"] for job in jobs if job["decision"] == "profile"]
        stored = [profile["id"] for profile in c.json("list", "--limit", 1000)["profiles"]]
        assert sorted(profiled) == sorted(stored) and len(set(profiled)) == len(profiled) >= 5, (profiled, stored)
        # What was told, by whichever perfd, is what the store has.
        by_name = {job["job"]: job for job in jobs}
        for name, told in callers.answers.items():
            job = by_name[name]
            assert set(told) == {"" if job["decision"] == "profile" else job["reason"]}, (told, job)
        print(f"perfd killed twice: {len(jobs)} jobs, {len(profiled)} profiles, {callers.unanswered} calls without an answer")


if __name__ == "__main__":
    cluster.pytest_file(__file__)
