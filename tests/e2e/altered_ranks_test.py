#!/usr/bin/env python3
"""What may befall a rank while it is altered: it ends, is killed, becomes another program, loads code, starts threads and
processes without end; a debugger takes it; from its beginning it has a filter of system calls or handles its own page faults.
Each time it computes what it should, keeps nothing of ours, and the report says why there is not more."""
import contextlib
import ctypes
import json
import os
import platform
import random
import shutil
import signal
import struct
import time

import pytest

import cluster
from cluster import Cluster, PUPPETS, ended_well, promised, promised_within, shadows_of, wait_until
from promises_test import Job, Rank, heal, profile_with_shadows, program_of, submit, submit_slow, told, unaltered

RESTLESS = PUPPETS / "restless"
LIBC = ctypes.CDLL(None, use_errno=True)
ROUNDS = int(os.environ.get("PERFD_ROUNDS", "2"))  # of each kind of instant

pytestmark = pytest.mark.skipif(not RESTLESS.exists(), reason="the puppet is not built")


class Restless:
    """A program of one loop (tests/puppets/restless.c), measured as often as its budget allows until it has been told "enough"."""

    def __init__(self, c, *arguments, wrap=(), **kwargs):
        self.c = c
        self.process = c.spawn("job", [*wrap, RESTLESS, *arguments], **kwargs)
        wait_until(lambda: program_of(self.process.pid) == str(RESTLESS), 10, "it runs", 0.01)
        time.sleep(0.3)
        self.rank = Rank(self.process.pid)
        self.before = self.rank.all()
        self.own_text = self.rank.text(str(RESTLESS))
        self.profile = None

    def submit(self, duration="8s", overhead="2%"):
        self.profile = self.c.submit("--pid", self.process.pid, "--node", "node1", "--duration", duration, "--variants",
                                     "LS,FP,CTRL,NO_DIV", "--overhead", overhead)

    def altered(self):
        return self.rank.text(str(RESTLESS)) != self.own_text

    def await_jump(self):
        wait_until(self.altered, 20, "the jump is in", 0.001)

    def enough(self):
        self.process.send_signal(signal.SIGUSR1)

    def ends_right(self):
        ended_well(self.process, 60, lambda: self.c.log("job"))
        promised(self.c.log("job").splitlines()[-1] == "right", self.c.log("job"))

    def finished(self, states=("DONE", "PARTIAL")):
        """Report and audit of the profile, which ends without being told to."""
        status = self.c.wait_over(self.profile, 60)
        assert status["state"] in states, status
        return self.c.json("report", self.profile), self.c.json("audit", self.profile)["entries"]


def says(report, *texts):
    """One of them stands where a reader looks for reasons: beside the verdicts, or in a notice."""
    shown = json.dumps([report["verdicts"], report["status"]["notices"]])
    assert any(text in shown for text in texts), (texts, shown)


def last_unmapping(audit):
    """Its outcome; of none, nothing. An attempt that a busy host made too long was undone before, and the rank altered again."""
    return [entry["outcome"] for entry in audit if entry["action"] == "unmap"][:1]


def nothing_is_left(c):
    """No journal, no rank that waits to be healed."""
    promised("nothing was injected" in heal(c, "--all").stdout, heal(c, "--all").stdout)


def was_altered_and_is_not(c, job, audit):
    assert "install" in {e["action"] for e in audit}, audit
    promised(not job.altered(), "the text of the program")
    job.enough()
    job.ends_right()
    nothing_is_left(c)


def test_a_rank_that_ends_while_it_is_altered():
    chance = random.Random(9)
    altered = 0
    with Cluster() as c:
        for number in range(2 * ROUNDS):
            job = Restless(c, "spin", 60)
            job.submit()
            job.await_jump()
            time.sleep(chance.uniform(0, 0.3))
            altered += job.altered()
            if number % 2:
                job.process.kill()
                job.process.wait(10)
            else:
                job.enough()
                job.ends_right()
            report, audit = job.finished()
            # Whatever was done just then, or waited for: the loop's reason, or the rank's.
            says(report, "the process has ended, or it runs another program", "(restless) ended")
            told(report)
            assert all("process has ended" in outcome for outcome in last_unmapping(audit)), audit
        print(f"   {altered} of {2 * ROUNDS} ended with the jump in")
        assert altered > 0
        nothing_is_left(c)


def becomes(program, wrap=()):
    """The text of the program that a rank has become while it was altered, and that of one that was never measured."""
    with Cluster() as c:
        second = c.dir / "second" if program == "another" else RESTLESS
        if program == "another":
            shutil.copy(RESTLESS, second)
        alone = c.spawn("alone", [*wrap, second, "spin", 300])
        hits = 0
        for _ in range(ROUNDS):
            job = Restless(c, "exec", 60, second, wrap=wrap)
            job.submit()
            job.await_jump()
            before = job.rank.maps()
            hits += job.altered()
            job.enough()
            promised_within(lambda: "right so far" in c.log("job") and program_of(job.process.pid) == str(second) and
                            job.rank.maps() != before, 10, "it is another program", 0.01)
            report, audit = job.finished()
            told(report)
            says(report, "it runs another program now (exec)")
            left = last_unmapping(audit)
            assert left and "nothing of ours was in it" in left[0], audit
            new = Rank(job.process.pid)
            promised(new.text(str(second)) == Rank(alone.pid).text(str(second)), "the text of the new program")
            named = sorted({line.split()[5] for line in new.maps() if len(line.split()) > 5})
            usual = sorted({line.split()[5] for line in Rank(alone.pid).maps() if len(line.split()) > 5})
            promised(named == usual, (named, usual))
            promised(len(new.maps()) == len(Rank(alone.pid).maps()), new.maps())
            job.enough()
            job.ends_right()
            (c.dir / "job.log").write_text("")
        alone.terminate()
        assert hits > 0, "none was altered when it became another program"
        nothing_is_left(c)


def test_a_rank_that_becomes_another_program():
    becomes("another")


def test_a_rank_that_becomes_itself_at_the_same_place():
    """Without randomisation the program has the same addresses again, and no jump: nothing may be written "back"."""
    becomes("the same", wrap=("setarch", platform.machine(), "-R"))


def test_threads_and_processes_that_come_and_go(c):
    """Children are forked with the jump in their text, threads begin and end at any time: all pass through, or are measured."""
    job = Restless(c, "churn", 60)
    job.submit("6s", "30%")
    report, audit = job.finished()
    told(report)
    print("  ", shadows_of(report), [(v["state"], v["open"], v["refusals"][:1]) for v in report["verdicts"]])
    promised(job.rank.text() == job.before["text"], "the text of all modules")
    was_altered_and_is_not(c, job, audit)


def test_code_that_is_loaded_while_the_program_is_altered(c):
    job = Restless(c, "load", 12, PUPPETS / "libplugin.so")
    job.submit("10s", "10%")
    report, audit = job.finished()
    told(report)
    was_altered_and_is_not(c, job, audit)


def test_heal_of_all_ranks_with_the_jump_in(c):
    job = Job(c, n=400_000)
    submit_slow(c, job, "30s")
    wait_until(job.altered, 20, "the jump is in", 0.001)
    c.agents["node1"].kill()
    c.agents["node1"].wait(10)
    assert job.altered(), "the agent was quicker"
    run = heal(c, "--all")
    promised(run.returncode == 0 and "restored" in run.stdout and str(job.process.pid) in run.stdout, run)
    job.must_be_as_before()
    nothing_is_left(c)
    job.ends_right()


# ---- others who have a hand on the rank -----------------------------------------------------------------------------

PTRACE_CONT, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 7, 17, 0x4206, 0x4207


class Debugger:
    """This process traces one thread; what stops it is let go at once, as `gdb -p` does after "continue"."""

    def __init__(self, pid):
        self.pid = pid

    def call(self, request, data=0):
        if LIBC.ptrace(request, self.pid, None, ctypes.c_void_p(data)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def try_to_attach(self):
        with contextlib.suppress(PermissionError):  # the agent's tracer holds it for some milliseconds
            self.call(PTRACE_SEIZE)
            return True
        return False

    def __enter__(self):
        wait_until(self.try_to_attach, 5, "the debugger is attached", 0.001)
        return self

    def __exit__(self, *_):
        # A tracee must be stopped to be let go.
        with contextlib.suppress(ProcessLookupError):
            self.call(PTRACE_INTERRUPT)
            wait_until(lambda: os.waitpid(self.pid, os.WNOHANG | 0x40000000)[0] == self.pid, 5, "it stopped", 0.001)
            self.call(PTRACE_DETACH)


def test_a_rank_in_a_debugger(c):
    job = Job(c)
    with Debugger(job.process.pid):
        profile = submit(c, job, "3s")
        c.wait_over(profile, 60)
        report = c.json("report", profile)
        says(report, f"traced by process {os.getpid()}", f"process {os.getpid()} traces it")
        promised(not job.altered(), "the text")
        promised(shadows_of(report) == 0, report["verdicts"])
    profile_with_shadows(c, job, "8s")  # without the debugger it is measured
    job.must_be_as_before()
    job.ends_right()


def test_a_debugger_comes_while_the_rank_is_altered(c):
    """Nothing of ours stops a rank that somebody else traces: the jump waits until he has gone, then it is taken out."""
    job = Job(c, n=400_000)
    profile = submit_slow(c, job, "60s")
    wait_until(job.altered, 30, "the jump is in", 0.001)
    with Debugger(job.process.pid):
        assert job.altered(), "the loop was measured sooner than the debugger came"
        assert c.perfctl("cancel", profile).returncode == 0
        c.wait_over(profile, 60)
        before = job.cpu()
        promised_within(lambda: job.cpu() > before + 0.2, 20, "the rank computes on", 0.05)
        promised(job.tracer() == os.getpid(), "it is still his")
    promised_within(job.as_before, 60, "the rank is as it was", 0.05)
    job.ends_right()
    nothing_is_left(c)


def allow_all_calls():
    """Between fork and exec: a filter of system calls that lets all of them pass."""
    allow = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)  # BPF_RET, SECCOMP_RET_ALLOW
    code = ctypes.create_string_buffer(allow, 8)
    program = struct.pack("HxxxxxxP", 1, ctypes.addressof(code))
    if LIBC.prctl(38, 1, 0, 0, 0) != 0 or LIBC.prctl(22, 2, ctypes.c_char_p(program), 0, 0) != 0:
        os._exit(3)


def handles_own_faults():
    """Between fork and exec: a userfaultfd that the program has open all its life."""
    descriptor = LIBC.syscall(323, 0)
    if descriptor < 0:
        os._exit(3)
    os.set_inheritable(descriptor, True)


def refused(preexec, *reasons):
    with Cluster() as c:
        job = Restless(c, "spin", 60, preexec_fn=preexec, close_fds=False)
        job.submit("3s", "30%")
        report, audit = job.finished()
        says(report, *reasons)
        promised(shadows_of(report) == 0, report["verdicts"])
        promised(not [e for e in audit if e["action"] in ("map", "install") and e["outcome"] == "ok"], audit)
        unaltered(job.before, job.rank.all())
        job.enough()
        job.ends_right()


def test_a_rank_with_a_filter_of_system_calls():
    refused(allow_all_calls, "seccomp")


def test_a_rank_that_handles_its_own_page_faults():
    if LIBC.syscall(323, 0x80000) < 0:
        pytest.skip("this kernel gives no userfaultfd")
    refused(handles_own_faults, "handles its own page faults")


if __name__ == "__main__":
    cluster.pytest_file(__file__)
