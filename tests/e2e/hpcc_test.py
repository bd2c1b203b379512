#!/usr/bin/env python3
"""An unmodified program from Debian, hpcc, under a profile: its samples land in functions and loops, and it verifies itself,
also while its loops are altered."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import cluster
from cluster import Cluster

HPCC = shutil.which("hpcc")

pytestmark = pytest.mark.skipif(HPCC is None, reason="hpcc is not installed")


def write_input(folder, size=4200):
    """HPL on a 1 x 2 grid, small enough for a minute on two cores; hpcc runs its other tests as well."""
    lines = f"""HPLinpack benchmark input file
perfd test
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{size}         Ns
1            # of NBs
80           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
0            Number of additional problem sizes for PTRANS
1200 10000 30000        values of N
0            number of additional blocking sizes for PTRANS
40 9 8 13 13 20 16 32 64        values of NB
"""
    (folder / "hpccinf.txt").write_text(lines)


def share_in(report, predicate):
    rows = report["loops"] + report["waiting"] + report["functions"]
    return sum(r["samples"] for r in rows if predicate(r))


def check_verified(output):
    """By hpcc's own words: it has come to its end, and no residual of its tests is too large."""
    cluster.promised("Success=1" in output, output[-2000:])
    failed = [int(n) for n in re.findall(r"(\d+) tests completed and failed residual checks", output)]
    cluster.promised(failed and not any(failed), (failed, output[-2000:]))


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def alter_linpack(c, name, output):
    """The report of a second profile, of hpcc's last and longest part, whose loops are altered while it computes."""
    cluster.wait_until(lambda: "Begin of HPL" in output.read_text(), 300, "Linpack begins", 0.1)
    # First it makes its matrix; then it multiplies, for half a minute of CPU time or so.
    begin = {pid: cpu_seconds(pid) for pid in cluster.ranks_of(name)}
    cluster.wait_until(lambda: all(cpu_seconds(pid) > seconds + 1.5 for pid, seconds in begin.items()), 60, "it multiplies", 0.1)

    def profile():
        made = c.submit("--command", name, "--duration", "10s", "--variants", "LS,FP,DL1", "--overhead", "10%")
        c.wait_over(made, 60)
        return c.json("report", made)
    return cluster.profile_again(profile, lambda report: cluster.shadows_of(report) > 0 or not cluster.ranks_of(name))


class Measured:
    """A run of hpcc from its beginning to its end: its report, and that of Linpack while its loops are altered."""

    def __init__(self, program, alter=False):
        self.name = pathlib.Path(program).name
        with Cluster() as c:
            work = c.dir / "work"
            work.mkdir()
            write_input(work, 6000 if alter else 4200)  # Linpack goes on for as long as two profiles take
            job = c.mpirun("job", 2, [program], launcher=["-wdir", str(work)])
            cluster.wait_until(lambda: len(cluster.ranks_of(self.name)) == 2, 20, "two ranks run")
            profile = c.submit("--command", self.name, "--duration", "15s")
            c.wait_over(profile, 120)
            self.report = c.json("report", profile)
            output = work / "hpccoutf.txt"
            self.altered = alter_linpack(c, self.name, output) if alter else None
            cluster.ended_well(job, 400, lambda: c.log("job"))
            check_verified(output.read_text())


@pytest.fixture(scope="module")
def packaged():
    return Measured(HPCC, alter=True)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Without any symbols."""
    copy = tmp_path_factory.mktemp("hpcc") / "hpcc_bare"
    subprocess.run(["strip", "--strip-all", "-R", ".comment", "-o", copy, HPCC], check=True)
    return Measured(copy)


@pytest.mark.small
def test_it_verifies_itself_while_copies_of_its_loops_run_in_shadows(packaged):
    verdicts = packaged.altered["verdicts"]
    shadows = sum(v["cost"]["shadows"] for v in verdicts)
    print(f"   {shadows} shadows; " + ", ".join(f"{v['state']} {v['bound']} {100 * v['share']:.0f} %" for v in verdicts))
    assert shadows > 0, (verdicts, packaged.altered["status"]["notices"])


@pytest.mark.only_calm
def test_copies_of_its_loops_are_timed(packaged):
    runs = sum(v["valid_runs"] for verdict in packaged.altered["verdicts"] for v in verdict["variants"]
               if v["variant"] in ("LS", "FP", "DL1"))
    assert runs > 0, (packaged.altered["verdicts"], packaged.altered["status"]["notices"])


def check_shares(measured):
    totals = measured.report["totals"]
    user = sum(totals[k]["samples"] for k in ("loops", "outside_loops", "libraries", "unknown"))
    in_function = user - totals["unknown"]["samples"]
    assert user > 1000, totals
    print(f"   {measured.name}: {user} user samples, {in_function / user:.4f} in a function")
    assert in_function / user > 0.95, totals
    whole = share_in_loops(measured.report, set())
    computing = share_in_loops(measured.report, {r["module_id"] for r in measured.report["waiting"]})
    print(f"   {measured.name}: {whole:.4f} of the samples in functions with loops are in a loop; {computing:.4f} outside runtimes")
    # Ranks that lack a CPU mostly wait, in the polling functions of MPI rather than in loops.
    assert computing > 0.80 and whole > 0.80


@pytest.mark.only_calm
def test_its_samples_are_in_loops_of_functions(packaged):
    check_shares(packaged)


@pytest.mark.only_calm
def test_its_samples_are_in_loops_of_functions_without_any_symbols(bare):
    check_shares(bare)


def share_in_loops(report, left_out):
    """Of the samples in functions that contain loops, those in a loop; without the modules left out."""
    rows = [r for r in report["loops"] + report["waiting"] if r["module_id"] not in left_out]
    with_loops = {(r["module_id"], r["function"]) for r in rows}
    inside = sum(r["samples"] for r in rows)
    beside = share_in(report, lambda r: r["loop"] is None and (r["module_id"], r["function"]) in with_loops)
    return inside / (inside + beside)


if __name__ == "__main__":
    cluster.pytest_file(__file__)
