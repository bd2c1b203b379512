"""What ctags says about the classes of the tree: their functions, data members and source files."""
import collections
import dataclasses
import functools
import json
import os
import re
import subprocess

import tree

# Annotations that stand inside declarations. A + says that arguments follow. ctags would take them for functions.
ANNOTATIONS = [f"ABSL_{name}" for name in (
    "GUARDED_BY+", "PT_GUARDED_BY+", "ACQUIRED_AFTER+", "ACQUIRED_BEFORE+", "EXCLUSIVE_LOCKS_REQUIRED+",
    "SHARED_LOCKS_REQUIRED+", "LOCKS_EXCLUDED+", "LOCK_RETURNED+", "EXCLUSIVE_LOCK_FUNCTION+", "SHARED_LOCK_FUNCTION+",
    "UNLOCK_FUNCTION+", "EXCLUSIVE_TRYLOCK_FUNCTION+", "SHARED_TRYLOCK_FUNCTION+", "ASSERT_EXCLUSIVE_LOCK+",
    "ASSERT_SHARED_LOCK+", "LOCKABLE", "SCOPED_LOCKABLE", "NO_THREAD_SAFETY_ANALYSIS", "ATTRIBUTE_LIFETIME_BOUND",
    "MUST_USE_RESULT")]


@dataclasses.dataclass(eq=False)
class Class:
    chain: tuple  # its name after those it is nested in, without name spaces
    kind: str  # class or struct
    path: str
    line: int
    end: int
    declared: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    defined: dict = dataclasses.field(default_factory=dict)  # name -> signatures, of definitions outside the body
    members: list = dataclasses.field(default_factory=list)  # (name, type)
    files: set = dataclasses.field(default_factory=set)  # .cc files with its functions

    @property
    def name(self):
        return "::".join(self.chain)

    @property
    def folder(self):
        return self.path.rpartition("/")[0]

    def functions(self):
        """A declaration and its definition are one function; overloads count."""
        names = self.declared.keys() | self.defined.keys()
        return sum(max(self.declared[name], len(self.defined.get(name, ()))) for name in names)

    def holds(self, tag):
        return tag["path"] == self.path and self.line <= tag["line"] <= self.end


def run_ctags():
    names = "\n".join(name for _, name in tree.sources())
    command = ["ctags", "--output-format=json", "--languages=C++", "--langmap=C++:.h.cc", "--kinds-C++=cfpmsun",
               "--fields=+neStaZ", "--fields-C++=+{properties}", "-I", ",".join(ANNOTATIONS), "-f", "-", "-L", "-"]
    try:
        output = subprocess.run(command, input=names, capture_output=True, text=True, check=True, cwd=tree.ROOT).stdout
    except FileNotFoundError:
        raise SystemExit("lint classes: there is no ctags: install universal-ctags") from None
    return [tag for tag in map(json.loads, output.splitlines()) if tag["_type"] == "tag"]


def chain_of(scope, spaces):
    """The classes in a scope, without name spaces before them and without what has no name."""
    parts = [part for part in scope.split("::") if not part.startswith("__anon")]
    while parts and parts[0] in spaces:
        parts.pop(0)
    return tuple(parts)


def nearest(candidates, path):
    """Of classes with one name: the one whose path shares most with the given one.

    A class of a .cc is of that file only, unless it is nested: a header may have declared it.
    """
    def shared(candidate):
        return len(os.path.commonpath([candidate.path, path])), candidate.path.endswith(".h")
    seen = [c for c in candidates if c.path == path or c.path.endswith(".h") or len(c.chain) > 1]
    return max(seen, key=shared, default=None)


def owner(tag, spaces, by_chain):
    """The class that a member or function belongs to."""
    candidates = by_chain.get(chain_of(tag["scope"], spaces))
    if not candidates:
        return None
    around = [c for c in candidates if c.holds(tag)]
    return max(around, key=lambda c: c.line) if around else nearest(candidates, tag["path"])


def add_function(found, tag):
    properties = tag.get("properties", "").split(",")
    in_body = found.holds(tag)
    if tag["path"].endswith(".cc") and (tag["kind"] == "function" or not in_body):
        found.files.add(tag["path"])
    if "delete" in properties or "default" in properties:
        return
    if in_body:
        found.declared[tag["name"]] += 1
    else:
        found.defined.setdefault(tag["name"], set()).add(tag.get("signature", ""))


def spell(typeref):
    return typeref.partition(":")[2]


@functools.cache
def read():
    """Every class of the tree, and the tags that are annotations unknown here."""
    tags = run_ctags()
    spaces = {part for tag in tags if tag["kind"] == "namespace" for part in tag["name"].split("::")}
    by_chain = collections.defaultdict(list)
    for tag in tags:
        if tag["kind"] in ("class", "struct") and not tag["name"].startswith("__anon"):
            chain = chain_of("::".join((tag.get("scope", ""), tag["name"])).strip(":"), spaces)
            by_chain[chain].append(Class(chain, tag["kind"], tag["path"], tag["line"], tag.get("end", tag["line"])))
    unknown = []
    for tag in tags:
        if tag["kind"] not in ("function", "prototype", "member") or tag.get("scopeKind") not in (
                "class", "struct", "union"):
            continue
        if re.fullmatch(r"(ABSL|PERFD)_[A-Z_]+", tag["name"]):
            unknown.append(tag)
        elif found := owner(tag, spaces, by_chain):
            if tag["kind"] != "member":
                add_function(found, tag)
            elif "static" not in tag.get("properties", "").split(","):
                found.members.append((tag["name"], spell(tag.get("typeref", ""))))
    return [c for group in by_chain.values() for c in group], unknown
