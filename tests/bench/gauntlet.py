#!/usr/bin/env python3
"""Real programs of Debian's, one after another: how much of their hot loop time perfd judges, how long it takes, and what it costs.

  gauntlet.py [PROGRAM ...] [--overhead P%] [--longest T] [--duration T] [--results FILE] [--again] [--text] [--json FILE]

Each runs for as long as its profile (`duration: auto`, at most --longest), then is ended, or verifies itself. One JSON line per program; with
--results it is appended there, and a program that has a line of the same commit is left out unless --again: a long run can be
stopped and goes on where it was. Judged is wall time of the hot set (80 % coverage) in loops whose bound has a name, with an interval
and a fidelity within 0.8 to 1.25. PROGRAM `list` names them.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
import cluster  # noqa: E402
from cluster import Cluster  # noqa: E402
from hpcc_test import write_input  # noqa: E402

VARIANTS = "LS,FP,DL1,NO_DIV,NO_SQRT,NO_RED,S2L,NO_STORE,CTRL"  # the default set
FIDELITY = (0.8, 1.25)
ROOT = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]


def run(*command, folder, **options):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600,
                          **options)
    assert done.returncode == 0, (command, done.returncode, done.stdout[-1000:], done.stderr[-1000:])
    return done.stdout


def compiled(compiler, name, source, folder, *flags):
    (folder / source[0]).write_text(source[1])
    run(compiler, "-O3", "-g", source[0], "-o", name, *flags, folder=folder)
    return [str(folder / name)]


class Program:
    """One process or two ranks of a program. `argv` makes its inputs in `folder`; it runs until it is ended."""
    ranks = 0  # under mpirun; 0: without
    threads = 1
    needs = ()  # programs, or files

    def argv(self, folder):
        raise NotImplementedError

    def await_start(self, c, folder):
        time.sleep(2)

    def verify(self, c, job, folder):
        """What it says of its own results; it may be ended before."""
        job.terminate()
        return "not verified"


class Hpcc(Program):
    """Linpack, the last and longest part."""
    ranks, needs = 2, ("hpcc",)

    def argv(self, folder):
        write_input(folder, size=8000)
        return ["hpcc"]

    def await_start(self, c, folder):
        output = folder / "hpccoutf.txt"
        cluster.wait_until(lambda: output.exists() and "Begin of HPL" in output.read_text(), 600, "Linpack runs", 0.5)

    def verify(self, c, job, folder):
        assert job.wait(1800) == 0, c.log("job")
        text = (folder / "hpccoutf.txt").read_text()
        assert "Success=1" in text, text[-1000:]
        return "Success=1"


class Lammps(Program):
    """Molecular dynamics; the thermodynamic output of the first steps is held against a run without profiler."""
    ranks, needs = 2, ("lmp",)
    common = """atom_style atomic
lattice fcc {lattice}
region box block 0 20 0 20 0 20
create_box 1 box
create_atoms 1 box
mass 1 {mass}
velocity all create {temperature} 87287 loop geom
{style}
neighbor {skin} bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 50
run {steps}
"""
    units, values = "lj", {"lattice": 0.8442, "mass": 1.0, "temperature": 1.44, "skin": 0.3,
                           "style": "pair_style lj/cut 2.5\npair_coeff 1 1 1.0 1.0 2.5"}

    def input(self, path, steps):
        path.write_text(f"units {self.units}\n" + self.common.format(steps=steps, **self.values))
        return ["lmp", "-in", str(path), "-log", "none"]

    def argv(self, folder):
        return self.input(folder / "in.job", 100_000_000)

    @staticmethod
    def thermo(text):
        return [line for line in text.splitlines() if re.fullmatch(r"\s*\d+(\s+-?[\d.e+-]+){5}\s*", line)]

    def verify(self, c, job, folder):
        job.terminate()
        job.wait(20)
        plain = self.thermo(run("mpirun", *ROOT, "-n", self.ranks, *self.input(folder / "in.plain", 500), folder=folder,
                                env={**os.environ, "OMP_NUM_THREADS": "1"}))
        seen = self.thermo(c.log("job"))[:len(plain)]
        assert plain and seen == plain, f"thermodynamic output differs from a run without profiler: {seen[-1:]} {plain[-1:]}"
        return f"{len(seen)} lines of thermodynamic output equal"


class LammpsMetal(Lammps):
    """Embedded atoms: splines from tables."""
    potential = "/usr/share/lammps/potentials/Cu_u3.eam"
    needs = ("lmp", potential)
    units, values = "metal", {"lattice": 3.615, "mass": 63.55, "temperature": 1600.0, "skin": 1.0,
                              "style": f"pair_style eam\npair_coeff 1 1 {potential}"}


class Gromacs(Program):
    """A box of water, one process."""
    threads, needs = 2, ("gmx", "/usr/share/gromacs/top/spc216.gro")

    def argv(self, folder):
        (folder / "topol.top").write_text('#include "oplsaa.ff/forcefield.itp"\n#include "oplsaa.ff/spce.itp"\n[ system ]\nwater\n'
                                          "[ molecules ]\n")
        common = "cutoff-scheme = Verlet\ncoulombtype = PME\nrcoulomb = 0.9\nrvdw = 0.9\n"
        (folder / "calm.mdp").write_text(f"integrator = steep\nnsteps = 50\n{common}")
        (folder / "run.mdp").write_text(f"integrator = md\nnsteps = 100000000\ndt = 0.001\n{common}tcoupl = v-rescale\ntc-grps = System\n"
                                        "tau-t = 0.5\nref-t = 300\ngen-vel = yes\nnstxout-compressed = 0\nnstlog = 1000\n")
        run("gmx", "solvate", "-cs", "spc216.gro", "-box", 5, 5, 5, "-p", "topol.top", "-o", "water.gro", folder=folder)
        for name, start in (("calm", "water.gro"), ("run", "calm.gro")):
            run("gmx", "grompp", "-f", f"{name}.mdp", "-c", start, "-p", "topol.top", "-o", f"{name}.tpr", "-maxwarn", 5, folder=folder)
            if name == "calm":
                run("gmx", "mdrun", "-deffnm", "calm", "-ntmpi", 1, "-ntomp", self.threads, folder=folder)
        return ["gmx", "mdrun", "-s", "run.tpr", "-ntmpi", "1", "-ntomp", str(self.threads), "-nb", "cpu", "-pme", "cpu", "-pin", "off"]


PETSC = r"""#include <petscksp.h>
// A Laplacian in two dimensions, solved again and again.
int main(int argc, char** argv) {
  PetscInt n = 1000, low, high;
  Mat A; Vec x, b; KSP ksp;
  PetscInitialize(&argc, &argv, NULL, NULL);
  MatCreate(PETSC_COMM_WORLD, &A);
  MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n);
  MatSetFromOptions(A);
  MatMPIAIJSetPreallocation(A, 5, NULL, 5, NULL);
  MatSeqAIJSetPreallocation(A, 5, NULL);
  MatGetOwnershipRange(A, &low, &high);
  for (PetscInt r = low; r < high; r++) {
    PetscInt i = r / n, j = r % n;
    if (i > 0) MatSetValue(A, r, r - n, -1, INSERT_VALUES);
    if (i < n - 1) MatSetValue(A, r, r + n, -1, INSERT_VALUES);
    if (j > 0) MatSetValue(A, r, r - 1, -1, INSERT_VALUES);
    if (j < n - 1) MatSetValue(A, r, r + 1, -1, INSERT_VALUES);
    MatSetValue(A, r, r, 4, INSERT_VALUES);
  }
  MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY);
  MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY);
  MatCreateVecs(A, &x, &b);
  VecSet(b, 1);
  KSPCreate(PETSC_COMM_WORLD, &ksp);
  KSPSetOperators(ksp, A, A);
  KSPSetFromOptions(ksp);
  for (;;) { VecSet(x, 0); KSPSolve(ksp, b, x); }
}
"""


class Petsc(Program):
    """Conjugate gradients with Gauss-Seidel smoothing on a matrix of a million rows."""
    ranks, needs = 2, ("mpicc", "/usr/lib/petscdir")

    def argv(self, folder):
        flags = run("pkg-config", "--cflags", "--libs", "PETSc", folder=folder).split()
        return [*compiled("mpicc", "petsc_solver", ("solver.c", PETSC), folder, *flags, "-lm"), "-ksp_type", "cg", "-pc_type", "sor",
                "-ksp_rtol", "1e-6"]


NUMPY = """import numpy as np
a = np.random.default_rng(1).random((1200, 1200))
field = np.random.default_rng(2).random((2000, 2000))
while True:
    a = a @ a
    a /= np.abs(a).max()
    for _ in range(8):
        field[1:-1, 1:-1] = 0.25 * (field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:])
    field += np.sqrt(field)
    field /= field.max()
"""


class Numpy(Program):
    """Matrix products by OpenBLAS, and whole-array arithmetic."""
    threads, needs = 2, ("/usr/lib/python3/dist-packages/numpy",)

    def argv(self, folder):
        (folder / "work.py").write_text(NUMPY)
        return ["/usr/bin/python3", str(folder / "work.py")]


class Hmmer(Program):
    """A profile hidden Markov model against random proteins."""
    needs = ("hmmsearch", "hmmbuild")

    def argv(self, folder):
        draw, letters = random.Random(1), "ACDEFGHIKLMNPQRSTVWY"
        base = [draw.choice(letters) for _ in range(300)]
        rows = ["".join(x if draw.random() < 0.7 else draw.choice(letters) for x in base) for _ in range(40)]
        (folder / "family.afa").write_text("".join(f">s{i}\n{row}\n" for i, row in enumerate(rows)))
        run("hmmbuild", "family.hmm", "family.afa", folder=folder)
        with open(folder / "base.fa", "w", encoding="ascii") as out:
            for i in range(60_000):
                out.write(f">p{i}\n{''.join(draw.choices(letters, k=350))}\n")
        script = folder / "again.sh"
        script.write_text(f"#!/bin/sh\nwhile :; do hmmsearch --cpu 0 --max -o /dev/null {folder}/family.hmm {folder}/base.fa || exit; done\n")
        script.chmod(0o755)
        return [str(script)]


class Raxml(Program):
    """The likelihood of trees of 100 random sequences."""
    needs = ("raxmlHPC",)

    def argv(self, folder):
        draw = random.Random(1)
        base = [draw.choice("ACGT") for _ in range(20_000)]
        rows = ["".join(x if draw.random() < 0.8 else draw.choice("ACGT") for x in base) for _ in range(100)]
        (folder / "in.phy").write_text(f"{len(rows)} {len(base)}\n" + "".join(f"taxon{i} {row}\n" for i, row in enumerate(rows)))
        return ["raxmlHPC", "-s", str(folder / "in.phy"), "-n", "job", "-m", "GTRGAMMA", "-p", "1", "-w", str(folder)]


EIGEN = r"""#include <Eigen/Sparse>
#include <vector>
// Conjugate gradients of Eigen's templates, over a seven-point stencil; each step asks virtual functions for the right-hand side.
struct Source { virtual ~Source() {} virtual double at(int i) const = 0; };
struct Wave : Source { double at(int i) const override { return std::sin(0.001 * i); } };
struct Flat : Source { double at(int) const override { return 1; } };
int main() {
  const int n = 90, all = n * n * n;
  std::vector<Eigen::Triplet<double>> t;
  for (int i = 0; i < all; ++i) {
    t.emplace_back(i, i, 6.1);
    for (int d : {1, n, n * n}) { if (i >= d) t.emplace_back(i, i - d, -1); if (i + d < all) t.emplace_back(i, i + d, -1); }
  }
  Eigen::SparseMatrix<double, Eigen::RowMajor> a(all, all);
  a.setFromTriplets(t.begin(), t.end());
  Eigen::ConjugateGradient<decltype(a), Eigen::Lower | Eigen::Upper> solver;
  solver.compute(a);
  Wave wave; Flat flat; const Source* sources[] = {&wave, &flat};
  for (int step = 0;; ++step) {
    Eigen::VectorXd b(all);
    for (int i = 0; i < all; ++i) b[i] = sources[(i + step) % 2]->at(i);
    Eigen::VectorXd x = solver.solve(b);
    if (x.norm() == 0) return 1;
  }
}
"""


class Eigen(Program):
    """Conjugate gradients of C++ templates, and virtual calls."""
    threads, needs = 1, ("g++", "/usr/include/eigen3")

    def argv(self, folder):
        return compiled("g++", "eigen_cg", ("cg.cc", EIGEN), folder, "-I/usr/include/eigen3")


class Povray(Program):
    """Rays and spheres: C++ with virtual calls, and floating point that branches."""
    threads, needs = 2, ("povray",)

    def argv(self, folder):
        draw = random.Random(1)
        spheres = "".join(f"sphere {{ <{draw.uniform(-4, 4):.2f}, {draw.uniform(-3, 3):.2f}, {draw.uniform(-2, 6):.2f}>, 0.4 "
                          "texture { pigment { bozo scale 0.2 } finish { reflection 0.4 phong 0.7 } } }\n" for _ in range(200))
        (folder / "scene.pov").write_text("#version 3.7;\nglobal_settings { assumed_gamma 1 }\ncamera { location <0, 0, -9> look_at 0 }\n"
                                          "light_source { <5, 8, -6> 1 area_light <2, 0, 0>, <0, 2, 0>, 8, 8 adaptive 1 }\n"
                                          "plane { y, -4 pigment { checker rgb 1 rgb 0.2 } }\n" + spheres)
        return ["povray", f"+I{folder}/scene.pov", f"+O{folder}/out.png", "-D", "+W16000", "+H12000", "+A0.05", "+R4", f"+WT{self.threads}"]


PROGRAMS = {"hpcc": Hpcc, "lammps": Lammps, "lammps_metal": LammpsMetal, "gromacs": Gromacs, "petsc": Petsc, "numpy": Numpy, "hmmer": Hmmer,
            "raxml": Raxml, "eigen": Eigen, "povray": Povray}


def is_judged(verdict):
    """A name, with an interval, from a shadow at about the program's speed."""
    if verdict["bound"] == "unknown":
        return False
    shown = [v for v in verdict["variants"] if v["variant"] in ("LS", "FP", "DL1") and v["valid_runs"]]
    intervals = any(v["saturation"]["high"] > 0 for v in shown)
    return intervals and FIDELITY[0] <= verdict["fidelity"]["value"] <= FIDELITY[1]


def reason_of(verdict):
    """What stopped a loop, without the numbers and addresses that would make every reason different."""
    if verdict is None:
        return "not among the loops chosen"
    if is_judged(verdict):
        return "judged"
    if verdict["why"]:
        return verdict["why"]
    reasons = [r["reason"] for r in verdict["refusals"]] or [verdict["state"]]
    if verdict["state"] == "open" and verdict["open"]:
        reasons = [f"open: {', '.join(verdict['open'][:3])}"]
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "N", reasons[0])[:120]


def judge(report):
    """(rows of the hot loops, their wall time by what became of them)"""
    verdicts = {v["loop_id"]: v for v in report["verdicts"]}
    rows, reasons = [], collections.Counter()
    for row in report["loops"]:
        if not row["hot"]:
            continue
        verdict, share = verdicts.get(row["id"]), row["wall_share"] + (row.get("wall_called_share") or 0)
        reasons[reason_of(verdict)] += share
        rows.append({"id": row["id"][:8], "function": row["function"][:60], "share": round(share, 4), "reason": reason_of(verdict)})
        if verdict is not None:
            rows[-1] |= {"bound": verdict["bound"], "fidelity": round(verdict["fidelity"]["value"], 2),
                         "shadows": verdict["cost"]["shadows"], "pause_ms": round(verdict["cost"]["pause_ns"] / 1e6, 1),
                         "saturations": {v["variant"]: round(v["saturation"]["value"], 2) for v in verdict["variants"] if v["valid_runs"]}}
    return rows, reasons


def measure(program, options):
    """(report, table, what the program said of itself)"""
    with Cluster() as c:
        folder = c.dir / "work"
        folder.mkdir()
        argv = program.argv(folder)
        launcher = ["mpirun", *ROOT, "-n", str(program.ranks)] if program.ranks else []
        # A session of its own: what it starts is ended with it.
        job = c.spawn("job", [*launcher, *argv], start_new_session=True, env={"OMP_NUM_THREADS": str(program.threads), "OPENBLAS_NUM_THREADS": str(program.threads)},
                      cwd=folder)
        try:
            return profile_of(c, program, job, folder, options)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)


def profile_of(c, program, job, folder, options):
    program.await_start(c, folder)
    length = ["--duration", options.duration] if options.duration else ["--max-duration", options.longest]
    profile = c.submit("--pid", job.pid, "--tree", *length, "--variants", VARIANTS, "--overhead", options.overhead)
    c.wait_over(profile, 600 + seconds_of(length[1]))
    report, table = c.json("report", profile), c.perfctl("report", profile).stdout
    return report, table, program.verify(c, job, folder)


def seconds_of(text):
    return sum(int(number) * {"s": 1, "m": 60, "h": 3600}[unit] for number, unit in re.findall(r"(\d+)([smh])", text))


def row_of(name, commit, options, report, verified):
    rows, reasons = judge(report)
    total = sum(reasons.values())
    judged = [row for row in rows if row["reason"] == "judged"]
    pauses = sum(row.get("pause_ms", 0) for row in rows)
    status, wall = report["status"], report["added_wall"]
    return {"program": name, "commit": commit, "overhead": options.overhead, "length": options.duration or options.longest, "state": status["state"], "end": status["end"],
            "used_s": round(status["used_ns"] / 1e9, 1), "hot_loops": len(rows), "hot_share": round(total, 4),
            "with_verdict": round(reasons["judged"] / total, 4) if total else None,
            "rest": {key: round(value / total, 4) for key, value in reasons.most_common() if key != "judged"},
            "pause_ms_per_verdict": round(pauses / len(judged), 1) if judged else None,
            "added_wall": wall, "loops": rows, "verified": verified}


def missing(program):
    return [need for need in program.needs if not (pathlib.Path(need).exists() if need.startswith("/") else shutil.which(need))]


def done_before(results, commit, options):
    if results is None or options.again or not results.exists():
        return set()
    return {row["program"] for row in map(json.loads, results.read_text().splitlines())
            if (row["commit"], row["overhead"], row["length"]) == (commit, options.overhead, options.duration or options.longest)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", default=[], metavar="PROGRAM")
    parser.add_argument("--overhead", default="2%")
    parser.add_argument("--longest", default="10m")
    parser.add_argument("--duration", help="a fixed time instead")
    parser.add_argument("--results", type=pathlib.Path, help="rows are appended to this file, and those that are there are not made again")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--text", action="store_true", help="the report as well")
    parser.add_argument("--json", type=pathlib.Path, help="keep the whole report of the last program here")
    options = parser.parse_args()
    if options.programs == ["list"]:
        print("\n".join(f"{name:14} {(kind.__doc__ or '').splitlines()[0] if kind.__doc__ else ''}" for name, kind in PROGRAMS.items()))
        return
    if unknown := [name for name in options.programs if name not in PROGRAMS]:
        parser.error(f"there is no {', '.join(unknown)}; `list` names those that there are")
    commit = run("git", "describe", "--always", "--dirty", folder=pathlib.Path(__file__).parent).strip()
    before = done_before(options.results, commit, options)
    for name in options.programs or PROGRAMS:
        program = PROGRAMS[name]()
        if name in before:
            continue
        if lacks := missing(program):
            print(f"SKIPPED: {name}: {', '.join(lacks)} is not installed", flush=True)
            continue
        try:
            report, table, verified = measure(program, options)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:  # the next one may do better
            print(f"FAILED: {name}: {error}", file=sys.stderr, flush=True)
            continue
        line = json.dumps(row_of(name, commit, options, report, verified))
        print(f"{table}\n{line}" if options.text else line, flush=True)
        if options.results:
            with open(options.results, "a", encoding="utf-8") as out:
                out.write(line + "\n")
        if options.json:
            options.json.write_text(json.dumps(report))


if __name__ == "__main__":
    main()
