#!/usr/bin/env python3
"""Checks of the tree that need no compiler: layers, doors, sizes, headers, proto comments, what the documentation names.

Usage: lint.py [layers|doors|sizes|headers|protos|cycles|pages]...   (default: all). Exit 1 with a line per finding.
"""
import pathlib
import re
import sys

import pages

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = ("core", "agent", "daemon", "client")
HEADER_LIMIT, SOURCE_LIMIT, FUNCTION_LIMIT, FOLDER_LIMIT = 200, 400, 60, 40


def sources(suffixes=(".h", ".cc")):
    for top in CODE:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in suffixes:
                yield path, path.relative_to(ROOT).as_posix()


def module_of(name, modules):
    parts = name.split("/")[:-1]
    while parts:
        if "/".join(parts) in modules:
            return "/".join(parts)
        parts.pop()
    return None


def read_layers():
    table = {}
    for line in (ROOT / "tests/lint/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            module, _, allowed = line.partition(":")
            table[module.strip()] = set(allowed.split())
    return table


def includes(path):
    return re.findall(r'^#include "([^"]+)"', path.read_text(), re.M)


def check_layers():
    table = read_layers()
    for path, name in sources():
        module = module_of(name, table)
        if module is None:
            yield f"{name}: its folder is not in tests/lint/layers.txt"
            continue
        for include in includes(path):
            target = module_of(include, table)
            if target and target != module and target not in table[module]:
                yield f"{name}: {module} may not include {include}"


def check_cycles():
    table, edges = read_layers(), {}
    for path, name in sources():
        module = module_of(name, table)
        for include in includes(path):
            target = module_of(include, table)
            if module and target and target != module:
                edges.setdefault(module, set()).add(target)
    state = {}

    def visit(node, trail):
        state[node] = 1
        for nxt in sorted(edges.get(node, ())):
            if state.get(nxt) == 1:
                yield "include cycle: " + " -> ".join(trail + [node, nxt])
            elif nxt not in state:
                yield from visit(nxt, trail + [node])
        state[node] = 2

    for node in sorted(edges):
        if node not in state:
            yield from visit(node, [])


def check_doors():
    for line in (ROOT / "tests/lint/doors.txt").read_text().splitlines():
        if not line.strip() or line.startswith("# "):
            continue
        pattern, _, allowed = line.rpartition(" | ")
        expression, prefixes = re.compile(pattern.strip()), tuple(allowed.split())
        for path, name in sources():
            if name.startswith(prefixes):
                continue
            for number, text in enumerate(path.read_text().splitlines(), 1):
                if expression.search(text.split("//")[0]):
                    yield f"{name}:{number}: '{pattern.strip()}' belongs behind its door ({allowed.strip()})"


def function_lengths(text):
    """Lines of each brace block that starts at the left margin after a line ending in ') {' or the like."""
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if start is None and re.match(r"^[A-Za-z].*\)[^;]*\{$", line) and \
                not re.match(r"^(namespace|class|struct|enum|extern)", line):
            start = number
        elif start is not None and line.startswith("}"):
            yield start, number - start
            start = None


def check_sizes():
    for path, name in sources():
        text = path.read_text()
        if "lint: data table" in text:
            continue
        lines = text.count("\n")
        limit = HEADER_LIMIT if path.suffix == ".h" else SOURCE_LIMIT
        if lines > limit:
            yield f"{name}: {lines} lines, limit {limit}"
        for start, length in function_lengths(text):
            if length > FUNCTION_LIMIT:
                yield f"{name}:{start}: a function of {length} lines, limit {FUNCTION_LIMIT}"
    for top in CODE:
        for folder in sorted((ROOT / top).rglob("*")):
            if folder.is_dir():
                count = sum(1 for f in folder.iterdir() if f.is_file())
                if count > FOLDER_LIMIT:
                    yield f"{folder.relative_to(ROOT)}: {count} files, limit {FOLDER_LIMIT}"


def check_headers():
    for path, name in sources((".h",)):
        text = path.read_text()
        guard = re.sub(r"[^A-Za-z0-9]", "_", name).upper() + "_"
        if f"#define {guard}" not in text:
            yield f"{name}: the include guard is not {guard}"
        if not text.startswith(f"// {name} - "):
            yield f"{name}: does not open with its banner '// {name} - ...'"
        banner = 0
        for line in text.splitlines():
            if not line.startswith("//"):
                break
            banner += 1
        if banner > 15:
            yield f"{name}: banner of {banner} lines, limit 15"


def check_protos():
    for path in sorted((ROOT / "proto").rglob("*.proto")):
        previous = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            text = line.strip()
            needs = re.match(r"^(message|enum|service|rpc)\b|^[\w.<>, ]+ \w+ = \d+( \[.*\])?;$", text)
            if needs and not text.startswith("option") and not previous.startswith("//"):
                yield f"{path.relative_to(ROOT)}:{number}: no comment above '{text}'"
            previous = text


CHECKS = {"layers": check_layers, "cycles": check_cycles, "doors": check_doors, "sizes": check_sizes,
          "headers": check_headers, "protos": check_protos, "pages": lambda: pages.check(ROOT)}


def main():
    wanted = sys.argv[1:] or list(CHECKS)
    findings = [f"{name}: {finding}" for name in wanted for finding in CHECKS[name]()]
    print("\n".join(findings) or f"lint: {', '.join(wanted)}: fine")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
