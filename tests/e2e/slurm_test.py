#!/usr/bin/env python3
"""The scheduler hook in a real Slurm: every third of thirty MPI jobs is profiled, all of them end as they would have ended,
and so they do while perfd is stopped or hangs; the options of the SPANK plugin; what Prometheus and Slurm show of it."""
import contextlib
import json
import os
import re
import subprocess
import time

import pytest

import cluster
import slurm_cluster
from cluster import wait_until
from dashboards_test import check_dashboards, check_rules, NEED_A_PMU, Prometheus
from slurm_cluster import SlurmCluster

# How long a Prolog may take, even while perfd does not answer: the --timeout that is shipped, some slack, what it takes at most,
# meanwhile, to start the same programs for nothing, and the time in which there was no CPU for them.
TIMEOUT_SECONDS, SLACK_SECONDS = 0.3, 0.1
OVER = ("DONE", "PARTIAL", "FAILED", "CANCELLED")
CODES = {4: 3, 9: 1, 15: 42, 22: 7}  # of thirty jobs, these end with a code of their own

POLICY = """apiVersion: perfd/v1
kind: Policy
every: {every}
seed: 0
quota: {{ active: 10, per_day: 1000 }}
users: {{ opt_in: true, opt_out: true }}
preset: default
presets:
  default: {{ duration: 2s, variants: {{ set: [] }} }}
  deep: {{ duration: 5m, variants: {{ set: [] }} }}
  measured: {{ duration: 8s, budget: {{ overhead: 30% }}, variants: {{ set: [LS, FP, DL1, NO_DIV] }} }}
rules:
  - match: {{ partition: [never] }}
    never: true
  - match: {{ partition: [asked] }}
    every: 0
"""

MISSING = slurm_cluster.missing()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


def launcher(number):
    """Half of the jobs by srun, which starts the ranks itself, half by mpirun inside the batch script."""
    return "srun" if number % 2 == 0 else "mpirun --bind-to none --oversubscribe"


def submit_thirty(c, seconds):
    """{job: its number}"""
    jobs = {}
    for number in range(30):
        job, said = c.sbatch(f"{launcher(number)} {c.dir}/small_job {seconds} {CODES.get(number, 0)}")
        assert "perfd" not in said and "error" not in said, said
        jobs[job] = number
    return jobs


def check_ends(c, jobs, records):
    """Exit codes and output are the program's own, and the node takes jobs as before."""
    for job, number in jobs.items():
        code = CODES.get(number, 0)
        want = ("FAILED" if code else "COMPLETED", f"{code}:0")
        found = (records[job]["JobState"], records[job]["ExitCode"])
        assert found == want, f"job {job}: {found}, not {want}\n{c.output(job)}"
        assert records[job].get("Restarts", "0") == "0", records[job]
    sums = {re.search(r"ranks 2 sum \S+", c.output(job)).group(0) for job in jobs}
    assert len(sums) == 1, sums
    check_node(c)


def check_node(c):
    wait_until(lambda: c.node_state() == "IDLE", 30, f"the node is idle and not drained: {c.node_state()}")


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def check_calls(c, jobs, what, bounded=False):
    """One Prolog and one Epilog for each job, all of them ended with 0; their times are printed."""
    for name in ("prolog", "epilog"):
        calls = [call for call in c.calls(name) if call.job in jobs]
        assert sorted(call.job for call in calls) == sorted(jobs), (name, calls)
        assert {call.code for call in calls} == {0}, (name, calls)
        times, starts = [call.seconds for call in calls], [call.start_seconds for call in calls]
        print(f"   {name}, {what}: {len(times)} calls, p50 {percentile(times, 0.5) * 1e3:.0f} ms, "
              f"p99 {percentile(times, 0.99) * 1e3:.0f} ms, longest {max(times) * 1e3:.0f} ms; of these a mere start "
              f"p50 {percentile(starts, 0.5) * 1e3:.0f} ms, longest {max(starts) * 1e3:.0f} ms; for want of a CPU at most "
              f"{max(call.starved_seconds for call in calls) * 1e3:.0f} ms; the timeout that is shipped: "
              f"{TIMEOUT_SECONDS * 1e3:.0f} ms{'' if bounded else ', not compared with it'}", flush=True)
        most = TIMEOUT_SECONDS + SLACK_SECONDS + max(starts)
        late = [call for call in calls if call.seconds > most + call.starved_seconds]
        assert not bounded or not late, (name, late, most)


def all_profiles(c):
    return c.json("list", "--limit", "1000")["profiles"]


def job_of(profile):
    return int(re.search(r"slurm_job: (\d+)", profile["spec"]).group(1))


def profiles_of(c, job):
    return [profile for profile in all_profiles(c) if job_of(profile) == job]


def profiles(c):
    """{Slurm job: its profile}; no job has two."""
    found = {}
    for profile in all_profiles(c):
        job = job_of(profile)
        assert job not in found, (job, found[job]["id"], profile["id"])
        found[job] = profile
    return found


def wait_profiles(c, seconds=60):
    """All of them, once they are over."""
    def over():
        found = profiles(c)
        return found if all(p["state"] in OVER for p in found.values()) else None
    return wait_until(over, seconds, "the profiles are over", 0.5)


def check_measured(profile):
    assert profile["state"] in ("DONE", "PARTIAL"), profile
    assert profile["samples"] > 0, profile
    assert sum(node["ranks"] for node in profile["nodes"]) == 2, profile["nodes"]


def check_metrics(c, measured):
    """A real Prometheus knows the profiles by their Slurm jobs and programs, and finds what they measured."""
    prometheus = Prometheus(c, c.metrics_url().split("//")[1].split("/")[0])
    infos = wait_until(lambda: r if len(r := prometheus.query("perfd_profile_info") or []) >= len(measured) else None, 30,
                       "Prometheus has the profiles", 0.5)
    assert {int(info["metric"]["slurm_job"]) for info in infos} == set(measured), infos
    assert {info["metric"].get("command") for info in infos} == {"small_job"}, infos
    for query in ("perfd_profile_samples_total > 0",
                  "perfd_loop_share_ratio * on(profile, loop) group_left(function) perfd_loop_info"):
        found = {sample["metric"]["profile"] for sample in prometheus.query(query)}
        assert found == {profile["id"] for profile in measured.values()}, (query, found)
    return prometheus


def check_panels(c, prometheus):
    """Every panel's query of every dashboard has data here, none excepted: for that a job is measured by variants too. It asks
    for that, in a partition where no job is chosen, and so changes no count."""
    for _ in range(3):  # on a busy host no variant may come about in time
        profile = measured_job(c, prometheus)
        gains = 'cluster_command_loop:perfd_loop_gain_ratio:max{command="slow_rank"}'  # its program is known now that it is over
        with contextlib.suppress(AssertionError):
            wait_until(lambda: prometheus.query(gains), 20, "the recordings of it")
            break
    check_dashboards(prometheus, profile, slurm_cluster.USER, "slow_rank", without=NEED_A_PMU)
    check_rules(prometheus)


def measured_job(c, prometheus):
    """The profile of a job whose loops are altered."""
    job, _ = c.sbatch(f"srun {c.dir}/slow_rank 60 1", "--partition=asked", "--perfd=measured")
    profile = wait_until(lambda: (profiles_of(c, job) or [None])[0], 30, "the job has a profile", 0.3)["id"]
    status = c.wait_over(profile, 60)
    assert status["state"] in ("DONE", "PARTIAL"), status
    c.slurm("scancel", job)
    c.wait_jobs([job], 60)
    wait_until(lambda: prometheus.query(f'perfd_profile_missing_ratio{{profile="{profile}"}}'), 60, "its outcome")
    return profile


def check_decisions(c, measured, jobs):
    """Each job was counted once, and what the hook says of it is what happened to it."""
    overview = c.json("hook", "list", "--limit", "1000")
    decided = {int(record["job"]): record for record in overview["jobs"]}
    assert len(overview["jobs"]) == len(decided) == len(jobs) and set(decided) == set(jobs), overview
    assert sorted(record["number"] for record in decided.values()) == list(range(1, len(jobs) + 1)), overview
    for job, record in decided.items():
        want = ("profile", measured[job]["id"]) if job in measured else ("not_chosen", None)
        assert (record["decision"], record.get("profile") or None) == want, record
        assert record["number"] % 3 == 0 or job not in measured, record


def test_every_third_of_thirty_jobs_is_profiled():
    with SlurmCluster(POLICY.format(every=3)) as c:
        begin = time.monotonic()
        jobs = submit_thirty(c, 8)
        records = c.wait_jobs(jobs, 150)
        print(f"   thirty jobs in {time.monotonic() - begin:.0f} s", flush=True)
        check_ends(c, jobs, records)
        check_calls(c, jobs, "perfd answers")  # which waits for 10 s, so that all are counted on any machine
        measured = wait_profiles(c)
        assert len(measured) == 10 and set(measured) <= set(jobs), sorted(measured)
        waits = sorted(profile["submit_to_first_sample_ns"] / 1e9 for profile in measured.values())
        print(f"   from Prolog to the first sample: {waits[0]:.1f} to {waits[-1]:.1f} s", flush=True)
        for profile in measured.values():
            check_measured(profile)
            assert profile["requester"]["name"] == slurm_cluster.USER, profile["requester"]
        check_decisions(c, measured, jobs)
        check_panels(c, check_metrics(c, measured))


@pytest.mark.small
def test_users_ask_and_refuse():
    with SlurmCluster(POLICY.format(every=1)) as c:
        for tool in ("sbatch", "srun", "salloc"):
            run = c.slurm(tool, "--help")
            assert "--perfd=[preset]" in run.stdout and "--no-perfd" in run.stdout, run
            assert "onflict" not in run.stderr, run.stderr
        work = f"srun {c.dir}/small_job 10"
        plain, _ = c.sbatch(work)                                            # every: 1
        refused, _ = c.sbatch(work, "--no-perfd")
        other_name, _ = c.sbatch(work, "--no-profile")
        asked, _ = c.sbatch(work, "--partition=asked", "--perfd")
        deep, _ = c.sbatch(work, "--partition=asked", "--perfd=deep")
        not_asked, _ = c.sbatch(work, "--partition=asked")
        never, _ = c.sbatch(work, "--partition=never", "--perfd")
        both, said = c.sbatch(work, "--perfd=deep", "--no-perfd")
        assert "not profiled" in said, said
        bad, said = c.sbatch(work, "--partition=asked", "--perfd=two words")
        assert "ignored" in said, said
        unknown, _ = c.sbatch(work, "--partition=asked", "--perfd=unheard-of")  # as --perfd: no way to refuse
        late, _ = c.sbatch(f"srun --perfd {c.dir}/small_job 1", "--partition=asked")
        alone = c.slurm("srun", "--ntasks=2", "--partition=asked", "--perfd", c.dir / "small_job", 10)
        assert alone.returncode == 0 and "ranks 2 sum" in alone.stdout, alone
        inside = c.slurm("salloc", "--ntasks=2", "--partition=asked", "--perfd=deep", "srun", c.dir / "small_job", 10, 5)
        assert inside.returncode == 5, inside

        jobs = c.jobs()
        c.wait_jobs(jobs, 120)
        by_srun, by_salloc = sorted(jobs)[-2:]
        yes = {plain, asked, deep, unknown, by_srun, by_salloc}
        measured = wait_profiles(c)
        assert set(measured) == yes, (sorted(measured), sorted(yes))
        reasons = {record["job"]: record["reason"] for record in c.json("hook", "list")["jobs"]}
        assert "'unheard-of', which is none of deep, default, measured: 'default' is taken" in reasons[str(unknown)], reasons
        for job in yes:
            check_measured(measured[job])
        for job in (deep, by_salloc):
            assert "duration: 5m" in measured[job]["spec"], measured[job]["spec"]  # and it ended with its job
        assert "no effect on a step" in c.output(late), c.output(late)
        assert "no effect" not in c.output(asked) + inside.stderr, inside.stderr
        check_calls(c, jobs, "options")
        for job, name, value in ((asked, "SPANK_PERFD_PROFILE", "default"), (deep, "SPANK_PERFD_PROFILE", "deep"),
                                 (refused, "SPANK_PERFD_NO_PROFILE", "1"), (both, "SPANK_PERFD_NO_PROFILE", "1")):
            for hook in ("prolog", "epilog"):
                assert c.hook_environment(hook, job).get(name) == value, (hook, c.hook_environment(hook, job))
        for job in (plain, not_asked, bad):
            assert not any("PERFD" in name for name in c.hook_environment("prolog", job)), c.hook_environment("prolog", job)
        assert "SPANK_PERFD_PROFILE" not in c.hook_environment("prolog", both)
        check_node(c)
        assert {never, other_name}.isdisjoint(measured)


def write_comments(c):
    return subprocess.run([slurm_cluster.ROOT / "deploy/slurm/admin_comment.py", "--state", c.dir / "written.json", "--perfctl",
                           cluster.BIN / "perfctl", "--address", f"unix:{c.socket}"],
                          env={**os.environ, **c.environment}, capture_output=True, text=True, timeout=120)


@pytest.mark.small
def test_the_summary_goes_into_slurms_record():
    """Of a job that still runs: this Slurm has no accounting database, and slurmctld changes no job that is over."""
    with SlurmCluster(POLICY.format(every=1)) as c:
        job, _ = c.sbatch(f"srun {c.dir}/small_job 60")
        profile = wait_until(lambda: (profiles_of(c, job) or [None])[0], 30, "the job has a profile")["id"]
        c.wait_over(profile, 60)
        by_hand = c.submit("--slurm-job", job, "--duration", "2s")  # anybody may name a job: that is no summary of it
        c.wait_over(by_hand, 30)
        run = write_comments(c)
        assert run.returncode == 0, run
        assert json.loads((c.dir / "written.json").read_text()) == [profile]
        record = c.slurm("scontrol", "show", "job", job, "-o").stdout
        comment = re.search(r"AdminComment=(.*?) \w+=", record).group(1)
        assert comment.startswith(f"perfd {profile}"), record
        print(f"   {comment}", flush=True)
        c.slurm("scancel", job)
        c.wait_jobs([job], 60)
        assert write_comments(c).returncode == 0  # it is written once: now that the job is over it would fail
        (c.dir / "written.json").unlink()
        run = write_comments(c)
        assert run.returncode == 1 and "already finished" in run.stderr, run


def test_cancelled_requeued_and_repeated():
    with SlurmCluster(POLICY.format(every=1).replace("preset: default", "preset: deep")) as c:
        work = f"srun {c.dir}/small_job"
        given_up, _ = c.sbatch(f"{work} 25")
        killed, _ = c.sbatch(f"{work} 60")
        again, _ = c.sbatch(f"{work} 20", "--requeue")
        later, _ = c.sbatch(f"{work} 1", "--begin=now+1hour")
        never_ran, _ = c.sbatch(f"{work} 1", "--hold")
        wait_until(lambda: sum(profiles_of(c, job) != [] and profiles_of(c, job)[0]["samples"] > 0
                               for job in (given_up, killed, again)) == 3, 60, "three jobs are measured", 0.3)

        # Its user ends the profile; the job goes on.
        run = c.slurm(cluster.BIN / "perfctl", "--address", f"unix:{c.socket}", "cancel", profiles_of(c, given_up)[0]["id"])
        assert run.returncode == 0, run
        for command in (("scancel", killed), ("scancel", never_ran), ("scancel", later), ("scontrol", "requeue", again)):
            run = c.slurm(*command)
            assert run.returncode == 0, run
        # Prolog once more, by hand, as slurmd may after a restart: the same answer, no second profile.
        repeated = c.hook_environment("prolog", killed)
        run = subprocess.run([c.dir / "hooks/prolog.sh"], env=repeated, capture_output=True, text=True, timeout=10)
        assert run.returncode == 0, run
        # A job that perfd never heard of, and one without a number.
        for job in ("999999", ""):
            run = subprocess.run([c.dir / "hooks/epilog.sh"], env={**repeated, "SLURM_JOB_ID": job}, capture_output=True,
                                 text=True, timeout=10)
            assert run.returncode == 0 and not run.stdout, run

        # A job that was requeued waits two minutes (slurmctld's own rule): let it go as soon as slurmd takes it. That does not
        # launch a job in the second in which it was killed ("already killed, do not launch": credentials bear whole seconds).
        wait_until(lambda: c.jobs()[again]["JobState"] == "PENDING", 30, "the requeued job waits", 0.3)
        wait_until(lambda: again in c.called("epilog"), 30, "its first run is over")
        time.sleep(2)
        run = c.slurm("scontrol", "update", f"JobId={again}", "StartTime=now", user="root")
        assert run.returncode == 0, run
        records = c.wait_jobs([given_up, killed, again], 150)
        assert records[given_up]["ExitCode"] == "0:0" and "ranks 2 sum" in c.output(given_up), records[given_up]
        assert records[killed]["JobState"] == "CANCELLED", records[killed]
        assert records[again]["ExitCode"] == "0:0" and records[again]["Restarts"] == "1", records[again]
        wait_until(lambda: all(p["state"] in OVER for p in all_profiles(c)), 60, "the profiles are over", 0.3)
        assert len(profiles_of(c, killed)) == 1, profiles_of(c, killed)
        assert [p["state"] for p in profiles_of(c, given_up)] == ["CANCELLED"], profiles_of(c, given_up)
        # Two runs of it; but slurmd may leave out the Prolog of a run that comes back to its node at once.
        calls = (c.dir / "hooks/prolog.times").read_text().splitlines()
        prologs = sum(line.split()[0] == str(again) for line in calls)
        assert len(profiles_of(c, again)) == prologs, (profiles_of(c, again), calls)
        assert len(all_profiles(c)) == 2 + prologs, [(p["id"], p["spec"]) for p in all_profiles(c)]
        check_node(c)


if __name__ == "__main__":
    cluster.pytest_file(__file__)
