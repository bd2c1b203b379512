#!/usr/bin/env python3
"""Variants of loops of known nature, measured in shadows of a live process: saturations and verdicts as the nature says, and
the program's output bit-identical to a run that nobody measured.

Thresholds: removals leave what the nature leaves. A loop that waits for memory keeps its time without its arithmetic
(LS >= 0.9, less 0.05 for the noise of a small machine); a loop that divides loses most of its time with the division; a chain
of dependent additions (4 cycles each) loses it with the chain. "About 1" is within 0.15 of 1: two cores that are shared with
the agent, and two runs of the same code differ by some percent here."""
import json
import os
import pathlib
import subprocess
import sys

import cluster
from cluster import Cluster, PUPPETS, wait_until

RAM = 4_000_000     # doubles: 32 MB per array, far beyond the second level
L1 = 1200           # doubles: 9.6 KB per array


def cpu_flags():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split())
    return set()


def builds():
    """Both compilers and all instruction sets, each at least once; PERFD_ALL_BUILDS=1: every pair."""
    flags = cpu_flags()
    pairs = [("gcc", "O2"), ("clang", "avx2"), ("gcc", "avx512")]
    if os.environ.get("PERFD_ALL_BUILDS"):
        pairs = [(compiler, isa) for compiler in ("gcc", "clang") for isa in ("O2", "avx2", "avx512")]
    needs = {"O2": None, "avx2": "avx2", "avx512": "avx512f"}
    names = [PUPPETS / f"kernels_{compiler}_{isa}" for compiler, isa in pairs if needs[isa] is None or needs[isa] in flags]
    return [program for program in names if program.exists()]


def plain(program, kernel, n, steps, threads):
    run = subprocess.run([program, kernel, str(n), str(steps), str(threads)], capture_output=True, text=True, timeout=120,
                         env={**os.environ, "OMP_WAIT_POLICY": "passive"}, check=True)
    return json.loads(run.stdout)


def steps_for(program, kernel, n, threads, seconds):
    """How many steps last about this long."""
    probe = 20
    while True:
        took = plain(program, kernel, n, probe, threads)["seconds"]
        if took > 0.05:
            return max(10, int(probe * seconds / took))
        probe *= 8


class Measured:
    """One profile of one kernel; checks that the program computes what it computes alone."""

    def __init__(self, program, kernel, n, threads=1, variants="LS,FP,DL1", seconds=10, overhead="20%"):
        self.kernel = kernel
        steps = steps_for(program, kernel, n, threads, seconds)
        with Cluster() as c:
            job = c.spawn("job", [program, kernel, n, steps, threads], env={"OMP_WAIT_POLICY": "passive"})
            profile = c.submit("--pid", job.pid, "--duration", f"{seconds - 3}s", "--variants", variants,
                               "--overhead", overhead)
            c.wait_over(profile, 60)
            self.report = c.json("report", profile)
            assert job.wait(180) == 0, c.log("job")
            shown = json.loads(c.log("job").splitlines()[-1])
            self.log = c.log("agent-node1")
        alone = plain(program, kernel, n, steps, threads)
        assert shown["checksum"] == alone["checksum"], (shown, alone)
        source = pathlib.Path(__file__).parent.parent / "puppets/kernels.c"
        self.line = [i for i, text in enumerate(source.read_text().splitlines(), 1)
                     if text.endswith(f"// LOOP {kernel.removesuffix('_padded')}")][0]
        rows = {r["id"]: r for r in self.report["loops"]}
        loops = [v for v in self.report["verdicts"]
                 if v["loop_id"] in rows and rows[v["loop_id"]]["first_line"] <= self.line <= rows[v["loop_id"]]["last_line"]]
        assert loops, (self.line, [(r["first_line"], r["last_line"]) for r in self.report["loops"]], self.report["verdicts"])
        # The heaviest one: unrolled loops have rests of few iterations.
        self.loop = max(loops, key=lambda v: rows[v["loop_id"]]["samples"])

    def sat(self, variant):
        for v in self.loop["variants"]:
            if v["variant"] == variant:
                return v["saturation"]["value"]
        raise AssertionError(f"{self.kernel}: no {variant}: state {self.loop['state']}, refusals {self.loop['refusals']}, "
                             f"open {self.loop['open']}, notices {self.report['status']['notices']}")

    def show(self, program):
        values = ", ".join(f"{v['variant']} {v['saturation']['value']:.2f}" for v in self.loop["variants"])
        print(f"   {program.name} {self.kernel}: {self.loop['bound']}: {values}; fidelity "
              f"{self.loop['fidelity']['value']:.2f} ({self.loop['protocol']}); pause "
              f"{self.loop['cost']['pause_ns'] / 1e6:.0f} ms in {self.loop['cost']['shadows']} shadows")


def each_build(kernel, check, n, builds_wanted=None, **kwargs):
    for program in builds_wanted or builds():
        m = Measured(program, kernel, n, **kwargs)
        m.show(program)
        check(m)


def test_triad_over_memory_is_memory_bound():
    def check(m):
        assert m.sat("LS") >= 0.85 and m.sat("FP") < 0.5 and m.sat("DL1") < 0.7
        assert m.loop["bound"].startswith("memory")
    each_build("triad", check, RAM)


def test_division_in_l1_is_arithmetic_bound():
    def check(m):
        assert m.sat("NO_DIV") < 0.7 and m.sat("LS") < 0.7 and abs(m.sat("DL1") - 1) < 0.15
        assert m.loop["bound"].startswith("arithmetic")
    each_build("divide", check, L1, variants="LS,FP,DL1,NO_DIV")


def test_square_root():
    def check(m):
        assert m.sat("NO_SQRT") < 0.7
    each_build("sqrt", check, L1, builds_wanted=builds()[:1], variants="LS,FP,DL1,NO_SQRT")


def test_one_accumulator_waits_for_itself_and_eight_do_not():
    for program in builds()[:2]:
        one = Measured(program, "sum1", L1, variants="LS,FP,NO_RED")
        one.show(program)
        assert one.sat("NO_RED") < 0.6
        eight = Measured(program, "sum8", L1, variants="LS,FP,NO_RED")
        eight.show(program)
        assert eight.sat("NO_RED") > one.sat("NO_RED") + 0.2


def test_false_sharing_is_priced_by_s2l():
    if not cluster.host_is_calm():
        cluster.skip("this host does not give two threads two CPUs right now")
    program = builds()[0]
    shared = Measured(program, "count", 20_000, threads=2, variants="LS,FP,S2L,NO_STORE")
    shared.show(program)
    padded = Measured(program, "count_padded", 20_000, threads=2, variants="LS,FP,S2L,NO_STORE")
    padded.show(program)
    assert shared.sat("S2L") < padded.sat("S2L") - 0.2


def test_pointer_chase():
    def check(m):
        dl1 = [v for v in m.loop["variants"] if v["variant"] == "DL1"]
        assert (dl1 and (dl1[0]["saturation"]["value"] < 0.3 or dl1[0]["pinned"] < dl1[0]["accesses"])), m.loop
    each_build("chase", check, 400_000, builds_wanted=builds()[:1])


def test_arrays_in_l1_and_an_empty_body():
    program = builds()[0]
    m = Measured(program, "triad", 1600, variants="LS,FP,DL1")  # 3 x 12.5 KB
    m.show(program)
    assert abs(m.sat("DL1") - 1) < 0.2
    m = Measured(program, "empty", 50_000, variants="CTRL,LS")
    m.show(program)
    assert abs(m.sat("CTRL") - 1) < 0.1


def test_the_array_in_memory_costs_more_than_the_one_in_l1():
    program = builds()[0]
    m = Measured(program, "two_arrays", RAM, variants="LS,FP,GROUP(0),GROUP(1)")
    m.show(program)
    assert abs(m.sat("GROUP(0)") - m.sat("GROUP(1)")) > 0.2


def test_in_place_loops_keep_their_values():
    for kernel in ("svdcmp", "in_place"):
        m = Measured(builds()[0], kernel, 50_000, variants="LS,FP,DL1,NO_DIV")
        m.show(builds()[0])
        assert m.sat("LS") > 0


def test_two_threads_and_several_blocks():
    m = Measured(builds()[0], "triad", 200_000, threads=2)
    m.show(builds()[0])
    assert m.loop["ranks"][0]["team"] == 2, m.loop
    m = Measured(builds()[0], "branchy", 50_000, threads=2)
    m.show(builds()[0])
    assert m.sat("LS") > 0


def test_memory_that_others_see_is_never_written_by_a_shadow():
    # The checksum covers the window; the loop is refused, by the reason.
    m = Measured(builds()[0], "window", 50_000)
    assert m.loop["state"] == "refused" and "shared" in json.dumps(m.loop), m.loop


if __name__ == "__main__":
    cluster.run_tests(sys.modules[__name__], retries=1, only_calm=True)
