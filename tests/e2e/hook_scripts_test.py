#!/usr/bin/env python3
"""The scripts of deploy/slurm and deploy/hooks, called as their schedulers call them, with a stand-in for perfctl: what they
ask of it, and that they end with 0, in time, when it fails, hangs or is not there."""
import pathlib
import shutil
import subprocess
import tempfile
import time

import pytest

import cluster

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
# (script, name under which it is called, arguments, environment, what perfctl is asked)
CALLS = [
    ("slurm/prolog.sh", "prolog.sh", [], {"SLURM_JOB_ID": "7"}, ["prolog"]),
    ("slurm/epilog.sh", "epilog.sh", [], {"SLURM_JOB_ID": "7"}, ["epilog"]),
    ("hooks/pbs.sh", "prologue", ["7.server", "ann", "users"], {}, ["begin", "--scheduler", "PBS", "--job", "7.server", "--user", "ann"]),
    ("hooks/pbs.sh", "prologue.parallel", ["7.server", "ann", "users"], {},
     ["begin", "--scheduler", "PBS", "--job", "7.server", "--user", "ann"]),
    ("hooks/pbs.sh", "epilogue", ["7[3].server", "ann", "users", "name", "1", "ncpus=1"], {},
     ["end", "--scheduler", "PBS", "--job", "7[3].server", "--user", "ann"]),
    ("hooks/flux.sh", "flux.sh", ["begin"], {"FLUX_JOB_ID": "f2Lg9kz", "FLUX_JOB_USERID": "1000"},
     ["begin", "--scheduler", "Flux", "--job", "f2Lg9kz", "--user", "1000"]),
    ("hooks/lsf.sh", "lsf.sh", ["begin"],
     {"LSB_JOBID": "7", "LSB_JOBINDEX": "0", "LSFUSER": "ann", "LSB_QUEUE": "short", "LSB_HOSTS": "n1 n1 n2 n1 n10"},
     ["begin", "--scheduler", "LSF", "--job", "7", "--user", "ann", "--partition", "short", "--nodes", "n1,n2,n10"]),
    ("hooks/lsf.sh", "lsf.sh", ["end"], {"LSB_JOBID": "7", "LSB_JOBINDEX": "3", "USER": "ann"},
     ["end", "--scheduler", "LSF", "--job", "7[3]", "--user", "ann"]),
]


class Place:
    """A folder with a script that calls what stands there as perfctl."""

    def __init__(self, script, name, perfctl):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="perfd-hooks-"))
        text = (DEPLOY / script).read_text()
        assert text.count("/usr/bin/perfctl") == 1, script
        self.script = self.dir / name
        self.script.write_text(text.replace("/usr/bin/perfctl", str(self.dir / "perfctl")))
        self.script.chmod(0o755)
        if perfctl:
            (self.dir / "perfctl").write_text(perfctl)
            (self.dir / "perfctl").chmod(0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir)

    def run(self, arguments, environment):
        """As Slurm does: without PATH and HOME."""
        begin = time.monotonic()
        run = subprocess.run([self.script, *arguments], env=environment, capture_output=True, text=True, timeout=30,
                             stdin=subprocess.DEVNULL, cwd="/")
        return run, time.monotonic() - begin


@pytest.mark.small
def test_each_asks_what_its_scheduler_means():
    stand_in = '#!/bin/sh\nprintf "%s\\n" "$@" >"${0%/*}/asked"\necho noise\n'
    for script, name, arguments, environment, want in CALLS:
        with Place(script, name, stand_in) as place:
            run, _ = place.run(arguments, environment)
            asked = (place.dir / "asked").read_text().splitlines()
            assert asked == ["hook", *want, "--address", "unix:/run/perfd/perfd.sock", "--timeout", "300ms"], (name, asked)
            assert run.returncode == 0 and not run.stdout, (name, run)


def test_nothing_that_perfctl_does_fails_a_job():
    for what, stand_in, least, most in (("fails", "#!/bin/sh\nexit 1\n", 0, 1), ("is not there", None, 0, 1),
                                        ("is no program", "nonsense\n", 0, 1),
                                        ("is killed", "#!/bin/sh\nkill -9 $$\n", 0, 1),
                                        ("hangs", "#!/bin/sh\ntrap '' TERM\n/bin/sleep 30\n", 0.9, 3)):
        for script, name, arguments, environment, _ in CALLS:
            with Place(script, name, stand_in) as place:
                run, seconds = place.run(arguments, environment)
                assert run.returncode == 0, (what, name, run)
                assert least <= seconds <= most, (what, name, seconds)


def test_perfd_takes_the_policy_that_is_shipped():
    with cluster.Cluster(nodes=(), daemon_flags=("--policy", DEPLOY / "slurm/policy.yaml")) as c:
        overview = c.json("hook", "list")
        assert "50" in overview["policy"] and not overview["policy_error"], overview
        for rest, want in ((["--partition", "debug"], "never"), (["--account", "benchmarking"], "unavailable"),
                           ([], "not_chosen")):
            run = c.perfctl("hook", "begin", "--job", str(len(rest) * 10 + len(want)), "--user", "0", *rest)
            assert run.returncode == 0, run
            assert c.json("hook", "list")["jobs"][0]["decision"] == want, c.json("hook", "list")


if __name__ == "__main__":
    cluster.pytest_file(__file__)
