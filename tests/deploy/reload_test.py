#!/usr/bin/env python3
"""perfd and perf-agent under a service manager of the test: configuration files, SIGHUP, readiness, watchdog, log files."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import cluster  # noqa: E402
from cluster import BUILD, wait_until  # noqa: E402

BIN = BUILD / "bin"


class Manager:
    """What systemd is to a service: a socket that hears READY, RELOADING, STOPPING and heartbeats."""

    def __init__(self, folder):
        self.path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.heard = []

    def hear(self, seconds=0.0):
        while select.select([self.socket], [], [], seconds)[0]:
            self.heard += self.socket.recv(4096).decode().splitlines()
            seconds = 0.0
        return self.heard

    def wait_for(self, line, seconds=10):
        wait_until(lambda: line in self.hear(0.05), seconds, f"{line} from the service; heard {self.heard[-5:]}")


class Service:
    def __init__(self, folder, program, config, watchdog_s=2, flags=()):
        folder.mkdir(exist_ok=True)
        self.folder, self.config, self.watchdog_s = folder, folder / f"{program}.yaml", watchdog_s
        self.config.write_text(config)
        self.config.chmod(0o644)
        self.manager = Manager(folder)
        self.stderr = folder / f"{program}.stderr"
        env = {**os.environ, "NOTIFY_SOCKET": str(self.manager.path), "WATCHDOG_USEC": str(watchdog_s * 1000000)}
        with open(self.stderr, "ab") as log:
            self.process = subprocess.Popen([str(BIN / program), "--config", str(self.config), *flags],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)

    def rewrite(self, before, after):
        text = self.config.read_text()
        assert before in text, f"{before} is not in the configuration"
        self.config.write_text(text.replace(before, after))

    def reload(self):
        del self.manager.hear()[:]
        self.process.send_signal(signal.SIGHUP)
        self.manager.wait_for("RELOADING=1")
        self.manager.wait_for("READY=1")

    def log(self):
        return self.stderr.read_text(errors="replace")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(5)
        self.manager.socket.close()
        return self.process.returncode


def perfd_config(folder):
    return (f"apiVersion: perfd/v1\nkind: DaemonConfig\nstore: {{directory: {folder}/store, retention_days: 90}}\n"
            f"listen: {{socket: {folder}/perfd.sock, metrics: \"127.0.0.1:0\"}}\n"
            f"log: {{level: info, file: {folder}/perfd.log}}\n")


class Folder:
    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="perfd-reload-"))
        return self.path

    def __exit__(self, kind, *_):
        if kind:
            for log in [*self.path.glob("*.log"), *self.path.glob("*.stderr")]:
                print(f"--- {log.name}\n" + log.read_text(errors="replace")[-3000:])
        shutil.rmtree(self.path, ignore_errors=True)


def test_perfd_reloads_what_it_can_and_names_the_rest():
    with Folder() as folder:
        service = Service(folder, "perfd", perfd_config(folder))
        try:
            service.manager.wait_for("READY=1")
            log = folder / "perfd.log"
            url = wait_until(lambda: re.search(r"http://\S+/metrics", log.read_text()), 5, "the metrics address")[0]
            answers, stop = [], threading.Event()

            def scrape():
                while not stop.is_set():
                    with urllib.request.urlopen(url, timeout=5) as answer:
                        answers.append(answer.status)

            scraper = threading.Thread(target=scrape)
            scraper.start()
            try:
                service.rewrite("level: info", "level: debug")
                service.rewrite("retention_days: 90", "retention_days: 7")
                service.rewrite(f"{folder}/store", f"{folder}/elsewhere")
                service.reload()
                text = log.read_text()
                assert 'log.level: "info" -> "debug"' in text, text
                assert "store.retention_days: 90 -> 7" in text, text
                assert "store.directory" in text and "needs a restart" in text, text
                assert not (folder / "elsewhere").exists()

                # Whom the administrator named wrongly is nobody; the rest of the rules is new all the same.
                service.rewrite("\nlog:", "\naccess: {agent_user: no-such-user-here, tls_admins: [alice]}\nlog:")
                service.reload()
                text = log.read_text()
                assert "access.tls_admins" in text, text
                assert "the rest of access is new: access.agent_user: this host knows no user 'no-such-user-here'" in text, text
                assert any("not all of the last reload was done" in line for line in service.manager.heard), service.manager.heard

                # A file that was rotated away, and one that is broken: the log is opened anew all the same.
                log.rename(folder / "perfd.log.1")
                service.rewrite("kind: DaemonConfig", "kind: DaemonConfig\nlogg: {}")
                service.reload()
                text = log.read_text()
                assert "stays as it was" in text and "line 3, column 1: unknown key 'logg'; did you mean 'log'?" in text, text
                before = len(answers)
                wait_until(lambda: len(answers) > before, 5, "a scrape after the reloads")
            finally:
                stop.set()
                scraper.join(10)
            assert set(answers) == {200} and len(answers) > 2, answers[-5:]
            assert service.log() == "", service.log()  # nothing went to standard error
        finally:
            code = service.stop()
        assert code == 0, code


class Site:
    """perfd with a policy, and what its scheduler, its users and its Prometheus see of it. No agent is connected."""

    def __init__(self, folder):
        self.folder, self.policy, self.service = folder, folder / "policy.yaml", None

    def start(self):
        config = perfd_config(self.folder) + f"policy: {{file: {self.policy}}}\n"
        self.service = Service(self.folder / f"run{len(list(self.folder.glob('run*')))}", "perfd", config)
        self.service.manager.wait_for("READY=1")

    def perfctl(self, *arguments, env=None):
        return subprocess.run([BIN / "perfctl", "--address", f"unix:{self.folder}/perfd.sock", *arguments], capture_output=True,
                              text=True, timeout=30, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})

    def prolog(self, job):
        """Why the job is not profiled."""
        run = self.perfctl("hook", "prolog", "--timeout", "5s", env={
            "SLURM_JOB_ID": str(job), "SLURM_JOB_UID": "0", "SLURM_JOB_NODELIST": "node1", "SLURMD_NODENAME": "node1"})
        assert run.returncode == 0 and not run.stdout, run
        return re.search(r"is not profiled: (.*)", run.stderr)[1]

    def list(self):
        return json.loads(self.perfctl("hook", "list", "--json").stdout)

    def numbers(self):
        return {job["job"]: job["number"] for job in self.list()["jobs"]}

    def check(self):
        """Of doctor."""
        places = json.loads(self.perfctl("doctor", "--json").stdout)["places"]
        return next(check for place in places for check in place["checks"] if check["name"] == "policy")

    def await_metric(self, healthy):
        url = re.findall(r"http://\S+/metrics", (self.folder / "perfd.log").read_text())[-1]

        def shown():
            with urllib.request.urlopen(url, timeout=5) as answer:
                return f"\nperfd_policy_healthy {healthy}\n" in answer.read().decode()
        wait_until(shown, 30, f"perfd_policy_healthy {healthy}")


def test_a_broken_policy_keeps_the_old_one():
    with Folder() as folder:
        site = Site(folder)
        site.policy.write_text("every: 3\n")
        site.start()
        try:
            assert "every 3rd job by policy; this is number 1" in site.prolog(1)
            assert site.list()["policy_error"] == "" and site.check()["ok"]
            site.await_metric(1)
            for wrong, told in (("every: 1\nevry: 1\n", "line 2, column 1: unknown key 'evry'; did you mean 'every'?"),
                                ("every: [1\n", "line "), (None, "No such file")):
                if wrong is None:
                    site.policy.unlink()
                else:
                    site.policy.write_text(wrong)
                site.service.reload()
                jobs = site.list()
                assert told in jobs["policy_error"] and str(site.policy) in jobs["policy_error"], jobs
                assert jobs["policy"].startswith("one of every 3 jobs"), jobs
                check = site.check()
                assert not check["ok"] and "one of every 3 jobs" in check["found"] and told in check["found"], check
                assert str(site.policy) in check["fix"], check
                heard = site.service.manager.heard
                assert any("not all of the last reload was done" in line for line in heard), heard
            assert (folder / "perfd.log").read_text().count("the policy stays as it was") == 3
            assert "every 3rd job by policy; this is number 2" in site.prolog(2)
            assert "every 3rd job by policy (number 3), but no agent" in site.prolog(3)
            site.await_metric(0)
            site.policy.write_text("every: 1\n")
            site.service.reload()
            jobs = site.list()
            assert jobs["policy_error"] == "" and jobs["policy"].startswith("every job"), jobs
            assert "every job by policy (number 4)" in site.prolog(4) and site.check()["ok"]
            site.await_metric(1)
            assert site.numbers() == {"1": 1, "2": 2, "3": 3, "4": 4}, site.list()
        finally:
            code = site.service.stop()
        assert code == 0, code


def test_perfd_starts_with_a_broken_policy_and_has_none():
    with Folder() as folder:
        site = Site(folder)
        site.policy.write_text("every: 3\n")
        site.start()
        site.prolog(1)
        assert site.service.stop() == 0
        site.policy.write_text("evry: 3\n")
        site.start()
        try:
            assert "no job is profiled by policy" in (folder / "perfd.log").read_text()
            assert "perfd has no policy: its file is not taken" in site.prolog(2)
            jobs = site.list()
            assert jobs["policy"] == "" and "line 1, column 1: unknown key 'evry'" in jobs["policy_error"], jobs
            assert not site.check()["ok"]
            site.await_metric(0)
            # Nothing was decided about job 2: it is counted when it is told of again.
            assert site.numbers() == {"1": 1}, jobs
            site.policy.write_text("every: 3\n")
            site.service.reload()
            assert "this is number 2" in site.prolog(2)
            site.await_metric(1)
        finally:
            code = site.service.stop()
        assert code == 0, code


class TlsSite:
    """perfd with a TCP door and a list of revoked certificates."""

    def __init__(self, folder):
        self.folder, self.certs, self.revoked = folder, folder / "certs", folder / "revoked"
        self.make("server", "127.0.0.1", "agent", "n1", "user", "bin", "daemon")
        self.revoke("# nobody yet\n")
        config = perfd_config(folder).replace("listen: {", 'listen: {tcp: "127.0.0.1:0", ') + (
            f"tls: {{{self.files('server')}, revoked: {self.revoked}}}\n")
        self.service = Service(folder, "perfd", config)
        self.service.manager.wait_for("READY=1")
        self.address = re.search(r"mutual TLS on (\S+)", self.log())[1]

    def make(self, *words):
        subprocess.run([ROOT / "deploy/make-certs.sh", self.certs, *words], check=True, timeout=60, stdout=subprocess.DEVNULL)

    def files(self, name):
        return f"ca: {self.certs}/ca.crt, certificate: {self.certs}/{name}.crt, key: {self.certs}/{name}.key"

    def issued(self, name):
        """What make-certs.sh noted of it."""
        return next(line for line in (self.certs / "issued").read_text().splitlines() if f"# {name}," in line)

    def revoke(self, text):
        self.revoked.write_text(text)
        self.revoked.chmod(0o644)

    def log(self):
        return (self.folder / "perfd.log").read_text()

    def perfctl(self, user, *arguments):
        return subprocess.run([BIN / "perfctl", "--address", self.address, "--tls-ca", self.certs / "ca.crt", "--tls-cert",
                               self.certs / f"user-{user}.crt", "--tls-key", self.certs / f"user-{user}.key", *arguments],
                              capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)

    def agent(self):
        return Service(self.folder / "agent", "perf-agent", (
            f"apiVersion: perfd/v1\nkind: AgentConfig\nnode: n1\ndaemon: {{address: \"{self.address}\"}}\n"
            f"tls: {{{self.files('agent-n1')}}}\nspool: {{directory: {self.folder}/spool}}\n"))


def test_a_reload_revokes_certificates():
    """With the list as make-certs.sh notes it, up to the words of client and agent."""
    with Folder() as folder:
        site = TlsSite(folder)
        agent = site.agent()
        try:
            wait_until(lambda: "connected to perfd" in agent.log(), 20, "the agent's connection")
            assert site.perfctl("bin", "list").returncode == 0
            site.revoke(site.issued("user-bin") + "\nname n1\n")
            site.service.reload()
            wait_until(lambda: "is revoked by its name" in agent.log(), 20, "the end of the agent's stream")
            assert "stream ends: PERMISSION_DENIED: the certificate of perfd://agent/n1" in site.log(), site.log()
            refused = site.perfctl("bin", "list")
            assert refused.returncode == 4 and "perfd://user/bin" in refused.stderr, refused
            assert "is revoked by its serial" in refused.stderr, refused
            assert site.perfctl("daemon", "list").returncode == 0

            site.revoke("name daemon\nnam root\n")
            site.service.reload()
            assert "the list of revoked certificates stays as it was: " in site.log(), site.log()
            assert "line 2: 'nam' begins no entry" in site.log(), site.log()
            assert site.perfctl("bin", "list").returncode == 4
            assert site.perfctl("daemon", "list").returncode == 0
            doctor = json.loads(site.perfctl("daemon", "doctor", "--json").stdout)
            checks = {check["name"]: check for place in doctor["places"] for check in place["checks"]}
            assert not checks["revoked certificates"]["ok"], checks
            assert checks["certificate"]["ok"] and checks["certificate server"]["ok"] and checks["certificate ca"]["ok"], checks
        finally:
            codes = agent.stop(), site.service.stop()
        assert codes == (0, 0), codes
        # There is no list before it at the start.
        run = subprocess.run([BIN / "perfd", "--config", site.service.config], capture_output=True, text=True, timeout=30)
        assert run.returncode == 1 and "line 2: 'nam' begins no entry" in site.log(), (run, site.log())


class StoppedThread:
    """Holds one thread of a process still, as a debugger does (ptrace(2)): the others run on."""
    SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, tid):
        self.tid, self.libc = tid, ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def call(self, request):
        if self.libc.ptrace(request, self.tid, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def __enter__(self):
        self.call(self.SEIZE)
        self.call(self.INTERRUPT)
        os.waitpid(self.tid, self.WALL)

    def __exit__(self, *_):
        self.call(self.DETACH)


def threads_of(process, name):
    return [int(p.name) for p in pathlib.Path(f"/proc/{process.pid}/task").iterdir()
            if (p / "comm").read_text().strip() == name]


def thread_of(process, name):
    wait_until(lambda: threads_of(process, name), 10, f"a thread {name}")  # they take their names when they first run
    tids = threads_of(process, name)
    assert len(tids) == 1, (name, tids)
    return tids[0]


def hold(tid):
    """The thread, stopped until it is let go or the process ends."""
    held = StoppedThread(tid)
    try:
        held.__enter__()
    except PermissionError:
        pytest.skip("ptrace is not allowed here: nothing can be made to hang")
    return held


def heart_stops_with(service, find_thread):
    """Heartbeats come often enough, stop while the thread hangs, and come again."""
    service.manager.wait_for("READY=1")
    del service.manager.hear()[:]
    began = time.monotonic()
    wait_until(lambda: service.manager.hear(0.05).count("WATCHDOG=1") >= 4, 10, "heartbeats")
    assert time.monotonic() - began < 2 * service.watchdog_s, "fewer than two heartbeats per allowed time"
    held = hold(find_thread())
    try:
        time.sleep(0.5)
        del service.manager.hear()[:]
        time.sleep(1.5 * service.watchdog_s)
        assert "WATCHDOG=1" not in service.manager.hear(), "the service pretends to live while its spine hangs"
    finally:
        held.__exit__()
    service.manager.wait_for("WATCHDOG=1")


def test_a_hanging_spine_stops_the_heartbeat():
    with Folder() as folder:
        service = Service(folder, "perfd", perfd_config(folder), watchdog_s=1)
        try:
            heart_stops_with(service, lambda: thread_of(service.process, "perfd-tick"))
        finally:
            service.stop()


def test_a_hanging_agent_stops_the_heartbeat():
    """Its spine is its main thread. The thread that talks to perfd may hang as long as it likes."""
    with Folder() as folder:
        service = Service(folder, "perf-agent", (
            f"apiVersion: perfd/v1\nkind: AgentConfig\nnode: hangs\ndaemon: {{address: \"unix:{folder}/nobody.sock\"}}\n"
            f"spool: {{directory: {folder}/spool}}\n"))
        try:
            heart_stops_with(service, lambda: service.process.pid)
            with StoppedThread(thread_of(service.process, "perfd-link")):
                del service.manager.hear()[:]
                wait_until(lambda: service.manager.hear(0.05).count("WATCHDOG=1") >= 5, 10, "heartbeats without a link")
        finally:
            service.stop()


def seconds_to_end(service, *held):
    """From SIGTERM to the exit. A thread that was traced is not gone before its tracer has asked for it (ptrace(2), "Death under
    ptrace")."""
    began = time.monotonic()
    service.process.terminate()
    while service.process.poll() is None:
        for thread in held:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(thread.tid, os.WNOHANG | StoppedThread.WALL)
        assert time.monotonic() - began < 20, "perfd does not end"
        time.sleep(0.02)
    return time.monotonic() - began


def test_a_reload_that_hangs_holds_up_nothing():
    with Folder() as folder:
        service = Service(folder, "perfd", perfd_config(folder), watchdog_s=1)
        try:
            service.manager.wait_for("READY=1")
            held = hold(thread_of(service.process, "perfd-reload"))
            service.process.send_signal(signal.SIGHUP)
            time.sleep(0.5)
            del service.manager.hear()[:]
            wait_until(lambda: service.manager.hear(0.05).count("WATCHDOG=1") >= 4, 5, "heartbeats during a reload")
            seconds = seconds_to_end(service, held)
            assert service.process.returncode == 0 and seconds < 10, (service.process.returncode, seconds)
        finally:
            service.stop()


@pytest.mark.parametrize("name", ("", "perfd-store", "perfd-hook", "perfd-archive"))
def test_the_end_comes_in_time_whatever_hangs(name):
    """5 s; at once when nothing hangs."""
    with Folder() as folder:
        config = perfd_config(folder) + f"archive: {{directory: {folder}/archive}}\n"
        service = Service(folder, "perfd", config)
        try:
            service.manager.wait_for("READY=1")
            held = [hold(thread_of(service.process, name))] if name else []
            seconds = seconds_to_end(service, *held)
            text = (folder / "perfd.log").read_text()
            assert service.process.returncode == 0, (name, service.process.returncode)
            assert ("did not end within 5s" in text) == bool(name), (name, text)
            assert seconds < (10 if name else 5), (name, seconds)  # a busy machine ends a process late
            print(f"      {name or 'nothing'} hangs: perfd ended after {seconds:.2f} s")
        finally:
            service.stop()


def test_stopping_is_told():
    with Folder() as folder:
        service = Service(folder, "perfd", perfd_config(folder))
        try:
            service.manager.wait_for("READY=1")
            service.process.terminate()
            service.manager.wait_for("STOPPING=1")
            assert service.process.wait(15) == 0
        finally:
            service.stop()


def test_without_files_sighup_ends_perfd():
    with Folder() as folder:
        process = subprocess.Popen([str(BIN / "perfd"), "--store-dir", f"{folder}/store", "--socket", f"{folder}/sock",
                                    "--metrics-listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            wait_until((folder / "sock").exists, 10, "perfd listens")
            time.sleep(0.2)
            process.send_signal(signal.SIGHUP)
            assert process.wait(15) == 0
        finally:
            process.kill()
            process.wait(5)


def test_a_broken_configuration_starts_nothing():
    with Folder() as folder:
        for program, kind in (("perfd", "DaemonConfig"), ("perf-agent", "AgentConfig")):
            config = folder / "broken.yaml"
            config.write_text(f"kind: {kind}\nlog:\n  levl: info\n")
            config.chmod(0o644)
            run = subprocess.run([str(BIN / program), "--config", str(config)], capture_output=True, text=True, timeout=20)
            assert run.returncode == 5 and "line 3, column 3: unknown key 'levl' in log; did you mean 'level'?" in run.stderr, run
            config.write_text(f"kind: {kind}\n")
            config.chmod(0o666)
            run = subprocess.run([str(BIN / program), "--config", str(config), "--check-config"], capture_output=True,
                                 text=True, timeout=20)
            assert run.returncode == 5 and "chmod go-w" in run.stderr, run
            config.chmod(0o644)
            run = subprocess.run([str(BIN / program), "--config", str(config), "--check-config"], capture_output=True,
                                 text=True, timeout=20)
            assert run.returncode == 0 and f"kind: {kind}\n" in run.stdout, run


def test_the_agent_reloads_its_log():
    with Folder() as folder:
        service = Service(folder, "perf-agent", (
            f"apiVersion: perfd/v1\nkind: AgentConfig\nnode: reloaded\ndaemon: {{address: \"unix:{folder}/nobody.sock\"}}\n"
            f"spool: {{directory: {folder}/spool}}\nlog: {{level: info, file: {folder}/agent.log}}\n"))
        try:
            service.manager.wait_for("READY=1")
            service.manager.wait_for("WATCHDOG=1")
            (folder / "agent.log").rename(folder / "agent.log.1")
            service.rewrite("level: info", "level: debug")
            service.rewrite("node: reloaded", "node: other")
            service.reload()
            text = (folder / "agent.log").read_text()
            assert 'log.level: "info" -> "debug"' in text, text
            assert 'node: "reloaded" -> "other" needs a restart' in text, text
            assert "node reloaded" in (folder / "agent.log.1").read_text()
        finally:
            code = service.stop()
        assert code == 0, code


def test_the_agent_takes_what_may_change_while_it_runs():
    with Folder() as folder:
        service = Service(folder, "perf-agent", (
            f"apiVersion: perfd/v1\nkind: AgentConfig\ndaemon: {{address: \"localhost:1\"}}\n"
            f"spool: {{directory: {folder}/spool}}\nlog: {{level: info, file: {folder}/agent.log}}\n"))
        try:
            log = folder / "agent.log"
            service.manager.wait_for("READY=1")
            wait_until(lambda: "give --tls-ca" in log.read_text(), 10, "the need of certificates")
            service.rewrite("spool: {", "tls: {ca: /missing/ca.crt}\ninjection: {allowed: false}\nspool: {limit_mib: 9, ")
            service.reload()
            text = log.read_text()
            for change in ("tls.ca", "injection.allowed: true -> false", "spool.limit_mib: 256 -> 9", "reloaded"):
                assert change in text, text
            assert "restart" not in text, text
            wait_until(lambda: "--tls-ca: open /missing/ca.crt: No such file" in log.read_text(), 10, "the new file")
            service.rewrite("limit_mib: 9", "limit_mib: 7, limmit: 1")
            service.reload()
            text = log.read_text()
            assert "the configuration stays as it was: " in text and "unknown key 'limmit'" in text, text
            assert "9 -> 7" not in text, text
        finally:
            code = service.stop()
        assert code == 0, code


if __name__ == "__main__":
    cluster.pytest_file(__file__)
