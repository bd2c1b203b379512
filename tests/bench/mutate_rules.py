#!/usr/bin/env python3
"""Whether the tests of the rules that name a loop find a rule that is wrong: one change at a time, then the tests.

  mutate_rules.py [FILE ...] [--build DIR] [--limit N] [--only TEXT]

FILE: sources of core/analysis [verdict.cc]. Each mutant is compiled apart from the tree, linked with the objects of a finished
build (default: build/ci) and run against analysis_test; nothing of the build is changed. A line per mutant that survives, with its
line, and the count at the end: killed, survived, and not compiled.
"""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# What is found, and what takes its place. Comparisons are turned round: a bound that is off by nothing is no fault.
CHANGES = [
    (r" && ", " || "), (r" \|\| ", " && "),
    (r" < ", " > "), (r" > ", " < "), (r" <= ", " > "), (r" >= ", " < "), (r" == ", " != "), (r" != ", " == "),
    (r"std::min\(", "std::max("), (r"std::max\(", "std::min("),
    (r"\breturn true;", "return false;"), (r"\breturn false;", "return true;"),
    (r"(?<=[( ])!(?=[A-Za-z])", ""), (r" \+ ", " - "), (r"(?<=[\w)]) - (?=\w)", " + "),
    (r"(?<=\? )(0)(?= :)", "1"),
]


def mutants(text):
    """(line number, mutated text, what was done) for each place outside comments and strings."""
    at = 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        code = re.sub(r'"(\\.|[^"\\])*"', lambda m: "_" * len(m.group()), line).split("//")[0]
        if not code.lstrip().startswith("#") and "template" not in code:
            for pattern, new in CHANGES:
                for found in re.finditer(pattern, code):
                    begin, end = at + found.start(), at + found.end()
                    yield number, text[:begin] + new + text[end:], f"{found.group().strip() or 'space'} -> {new.strip() or 'nothing'}"
        at += len(line)


def command_of(build, target, last):
    """The command that makes a target, without ccache: its words."""
    lines = subprocess.run(["ninja", "-C", build, "-t", "commands", target], capture_output=True, text=True, check=True).stdout
    return next(line for line in reversed(lines.splitlines()) if last in line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=["verdict.cc"])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/ci")
    parser.add_argument("--limit", type=int, default=0, help="at most so many mutants, evenly chosen; 0: all")
    parser.add_argument("--only", default="", help="mutants of lines that hold this")
    options = parser.parse_args()
    killed, survived, broken = 0, [], 0
    for file in options.files:
        source = ROOT / "core/analysis" / file
        text = source.read_text()
        object_file = f"core/analysis/CMakeFiles/perfd_analysis.dir/{file}.o"
        compile_words = shlex.split(command_of(options.build, object_file, str(source)))
        compile_words = compile_words[next(i for i, word in enumerate(compile_words) if word.endswith("/c++")):]
        link = command_of(options.build, "analysis_test", "-o ").removeprefix(": && ").removesuffix(" && :")
        chosen = [m for m in mutants(text) if options.only in text.splitlines()[m[0] - 1]]
        if options.limit and len(chosen) > options.limit:
            chosen = [chosen[i * len(chosen) // options.limit] for i in range(options.limit)]
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            for count, (line, mutated, what) in enumerate(chosen, 1):
                (scratch / file).write_text(mutated)
                words = [str(scratch / "mutant.o") if word == object_file else str(scratch / file) if word == str(source) else word
                         for word in compile_words if word not in ("-MD",)]
                for flag in ("-MT", "-MF"):
                    at = words.index(flag)
                    del words[at:at + 2]
                if subprocess.run(words, cwd=options.build, capture_output=True).returncode != 0:
                    broken += 1
                    continue
                # In front of the library, whose own object of that name is then not needed.
                linked = re.sub(r"-o \S+", f"{scratch / 'mutant.o'} -o {scratch / 'mutant_test'}", link, count=1)
                if subprocess.run(linked, shell=True, cwd=options.build, capture_output=True).returncode != 0:
                    broken += 1
                    continue
                try:
                    run = subprocess.run([scratch / "mutant_test", "--gtest_brief=1"], capture_output=True, timeout=120)
                    found = run.returncode != 0
                except subprocess.TimeoutExpired:
                    found = True
                killed += found
                if not found:
                    survived.append(f"{file}:{line}: {what}: {text.splitlines()[line - 1].strip()}")
                    print("survived", survived[-1], flush=True)
                if count % 10 == 0:
                    print(f"{file}: {count} of {len(chosen)}", file=sys.stderr, flush=True)
    print(f"{killed} killed, {len(survived)} survived, {broken} not compiled")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
