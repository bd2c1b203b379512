#!/usr/bin/env python3
"""perfctl hook as a scheduler's prolog calls it: whatever is wrong around it, it ends with 0, in time, with nothing on standard
output and at most one line on standard error. Prints how long a call takes, from start to exit."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import cluster

PERFCTL = cluster.BIN / "perfctl"
JOB = {"SLURM_JOB_ID": "4711", "SLURM_JOB_UID": "0", "SLURM_JOB_USER": "root", "SLURM_JOB_NODELIST": "node1",
       "SLURMD_NODENAME": "node1"}
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
    assert seconds < timeout_ms / 1000 + GRACE, (arguments, seconds)
    return seconds, text


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


def test_nobody_listens():
    with Place() as place:
        for name in ("prolog", "epilog"):
            _, text = call([name, "--address", place.address])
            assert "does not listen" in text, text
        place.listener().close()  # a socket whose daemon was killed
        _, text = call(["prolog", "--address", place.address])
        assert "does not listen" in text, text


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


def test_over_tls():
    """perfd on another host than the jobs: a prolog shows the certificate of its node's agent, and speaks for that node's jobs."""
    if not shutil.which("openssl"):
        return print("SKIPPED: test_over_tls: openssl is not installed")
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


if __name__ == "__main__":
    if not PERFCTL.exists():
        cluster.skip(f"{PERFCTL} is not built")
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"{name}: ok", flush=True)
    sys.exit(0)
