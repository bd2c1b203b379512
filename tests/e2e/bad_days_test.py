#!/usr/bin/env python3
"""Bad input and bad days: each ends with a clear error, the right exit code, and a job that did not notice."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

import cluster
from cluster import BIN, Cluster, PUPPETS, wait_until

pytestmark = pytest.mark.skipif(not (PUPPETS / "counting").exists(), reason="the puppets are not built (mpicc is missing)")


def error_of(run):
    return json.loads(run.stderr.strip().splitlines()[-1])["error"]


def expect_error(c, arguments, exit_code, *words):
    run = c.perfctl(*arguments, "--json")
    assert run.returncode == exit_code, f"{arguments}: exit {run.returncode}, {run.stdout} {run.stderr}"
    message = error_of(run)["message"]
    for word in words:
        assert word in message, f"'{word}' is not in: {message}"


def notices(c, profile):
    return " | ".join(n["text"] for n in c.json("status", profile)["notices"])


class Job:
    """A counting job whose output must be the same with and without us."""

    def __init__(self, c, name="job", program="counting", steps=4000, ranks=2):
        self.c, self.name = c, name
        self.process = c.mpirun(name, ranks, [PUPPETS / program, steps, 60000], threads=1)
        wait_until(lambda: len(cluster.ranks_of(program)) >= ranks, 20, "the ranks run")

    def checks(self):
        cluster.ended_well(self.process, 120, lambda: self.c.log(self.name))
        return sorted(line for line in self.c.log(self.name).splitlines() if "check" in line)


@pytest.mark.small
def test_misspelt_key_has_line_column_and_nearest():
    with Cluster(nodes=()) as c:
        spec = c.dir / "bad.yaml"
        spec.write_text("apiVersion: perfd/v1\nkind: Profile\ntarget:\n  command: x\nhotspots:\n  frequncy: 199Hz\n")
        expect_error(c, ["validate", spec], 5, "line 6", "column 3", "frequncy", "frequency")
        expect_error(c, ["submit", spec], 5, "line 6", "frequency")
        spec.write_text("")
        expect_error(c, ["validate", spec], 5, "empty")
        spec.write_text("apiVersion: perfd/v1\nkind: Profile\ntarget: { command: x }\nduration: 5 parsecs\n")
        expect_error(c, ["validate", spec], 5, "line 4", "parsecs")
        spec.write_text("a: " + "x" * 200_000)
        expect_error(c, ["validate", spec], 5, "65536")
        expect_error(c, ["validate", c.dir / "none.yaml"], 2, "none.yaml")


def test_no_daemon_and_no_node():
    with Cluster(nodes=()) as c:
        run = c.perfctl("list", "--json", env={"PERFD_ADDRESS": f"unix:{c.dir}/nobody.sock"})
        assert run.returncode == 1 and "nobody.sock" in error_of(run)["message"], run
        expect_error(c, ["submit", "--command", "x"], 1, "node")


def test_nothing_matches(c):
    profile = c.submit("--command", "no-such-program-at-all", "--duration", "5s")
    status = c.wait_over(profile, 30)
    assert status["state"] == "FAILED", status
    assert "no-such-program-at-all" in notices(c, profile)
    run = c.perfctl("report", profile)
    assert run.returncode == 3, run


def test_pid_that_is_gone():
    gone = subprocess.Popen(["true"])
    gone.wait()
    with Cluster() as c:
        profile = c.submit("--pid", gone.pid, "--duration", "5s", "--node", "node1")
        status = c.wait_over(profile, 30)
        assert status["state"] == "FAILED", status
        assert str(gone.pid) in notices(c, profile)


def test_a_rank_of_another_user():
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    with Cluster() as c:
        other = subprocess.Popen(["sleep", "30"], user="daemon")
        try:
            run = subprocess.run([BIN / "perfctl", "submit", "--pid", str(other.pid), "--node", "node1", "--duration",
                                  "3s", "--json"], capture_output=True, text=True, user="nobody", timeout=30,
                                 env={**os.environ, "PERFD_ADDRESS": f"unix:{c.socket}", "HOME": "/"})
            assert run.returncode == 0, run
            profile = json.loads(run.stdout)["id"]
            status = c.wait_over(profile, 30)
            assert status["state"] == "FAILED" and status["requester"]["name"] == "nobody", status
            assert "daemon" in notices(c, profile) or "another user" in notices(c, profile), notices(c, profile)
        finally:
            other.kill()
            other.wait()


def test_a_user_sees_only_their_own_profiles():
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    with Cluster() as c:
        profile = c.submit("--command", "no-such-program", "--duration", "2s")
        env = {**os.environ, "PERFD_ADDRESS": f"unix:{c.socket}", "HOME": "/"}
        for verb in ("report", "cancel", "status"):
            run = subprocess.run([BIN / "perfctl", verb, profile, "--json"], capture_output=True, text=True,
                                 user="nobody", timeout=30, env=env)
            assert run.returncode in (3, 4), (verb, run)


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_rank_ends_early_is_partial(c):
    job = Job(c, steps=60000)
    pids = cluster.ranks_of("counting")
    lone = c.spawn("lone", [PUPPETS / "counting", 20000000, 60000], env={"OMP_NUM_THREADS": "1"})
    profile = c.submit("--pid", pids[0], "--pid", lone.pid, "--node", "node1", "--duration", "12s")
    c.wait_state(profile, ("SAMPLING",), 20)
    begin = cpu_seconds(lone.pid)
    cluster.wait_until(lambda: cpu_seconds(lone.pid) > begin + 1, 9, "a second of CPU time used")
    lone.kill()
    lone.wait()
    status = c.wait_over(profile, 40)
    assert status["state"] == "PARTIAL", status
    told = [n for n in status["notices"] if n["pid"] == lone.pid]
    assert len(told) == 1 and "ended" in told[0]["text"] and "its samples are kept" in told[0]["text"], status["notices"]
    run = c.perfctl("report", profile, "--json")
    assert run.returncode == 8, run
    # Of a second at 199 Hz, less what the budget governor may have taken.
    assert any(r["pid"] == lone.pid and r["samples"] > 50 for r in json.loads(run.stdout)["ranks"])
    job.checks()


def test_stripped_without_debug_information(c):
    job = Job(c, program="counting_nodebug", steps=60000)
    profile = c.submit("--command", "counting_nodebug", "--duration", "3s")
    assert c.wait_over(profile)["state"] in ("DONE", "PARTIAL")
    report = c.json("report", profile)
    assert report["loops"] and report["loops"][0]["function"].startswith("sub_"), report["loops"][:2]
    assert report["totals"]["loops"]["share"] > 0.8, report["totals"]
    job.process.terminate()


def test_binary_replaced_on_disk(c):
    program = c.dir / "moving"
    shutil.copy(PUPPETS / "counting", program)
    c.mpirun("job", 1, [program, 20000000, 60000])
    wait_until(lambda: cluster.ranks_of("moving"), 20, "the rank runs")
    program.unlink()
    shutil.copy("/bin/true", program)
    pid = [int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()
           and _exe(p).endswith("moving (deleted)")]
    assert pid, "the rank with the deleted binary"
    profile = c.submit("--pid", pid[0], "--node", "node1", "--duration", "3s")
    c.wait_over(profile)
    report = c.json("report", profile)
    assert report["totals"]["loops"]["share"] > 0.8, (report["totals"], report["status"]["notices"])
    assert report["loops"][0]["file"].endswith("counting.c"), report["loops"][0]


def _exe(process):
    try:
        return os.readlink(process / "exe")
    except OSError:
        return ""


@pytest.mark.small
def test_cancel_keeps_what_was_measured(c):
    Job(c, steps=200000)
    profile = c.submit("--command", "counting", "--duration", "60s")
    c.wait_state(profile, ("SAMPLING",), 20)
    time.sleep(2)
    run = c.perfctl("cancel", profile)
    assert run.returncode == 0, run
    status = c.wait_over(profile, 30)
    assert status["state"] == "CANCELLED", status
    assert c.json("report", profile)["loops"], "a cancelled profile has its loops"
    run = c.perfctl("cancel", profile, "--json")
    assert run.returncode == 1 and "over" in error_of(run)["message"], run


def test_two_profiles_of_one_rank(c):
    Job(c, steps=200000)
    first = c.submit("--command", "counting", "--duration", "20s")
    c.wait_state(first, ("SAMPLING",), 20)
    second = c.submit("--command", "counting", "--duration", "5s")
    status = c.wait_over(second, 30)
    assert status["state"] == "FAILED" and "another profile" in notices(c, second), status
    c.perfctl("cancel", first)


def test_kill_9_of_the_agent(c):
    alone = Job(c, "alone", steps=3000).checks()
    job = Job(c, "profiled", steps=250000)
    profile = c.submit("--command", "counting", "--duration", "12s")
    c.wait_state(profile, ("SAMPLING",), 20)
    time.sleep(3)
    c.agents["node1"].send_signal(signal.SIGKILL)
    c.agents["node1"].wait()
    time.sleep(1)
    c.start_agent("node1")
    status = c.wait_over(profile, 90)
    assert status["state"] == "DONE", status
    report = c.json("report", profile)
    accounting = report["accounting"]
    assert accounting["seen"] == accounting["kept"] + sum(accounting["dropped"].values()), accounting
    assert sum(r["samples"] for r in report["ranks"]) == accounting["kept"], accounting
    covered = report["nodes"][0]["covered_ns"]
    # What died with the agent is measured again: only the outage itself is not seen.
    assert 11e9 < covered < 13e9, covered
    job.checks()
    del alone


def test_kill_9_of_the_daemon(c):
    plain = Job(c, "plain", steps=3000).checks()
    job = Job(c, "profiled", steps=250000)
    profile = c.submit("--command", "counting", "--duration", "12s")
    c.wait_state(profile, ("SAMPLING",), 20)
    time.sleep(3)
    c.daemon.send_signal(signal.SIGKILL)
    c.daemon.wait()
    time.sleep(3)
    c.start_daemon()
    status = c.wait_over(profile, 90)
    assert status["state"] == "DONE", status
    report = c.json("report", profile)
    accounting = report["accounting"]
    assert sum(r["samples"] for r in report["ranks"]) == accounting["kept"], accounting
    covered = report["nodes"][0]["covered_ns"]
    assert 11.5e9 < covered < 13e9, f"{covered}: windows are missing or counted twice"
    job.checks()
    assert len(plain) == 2


@pytest.mark.small
def test_output_is_the_same_with_and_without_a_profile(c):
    plain = Job(c, "plain", steps=25000).checks()
    job = Job(c, "profiled", steps=25000)
    c.submit("--command", "counting", "--duration", "3s")
    assert job.checks() == plain


def test_agent_of_another_protocol_and_second_daemon():
    with Cluster(nodes=()) as c:
        second = subprocess.run([BIN / "perfd", "--store-dir", c.dir / "store", "--socket", c.dir / "other.sock",
                                 "--metrics-listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=30)
        assert second.returncode == 1 and str(c.daemon.pid) in second.stderr, second
        taken = subprocess.run([BIN / "perfd", "--store-dir", c.dir / "store2", "--socket", c.socket,
                                "--metrics-listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=30)
        assert taken.returncode == 1 and "perfd.sock" in taken.stderr, taken
        tcp = subprocess.run([BIN / "perfd", "--store-dir", c.dir / "store3", "--socket", c.dir / "t.sock",
                              "--listen-tcp", "127.0.0.1:0"], capture_output=True, text=True, timeout=30)
        assert tcp.returncode != 0 and "make-certs.sh" in tcp.stderr, tcp


def test_exec_runs_a_program_under_ones_own_agent():
    with Cluster(nodes=()) as c:
        agent = c.start_agent("mine", flags=["--user-mode", "exec", "--", str(PUPPETS / "counting"), "30000", "60000"],
                              env={"OMP_NUM_THREADS": "1"})
        c.wait_connected(1)
        profile = c.submit("--command", "counting", "--duration", "2s")
        assert c.wait_over(profile)["state"] in ("DONE", "PARTIAL")
        assert c.json("report", profile)["loops"]
        assert agent.wait(60) == 0
        assert "check" in c.log("agent-mine")


if __name__ == "__main__":
    cluster.pytest_file(__file__)
