#!/usr/bin/env python3
"""Packaged MPI programs under variants: how much of their hot innermost loop time gets a verdict, and what stops the rest.

  real_programs.py [hpcc|lammps ...] [--seconds S] [--overhead P%] [--rows] [--json FILE]

Hot: innermost loops outside MPI's runtime with at least 1 % of the job's time. One JSON line per program; --rows prints a
line per hot loop as well. A verdict counts where the loop took half to twice its live time in the shadow. Each program
verifies itself: hpcc by its own residual checks, LAMMPS by the thermodynamic output of a run without profiler.
"""
import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
import cluster  # noqa: E402
from cluster import Cluster  # noqa: E402
from hpcc_test import write_input  # noqa: E402

HOT = 0.01

LENNARD_JONES = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 20 0 20 0 20
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 50
run {steps}
"""


class Hpcc:
    command = "hpcc"

    def prepare(self, folder, seconds):
        write_input(folder, size=8000)
        return []

    def await_start(self, folder):
        """Linpack, the last and longest part; the others take a few seconds each."""
        output = folder / "hpccoutf.txt"
        cluster.wait_until(lambda: output.exists() and "Begin of HPL" in output.read_text(), 600, "Linpack runs", 0.5)

    def verify(self, c, folder):
        text = (folder / "hpccoutf.txt").read_text()
        assert "Success=1" in text, text[-1000:]
        return "Success=1"


class Lammps:
    command = "lmp"

    def await_start(self, folder):
        time.sleep(1)

    def prepare(self, folder, seconds):
        self.steps = 50 * max(4, round(seconds * self.steps_per_second(folder) / 50))
        (folder / "in.lj").write_text(LENNARD_JONES.format(steps=self.steps))
        return ["-in", str(folder / "in.lj"), "-log", "none"]

    def run_plain(self, folder, steps):
        (folder / "plain.lj").write_text(LENNARD_JONES.format(steps=steps))
        root = ["--allow-run-as-root"]
        return subprocess.run(["mpirun", *root, "--oversubscribe", "--bind-to", "none", "-n", "2", self.command, "-in",
                               str(folder / "plain.lj"), "-log", "none"], capture_output=True, text=True, timeout=900,
                              stdin=subprocess.DEVNULL, env={**cluster.os.environ, "OMP_NUM_THREADS": "1"}).stdout

    def steps_per_second(self, folder):
        return float(re.search(r"([\d.]+) timesteps/s", self.run_plain(folder, 200)).group(1))

    @staticmethod
    def thermo(text):
        return [line for line in text.splitlines() if re.fullmatch(r"\s*\d+(\s+-?[\d.e+-]+){5}\s*", line)]

    def verify(self, c, folder):
        seen, plain = self.thermo(c.log("job")), self.thermo(self.run_plain(folder, self.steps))
        assert plain and seen == plain, f"thermodynamic output differs from a run without profiler: {seen[-1:]} {plain[-1:]}"
        return f"{len(seen)} lines of thermodynamic output equal"


def reason_of(verdict):
    """What stopped a loop, without the numbers and addresses that would make every reason different."""
    reasons = [r["reason"] for r in verdict["refusals"]] + [f"open: {', '.join(verdict['open'])}"]
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "N", reasons[0] if verdict["state"] == "refused" or not verdict["open"]
                  else reasons[-1])


def judge(report):
    """Rows of the hot loops, and the share of the job's time by what became of them ("verdict", or the reason)."""
    runtimes = {r["module_id"] for r in report["waiting"]}
    verdicts = {v["loop_id"]: v for v in report["verdicts"]}
    rows, reasons = [], collections.Counter()
    for row in report["loops"]:
        if not row["loop"]["innermost"] or row["module_id"] in runtimes or row["share"] < HOT:
            continue
        verdict = verdicts.get(row["id"])
        bound = verdict["bound"] if verdict is not None else "unknown"
        weaker = bound == "not_bound_beyond_L1"  # by DL1 alone: no full verdict (docs/adr/0008)
        fidelity = verdict["fidelity"]["value"] if verdict is not None else 0
        unlike = bound != "unknown" and not 0.5 <= fidelity <= 2
        valid = bound != "unknown" and not weaker and not unlike
        reason = ("verdict" if valid else "not bound beyond L1, no full verdict" if weaker
                  else "less than half or more than twice its live time" if unlike
                  else "not among the loops chosen" if verdict is None else reason_of(verdict))
        reasons[reason] += row["share"]
        rows.append({"id": row["id"][:8], "function": row["function"], "share": round(row["share"], 4),
                     "bound": verdict and verdict["bound"], "reason": reason, "fidelity": round(fidelity, 2),
                     "saturations": {v["variant"]: round(v["saturation"]["value"], 2) for v in verdict["variants"]}
                     if verdict else {}, "remarks": verdict["remarks"] if verdict else []})
    return rows, reasons


def measure(program, seconds, overhead):
    with Cluster() as c:
        folder = c.dir / "work"
        folder.mkdir()
        arguments = program.prepare(folder, seconds + 5)
        job = c.mpirun("job", 2, [shutil.which(program.command), *arguments], launcher=["-wdir", str(folder)])
        cluster.wait_until(lambda: len(cluster.ranks_of(program.command)) == 2, 20, "two ranks run")
        program.await_start(folder)
        profile = c.submit("--command", program.command, "--duration", f"{seconds}s", "--variants", "LS,FP,DL1", "--overhead",
                           overhead)
        c.wait_over(profile, seconds + 120)
        report = c.json("report", profile)
        table = c.perfctl("report", profile).stdout
        assert job.wait(900) == 0, c.log("job")
        verified = program.verify(c, folder)
    return report, table, verified


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    programs = {"hpcc": Hpcc, "lammps": Lammps}
    parser.add_argument("programs", nargs="*", default=[])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--overhead", default="2%")
    parser.add_argument("--rows", action="store_true", help="the report and a line per hot loop as well")
    parser.add_argument("--json", type=pathlib.Path, help="keep the whole report of the last program here")
    options = parser.parse_args()
    for name in options.programs or programs:
        program = programs[name]()
        if shutil.which(program.command) is None:
            print(f"SKIPPED: {program.command} is not installed")
            continue
        report, table, verified = measure(program, options.seconds, options.overhead)
        rows, reasons = judge(report)
        if options.rows:
            print(table)
            for row in rows:
                print(json.dumps(row))
        total = sum(reasons.values())
        print(json.dumps({"program": name, "state": report["status"]["state"], "hot_loops": len(rows),
                          "hot_share": round(total, 4),
                          "with_verdict": round(reasons["verdict"] / total, 4) if total else None,
                          "rest": {k: round(v / total, 4) for k, v in reasons.most_common() if k != "verdict"},
                          "verified": verified}), flush=True)
        if options.json:
            options.json.write_text(json.dumps(report))


if __name__ == "__main__":
    main()
