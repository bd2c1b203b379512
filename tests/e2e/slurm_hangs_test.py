#!/usr/bin/env python3
"""How long a Prolog may hold a job up in a real Slurm, with the timeouts that are shipped: while perfd answers, is stopped, hangs.
Measured, so that nothing else may run beside it."""
import signal

import pytest

import cluster
import slurm_cluster
from cluster import wait_until
from slurm_cluster import SlurmCluster
from slurm_test import POLICY, TIMEOUT_SECONDS, check_calls, check_ends, check_node, profiles, submit_thirty

MISSING = slurm_cluster.missing()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


def test_jobs_run_while_perfd_is_stopped_or_hangs():
    with SlurmCluster(POLICY.format(every=3), patient=False) as c:
        calm = cluster.cpus_are_free()
        answered = dict(c.sbatch_many(6, f"mpirun --oversubscribe {c.dir}/small_job 0.5"))
        c.wait_jobs(answered, 60)
        check_calls(c, answered, "perfd answers", bounded=calm and cluster.cpus_are_free())
        before = set(profiles(c))

        c.daemon.send_signal(signal.SIGTERM)
        c.daemon.wait(20)
        jobs = submit_thirty(c, 0.5)
        records = c.wait_jobs(jobs, 120)
        check_ends(c, jobs, records)
        check_calls(c, jobs, "perfd is stopped", bounded=True)

        c.start_daemon()
        c.daemon.send_signal(signal.SIGSTOP)
        hung = {}
        for _ in range(6):  # one after the other: what is measured is perfd, not how many jobs this machine starts at once
            job, said = c.sbatch(f"mpirun --oversubscribe {c.dir}/small_job 0.5")
            hung[job] = said
            (record,) = c.wait_jobs([job], 60).values()
            assert record["ExitCode"] == "0:0", record
        check_calls(c, hung, "perfd hangs", bounded=True)
        assert min(call.seconds for call in c.calls("prolog") if call.job in hung) > TIMEOUT_SECONDS * 0.9  # it was waited for
        c.daemon.send_signal(signal.SIGCONT)

        # It counts again: a job that asks is profiled.
        wait_until(lambda: c.perfctl("version").returncode == 0, 20, "perfd answers again")
        c.wait_connected(1)
        (c.dir / "hooks/prolog.sh").write_text((c.dir / "hooks/prolog.sh").read_text().replace("300ms", "900ms"))
        later = dict(c.sbatch_many(1, f"mpirun --oversubscribe {c.dir}/small_job 10", "--perfd"))
        c.wait_jobs(later, 60)
        assert set(profiles(c)) - before == set(later), (sorted(profiles(c)), later)
        check_node(c)


if __name__ == "__main__":
    cluster.pytest_file(__file__)
