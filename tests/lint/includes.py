"""Checks of who includes whom and of who may touch what: layers.txt, doors.txt, cycles."""
import re

import tree


def module_of(name, modules):
    parts = name.split("/")[:-1]
    while parts:
        if "/".join(parts) in modules:
            return "/".join(parts)
        parts.pop()
    return None


def read_layers():
    table = {}
    for line in (tree.ROOT / "tests/lint/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            module, _, allowed = line.partition(":")
            table[module.strip()] = set(allowed.split())
    return table


def includes(path):
    return re.findall(r'^#include "([^"]+)"', path.read_text(), re.M)


def check_layers():
    table = read_layers()
    for path, name in tree.sources():
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
    for path, name in tree.sources():
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
    for line in (tree.ROOT / "tests/lint/doors.txt").read_text().splitlines():
        if not line.strip() or line.startswith("# "):
            continue
        pattern, _, allowed = line.rpartition(" | ")
        expression, prefixes = re.compile(pattern.strip()), tuple(allowed.split())
        for path, name in tree.sources():
            if name.startswith(prefixes):
                continue
            for number, text in enumerate(path.read_text().splitlines(), 1):
                if expression.search(text.split("//")[0]):
                    yield f"{name}:{number}: '{pattern.strip()}' belongs behind its door ({allowed.strip()})"
