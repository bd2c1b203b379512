#!/usr/bin/env python3
"""Checks of the tree that need no compiler.

lint.py [CHECK]...          All checks without arguments. Exit 1 with a line per finding.
lint.py classes --table     The largest classes.
lint.py CHECK... --update   Lowers the lists in exceptions/ to today's figures. Refuses new lines and higher figures.
lint.py CHECK... --update --allow-new   Writes today's figures whatever they are: after renames only.
"""
import argparse
import re
import sys

import bounds
import classes
import exceptions
import includes
import pages
import prose
import sizes
import tree
import words


def check_headers():
    for path, name in tree.sources((".h",)):
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
    for path in sorted((tree.ROOT / "proto").rglob("*.proto")):
        previous = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            text = line.strip()
            needs = re.match(r"^(message|enum|service|rpc)\b|^[\w.<>, ]+ \w+ = \d+( \[.*\])?;$", text)
            if needs and not text.startswith("option") and not previous.startswith("//"):
                yield f"{path.relative_to(tree.ROOT)}:{number}: no comment above '{text}'"
            previous = text


CHECKS = {"layers": includes.check_layers, "cycles": includes.check_cycles, "doors": includes.check_doors,
          "sizes": sizes.check, "classes": classes.check, "prose": prose.check, "words": words.check,
          "headers": check_headers, "bounds": bounds.check, "protos": check_protos, "pages": lambda: pages.check(tree.ROOT)}
LISTS = {"sizes": sizes.LISTS, "classes": classes.LISTS, "prose": prose.LISTS}


def update(wanted, allow_new):
    """Rewrites the lists of the checks. A list with a line that would be new or higher stays as it is."""
    failed = False
    for check in wanted:
        for name, find in LISTS.get(check, {}).items():
            worse = exceptions.update(name, find(), allow_new)
            failed = failed or bool(worse)
            print(f"exceptions/{name}.txt: " + ("not written" if worse else "written"), *worse, sep="\n  ")
    return 1 if failed else 0


def report(wanted):
    findings = [f"{name}: {finding}" for name in wanted for finding in CHECKS[name]()]
    print("\n".join(findings) or f"lint: {', '.join(wanted)}: fine")
    return 1 if findings else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="*")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--allow-new", action="store_true")
    arguments = parser.parse_args()
    wanted = arguments.checks or list(CHECKS)
    if unknown := set(wanted) - set(CHECKS):
        parser.error(f"no such check: {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    if arguments.table:
        print("\n".join(classes.table()))
    if arguments.update:
        return update(wanted, arguments.allow_new)
    return report(wanted)


if __name__ == "__main__":
    sys.exit(main())
