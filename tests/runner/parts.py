"""What there is to run: the small tier, and the parts of `all`. Every test that ctest knows is in a part (runner_test.py)."""
import dataclasses
import pathlib

SMOKE_S, LONG_S = 3, 60  # for each fuzz target
PROGRAMS = ("perfd", "perf-agent", "perf-agent-reader", "perf-agent-tracer", "perfctl")


@dataclasses.dataclass(frozen=True)
class Configure:
    preset: str
    options: tuple = ()


@dataclasses.dataclass(frozen=True)
class Build:
    """Configures first."""
    preset: str
    targets: tuple = ("all",)
    options: tuple = ()


@dataclasses.dataclass(frozen=True)
class Tests:
    """Of a build, by globs of names and by labels. pytest: further arguments for it. env: pairs for all of them."""
    preset: str
    names: tuple = ("*",)
    labels: tuple = ()
    pytest: str = ""
    env: tuple = ()


@dataclasses.dataclass(frozen=True)
class Tidy:
    """clang-tidy over chunk number `chunk` of `chunks` of the tree; of no chunks: over what has changed."""
    chunk: int = 0
    chunks: int = 0


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    minutes: int  # about, on two cores, when what it builds is there
    holds: str
    steps: tuple


def e2e(*names, **kwargs):
    return Tests("ci", tuple(f"e2e_{name}" for name in names), **kwargs)


CI = Build("ci")
TSAN = Build("tsan", ("unit_tests", "integration_tests"))


def asan(seconds, *targets):
    """The seconds are for each fuzz target. What clang-tidy reads is this build, too."""
    return Build("asan", targets, (f"-DPERFD_FUZZ_SECONDS={seconds}",))


PROMISES = ("promises", "altered_ranks", "admission", "locked_memory", "injection_days", "slurm_hangs")
LONG_RUN = (("PERFD_KILLS", "200"), ("PERFD_STOPS", "50"), ("PERFD_PROFILES", "20"), ("PERFD_EVERY_OPERATION", "1"))
ATTACK = (("PERFD_ATTACK", "300"),)
RACES, LIMITS = (("PERFD_TRIES", "50"),), (("PERFD_TRIES", "200"), ("PERFD_TOGETHER", "4"))
HALF_OF_TRUTHS = "triad or division or square or accumulator or svdcmp or false"  # of variants_test.py
TIDY_CHUNKS = 2


def with_small_cases():
    """The files of e2e that have some, by ctest's names."""
    folder = pathlib.Path(__file__).resolve().parents[1] / "e2e"
    return tuple(sorted(f"e2e_{file.stem.removesuffix('_test')}" for file in folder.glob("*_test.py")
                        if "mark.small" in file.read_text()))


def every_build(some):
    return (CI, e2e("variants", pytest=f"-k '{some}'", env=(("PERFD_ALL_BUILDS", "1"),)))


PARTS = (
    Part("lint", 1, "layers, doors, sizes, words, papers, rules and dashboards, this runner",
         (Configure("ci"), Tests("ci", labels=("lint",)))),
    Part("unit", 3, "strict build by gcc, its unit tests, each decoder under damaged input for a moment",
         (CI, Tests("ci", labels=("unit", "fuzz")))),
    Part("integration", 6, "ptrace and perf events on small programs; what a site installs",
         (CI, Tests("ci", labels=("integration",)))),
    Part("promises", 12, "the promises to the owner of a job", (CI, e2e(*PROMISES))),
    Part("e2e-days", 20, "bad days: full disks, hostile peers, kills, lost networks",
         (CI, e2e("bad_days", "worse_days", "fleet_bad_days", "tight_limits", "peer_limits", "attack"))),
    Part("e2e-truth", 35, "shares and saturations of programs whose truth is known, hpcc, call paths, dry runs",
         (CI, e2e("known_truth", "variants", "hpcc", "detours", "phases", "callpaths", "until_known", "dry_run", "kernel_time", "odd_code"))),
    Part("e2e-fleet", 15, "several nodes: leases, clocks, jobs of a scheduler", (
        CI, e2e("fleet", "fleet_hook", "user_mode_nodes"))),
    Part("e2e-site", 15, "Slurm, hook, user mode, launchers, archive, page, Prometheus, dashboards, recordings, replay",
         (CI, e2e("slurm", "hook_*", "user_mode", "launchers", "archive", "html_report", "prometheus", "dashboards", "recordings", "replay"))),
    Part("sanitizers", 15, "strict build of the whole tree by clang with ASan and UBSan: unit tests, fuzz targets",
         (asan(SMOKE_S, "all", "unit_tests", "fuzzers"), Tests("asan", labels=("unit", "fuzz")))),
    Part("threads", 20, "unit and integration tests under ThreadSanitizer",
         (TSAN, Tests("tsan", labels=("unit", "integration")))),
    Part("headers", 10, "each header by itself, without the precompiled one; what only measures still compiles",
         (Build("ci", ("all_verify_interface_header_sets", "benches")),)),
    Part("fuzz-long", 20, f"each fuzz target for {LONG_S} s", (asan(LONG_S, "fuzzers"), Tests("asan", labels=("fuzz",)))),
    *(Part(f"tidy-{k}", 20, f"clang-tidy over the tree, part {k} of {TIDY_CHUNKS}",
           (asan(SMOKE_S, "all"), Tidy(k, TIDY_CHUNKS))) for k in range(1, TIDY_CHUNKS + 1)),
    Part("builds-1", 35, "saturations by both compilers, all instruction sets and teams: half of the truths",
         every_build(HALF_OF_TRUTHS)),
    Part("builds-2", 35, "the other half", every_build(f"not ({HALF_OF_TRUTHS})")),
    Part("promises-long", 35, "200 kills, 50 stops, an agent that dies at every operation",
         (CI, e2e("promises", env=LONG_RUN), Tests("ci", ("attach_hold_test", "rank_injector_test"), env=LONG_RUN))),
    Part("attack-long", 10, "one user at ten times every limit for five minutes, beside 1,000 agents",
         (CI, e2e("attack", env=ATTACK))),
    Part("strangers-long", 35, "200 ranks that change what they are amid a profile, 200 near a limit of theirs",
         (CI, e2e("admission", env=RACES), e2e("tight_limits", env=LIMITS))),
)

SMALL = (
    Configure("ci"), Tests("ci", labels=("lint",)),
    CI, Tests("ci", labels=("unit", "fuzz")), Tests("ci", labels=("integration",)),
    e2e(*PROMISES), Tests("ci", with_small_cases(), pytest="-m small"),
    asan(SMOKE_S, *PROGRAMS, "unit_tests", "fuzzers"), Tests("asan", labels=("unit", "fuzz")),
    Tidy(),
)
# The parts that have passed when the small tier has.
HELD_BY_SMALL = ("lint", "unit", "integration", "promises")


def part(name):
    return next((p for p in PARTS if p.name == name), None)
