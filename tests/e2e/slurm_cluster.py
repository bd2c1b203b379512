"""A real Slurm of one node for a test: munged, slurmctld and slurmd in a private folder on free ports, with our Prolog,
Epilog and SPANK plugin as deploy/slurm ships them. Everything it starts it also ends, jobs and step daemons included."""
import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time
import typing

from cluster import BIN, BUILD, Cluster, PUPPETS, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = BUILD / "lib/slurm/spank_perfd.so"
USER = "nobody"  # who submits
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "PREEMPTED")


def missing():
    """Why this machine cannot run Slurm for a test; None when it can."""
    if os.geteuid() != 0:
        return "not root: slurmd starts jobs as other users"
    for tool in ("munged", "slurmctld", "slurmd", "sbatch", "srun", "mpirun"):
        if shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
            return f"{tool} is not installed (deploy/packages.txt)"
    if not PLUGIN.exists():
        return f"{PLUGIN.name} is not built: libslurm-dev is missing (deploy/packages.txt)"
    try:
        pwd.getpwnam("munge")
        socket.gethostbyname(socket.gethostname())
    except (KeyError, OSError) as error:
        return str(error)
    return None


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


SLURM_CONF = """ClusterName=test
SlurmctldHost={node}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={dir}/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={dir}/slurmctld
SlurmdSpoolDir={dir}/slurmd
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
SlurmctldDebug=info
SlurmdDebug=verbose
SlurmctldTimeout=60
SlurmdTimeout=60
InactiveLimit=0
MinJobAge=1200
KillWait=2
ReturnToService=0
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault={mpi}
PropagateResourceLimits=NONE
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
PlugStackConfig={dir}/plugstack.conf
Prolog={dir}/hooks/timed_prolog.sh
Epilog={dir}/hooks/timed_epilog.sh
PrologEpilogTimeout=20
NodeName={node} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes={node} Default=YES MaxTime=5 State=UP
PartitionName=asked Nodes={node} MaxTime=5 State=UP
PartitionName=never Nodes={node} MaxTime=5 State=UP
"""

# What Slurm calls: our script, with its beginning, end and exit code on a line, and after it the same script with a perfctl
# that only says its version: so long does starting these programs take on this machine, now. It has no PATH.
TIMED = """#!/bin/bash
/usr/bin/env -0 >{dir}/hooks/{name}.env.$SLURM_JOB_ID
waited() {{ cat /proc/pressure/cpu 2>/dev/null || echo "some total=0"; }}
before=$(waited)
begin=$EPOCHREALTIME
{dir}/hooks/{name}.sh 2>>{dir}/hooks.log
code=$?
end=$EPOCHREALTIME
after=$(waited)
again=$EPOCHREALTIME
{dir}/hooks/{name}_start.sh
started=$EPOCHREALTIME
total() {{ echo "$1" | sed -n 's/^some.*total=//p'; }}
echo "$SLURM_JOB_ID $code $begin $end $again $started $(total "$before") $(total "$after")" >>{dir}/hooks/{name}.times
exit $code
"""


class Call(typing.NamedTuple):
    """One Prolog or Epilog."""
    job: int
    code: int
    seconds: float
    start_seconds: float  # of starting the same programs for nothing, right after it
    starved_seconds: float  # while it ran, somebody on this machine was ready to run and had no CPU (pressure stall information)


class SlurmCluster(Cluster):
    """perfd with a policy and an archive, one agent, and a Slurm whose Prolog and Epilog call them."""

    def __init__(self, policy, cpus=12, patient=True):
        """`patient`: Prolog and Epilog wait for perfd as long as it takes on a busy machine, so that each job is counted;
        else with the timeouts that are shipped."""
        self.node = socket.gethostname().split(".")[0]
        super().__init__(nodes=(self.node,))
        (self.dir / "policy.yaml").write_text(policy)
        self.daemon_flags += ["--metrics-names", "--policy", self.dir / "policy.yaml", "--archive", self.dir / "archive"]
        self.conf, self.cpus, self.patient = self.dir / "slurm.conf", cpus, patient
        self.environment = {"SLURM_CONF": str(self.conf)}

    def __enter__(self):
        super().__enter__()
        try:
            self.write_hooks()
            self.start_slurm()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind, *rest):
        try:
            with contextlib.suppress(Exception):
                self.end_jobs()
        finally:
            super().__exit__(kind, *rest)
            self.end_orphans()

    def write_hooks(self):
        hooks = self.dir / "hooks"
        hooks.mkdir()
        for name in ("prolog", "epilog"):
            text = (ROOT / f"deploy/slurm/{name}.sh").read_text()
            for shipped, here in (("/usr/bin/perfctl", BIN / "perfctl"), ("unix:/run/perfd/perfd.sock", f"unix:{self.socket}")):
                assert text.count(shipped) == 1, (name, shipped)
                text = text.replace(shipped, str(here))
            if self.patient:
                assert text.count("-s KILL 1 ") == text.count("--timeout 300ms") == 1, text
                text = text.replace("-s KILL 1 ", "-s KILL 15 ").replace("--timeout 300ms", "--timeout 10s")
            (hooks / f"{name}.sh").write_text(text)
            start, count = re.subn(r" hook .*", " --version >/dev/null", text)
            assert count == 1, text
            (hooks / f"{name}_start.sh").write_text(start)
            (hooks / f"timed_{name}.sh").write_text(TIMED.format(dir=self.dir, name=name))
        for script in hooks.glob("*.sh"):
            script.chmod(0o755)
        text = (ROOT / "deploy/slurm/plugstack.conf").read_text()
        text, count = re.subn(r"(?m)^optional \S+", f"optional {PLUGIN}", text)
        assert count == 1, text
        (self.dir / "plugstack.conf").write_text(text)
        out = self.dir / "out"  # of the jobs
        out.mkdir()
        for program in ("small_job", "slow_rank"):
            shutil.copy(PUPPETS / program, self.dir / program)
        user = pwd.getpwnam(USER)
        os.chown(out, user.pw_uid, user.pw_gid)

    def start_munge(self):
        user, folder = pwd.getpwnam("munge"), self.dir / "munge"
        folder.mkdir()
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o400)
        for path in (folder, folder / "key"):
            os.chown(path, user.pw_uid, user.pw_gid)
        self.spawn("munged", ["/usr/sbin/munged", "--foreground", f"--socket={folder}/socket", f"--key-file={folder}/key",
                              f"--pid-file={folder}/pid", f"--seed-file={folder}/seed", "--origin=127.0.0.1",
                              "--num-threads=2"],
                   user="munge", group="munge", extra_groups=[], start_new_session=True)
        wait_until((folder / "socket").exists, 20, "munged listens")

    def start_slurm(self):
        self.start_munge()
        controller_port, node_port = free_ports(2)
        pmix = any(pathlib.Path("/usr/lib").glob("*/slurm-wlm/mpi_pmix.so"))
        self.conf.write_text(SLURM_CONF.format(node=self.node, controller_port=controller_port, node_port=node_port,
                                               dir=self.dir, cpus=self.cpus, mpi="pmix" if pmix else "pmi2"))
        # By default PMIx works in /tmp, by numbers of jobs: what another Slurm left there fails the jobs of this one.
        (self.dir / "mpi.conf").write_text(f"PMIxCliTmpDirBase={self.dir}/pmix\n" if pmix else "")
        for folder in ("slurmctld", "slurmd", "pmix"):
            (self.dir / folder).mkdir()
        self.spawn("slurmctld.out", ["/usr/sbin/slurmctld", "-D", "-c", "-f", self.conf], self.environment,
                   start_new_session=True)
        self.spawn("slurmd.out", ["/usr/sbin/slurmd", "-D", "-c", "-f", self.conf], self.environment, start_new_session=True)
        wait_until(lambda: self.node_state() == "IDLE", 40, "the node is idle", 0.2)

    # Slurm's commands, as the user who submits.

    def slurm(self, *command, user=USER, timeout=60):
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, env={**os.environ, **self.environment, "HOME": "/nonexistent"},
                              user=user, group=pwd.getpwnam(user).pw_gid, extra_groups=[], cwd=self.dir / "out")

    def node_state(self):
        """For example IDLE or MIXED; with flags behind a plus: IDLE+DRAIN."""
        run = self.slurm("scontrol", "show", "node", self.node, "-o", timeout=20)
        found = re.search(r"\bState=(\S+)", run.stdout)
        return found.group(1) if found else None

    def sbatch(self, command, *options):
        """Submits; the id of the job and what sbatch wrote on standard error."""
        # Jobs of one user share Open MPI's folder below /tmp: one that ends removes it while another begins to use it.
        own = "export OMPI_MCA_orte_tmpdir_base=$(mktemp -d)"
        script = f'{own}; {command}; code=$?; rm -rf "$OMPI_MCA_orte_tmpdir_base"; exit $code'
        run = self.slurm("sbatch", "--parsable", "--ntasks=2", "--output=%j.out", *options, "--wrap", script)
        assert run.returncode == 0, run
        return int(run.stdout), run.stderr

    def sbatch_many(self, count, command, *options):
        return [self.sbatch(command, *options) for _ in range(count)]

    def jobs(self):
        """{id: {State, ExitCode ...}} of every job there was."""
        run = self.slurm("scontrol", "show", "jobs", "-o", timeout=20)
        jobs = {}
        for line in run.stdout.splitlines():
            fields = dict(re.findall(r"(\w+)=(\S*)", line))
            if "JobId" in fields:
                jobs[int(fields["JobId"])] = fields
        return jobs

    def wait_jobs(self, ids, seconds):
        """Their records, once all of them are over, Epilog included."""
        def over():
            jobs = self.jobs()
            return jobs if all(jobs.get(job, {}).get("JobState") in OVER for job in ids) else None
        jobs = wait_until(over, seconds, f"{len(ids)} jobs are over", 0.3)
        wait_until(lambda: self.called("epilog") >= set(ids), 30, "every Epilog was called")
        return {job: jobs[job] for job in ids}

    def output(self, job):
        return (self.dir / f"out/{job}.out").read_text(errors="replace")

    # What Prolog and Epilog did.

    def calls(self, name):
        """[Call] in the order in which they ended."""
        path = self.dir / f"hooks/{name}.times"
        lines = path.read_text().splitlines() if path.exists() else []
        return [Call(int(job), int(code), float(end) - float(begin), float(started) - float(again), 1e-6 * (int(after) - int(before)))
                for job, code, begin, end, again, started, before, after in map(str.split, lines)]

    def called(self, name):
        return {call.job for call in self.calls(name)}

    def hook_environment(self, name, job):
        text = (self.dir / f"hooks/{name}.env.{job}").read_text()
        return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)

    # The end.

    def end_jobs(self):
        if not self.conf.exists():
            return
        self.slurm("scancel", "--user", USER, "--signal=KILL", timeout=10)
        self.slurm("scancel", "--user", USER, timeout=10)
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not self.slurm("squeue", "-h", timeout=10).stdout.strip(), 15, "no job is left", 0.3)

    def is_mine(self, pid):
        """A step daemon or a task of a job here: they are in sessions of their own and are nobody's children."""
        folder, mine = f"/proc/{pid}", str(self.dir)
        try:
            places = [os.readlink(f"{folder}/cwd"), os.readlink(f"{folder}/exe")]
            for entry in os.listdir(f"{folder}/fd"):
                with contextlib.suppress(OSError):
                    places.append(os.readlink(f"{folder}/fd/{entry}"))
            arguments = pathlib.Path(f"{folder}/cmdline").read_bytes().decode(errors="replace")
        except OSError:
            return False
        return any(place.startswith(mine + "/") for place in places) or f"{mine}/" in arguments

    def orphans(self):
        return [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid() and self.is_mine(int(p))]

    def end_orphans(self):
        end = time.monotonic() + 10
        while (pids := self.orphans()) and time.monotonic() < end:
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
