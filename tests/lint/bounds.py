"""Check of bounds: what grows by what peers send of perfd has a bound that is named (bounds.txt).

Each data member of a class of daemon/ whose type is a container, and each table of the store, has a line there. What a line names as
its bound must be in the code: a row of the table of limits, a constant, a field, or another line.
"""
import re

import class_table
import tree

FILE = "tests/lint/bounds.txt"
CONTAINER = (r"\b(?:std::(?:(?:unordered_|multi)*(?:map|set)|deque|vector|list|queue|priority_queue)"
             r"|absl::(?:(?:flat|node)_hash_(?:map|set)|btree_(?:map|set)))<")
BOUND = re.compile(r"as (?P<other>[\w:]+)|(?P<own>own)|Limit::(?P<limit>k\w+)|(?P<name>[A-Za-z]\w*(?:\.\w+)?)")


def sources(folder, *suffixes):
    return {name: path.read_text() for path, name in tree.sources(suffixes or (".h", ".cc")) if name.startswith(folder)}


def containers():
    """The members that grow, as CLASS::member: where they are."""
    code = sources("daemon/")
    aliases = {alias for text in code.values() for alias in re.findall(rf"\busing (\w+) =\s*{CONTAINER}", text)}
    grows = re.compile(CONTAINER + "".join(rf"|\b{alias}\b" for alias in sorted(aliases)))
    found = {}
    for one in class_table.read()[0]:
        if one.path.startswith("daemon/"):
            for member, kind in one.members:
                if member.endswith("_") and grows.search(kind):  # a member of a class; those of values are their owner's
                    found[f"{one.name}::{member}"] = f"{one.path}:{one.line}"
    return found


def tables():
    text = (tree.ROOT / "daemon/store/schema.cc").read_text()
    return {name: "daemon/store/schema.cc" for name in re.findall(r"CREATE TABLE (\w+)\(", text)}


def read():
    lines = (tree.ROOT / FILE).read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def is_there(bound, listed, code):
    """None, or what is wrong with a bound."""
    found = BOUND.match(bound)
    if not found:
        return "names no bound"
    if found["other"]:
        return None if found["other"] in listed else f"there is no line of '{found['other']}'"
    if found["own"]:
        return None
    if found["limit"]:
        return None if f"Limit::{found['limit']}," in code["daemon/limits/limit_table.cc"] else f"no limit is called {found['limit']}"
    everything = "\n".join(code.values())
    for part in found["name"].split("."):
        if not re.search(rf"\b{part}\b", everything):
            return f"nothing is called '{part}'"
    return None


def check():
    listed, grows = read(), containers() | tables()
    code = sources("daemon/") | sources("core/wire/check/limits.h")
    for name, place in grows.items():
        if name not in listed:
            yield f"{place}: {name} grows, and {FILE} does not say what bounds it"
    for name, bound in listed.items():
        if name not in grows:
            yield f"{FILE}: {name}: is no more, or does not grow: remove the line"
        elif wrong := is_there(bound, listed, code):
            yield f"{FILE}: {name}: {wrong}"
