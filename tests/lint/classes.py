"""Check of classes: at most 25 functions, 12 data members and 2 source files, for each class and struct.

Functions     A declaration and its definition are one. Overloads count. `= default` and `= delete` do not.
Data members  Static ones do not count: they are constants. Nested types do not count.
Source files  The .cc files that define a function of the class. The header does not count.

A struct with one user counts into that user, so that members cannot hide in a `struct State`. The data members of the
struct take the place of the member that holds it. A struct has one user when two things hold:
  - Only one class has data members of its type. The class holds it as a value, an optional or an owning pointer.
    Rows of a container do not count in. A struct without functions is no user: it is a value made of values.
  - Only the files of that class, and the header of the struct, name it. Options, ports, figures and values of
    core/model are named by those who fill or read them. They are how a class talks to others, and stand alone.
A struct that counts in is also checked as a struct.
"""
import collections
import re

import class_table
import exceptions
import tree

LIMITS = (25, 12, 2)
NAMES = ("functions", "data members", "source files")
TABLE_ROWS = 25
QUALIFIED = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
OUR_SPACES = re.compile(r"^(?:(?:perfd|agent|daemon|client|wire)::)+")
OWNING = re.compile(r"(?:std::optional|std::unique_ptr|std::shared_ptr|absl::StatusOr)<(.*)>")


class Holdings:
    """Which classes have which structs as data members."""

    def __init__(self, classes):
        self.by_chain = collections.defaultdict(list)
        for found in classes:
            self.by_chain[found.chain].append(found)
        self.users = collections.defaultdict(set)  # struct -> classes with it in the type of a data member
        self.held = collections.defaultdict(set)  # class -> structs that it holds once
        self.counted = {}
        for found in classes:
            for _, kind in found.members:
                self.note(found, kind)

    def note(self, user, kind):
        for name in QUALIFIED.findall(kind):
            if used := self.resolve(name, user):
                self.users[used].add(user)
        held = self.resolve(held_type(kind), user)
        if held and held.kind == "struct":
            self.held[user].add(held)

    def resolve(self, name, user):
        """The class that a name means inside another class."""
        parts = tuple(OUR_SPACES.sub("", name).split("::"))
        for depth in range(len(user.chain), -1, -1):
            if found := class_table.nearest(self.by_chain.get(user.chain[:depth] + parts, ()), user.path):
                return found
        return None

    def counts_in(self, struct, user):
        return struct is not user and self.users[struct] == {user} and not named_outside(struct, user)

    def counts_in_somewhere(self, struct):
        return any(self.counts_in(struct, user) for user in self.users[struct])

    def members(self, found):
        """Data members of a class, with those of the structs that count into it."""
        if found not in self.counted:
            self.counted[found] = len(found.members)  # a type that holds itself ends here
            if found.kind == "class" or found.functions() or self.counts_in_somewhere(found):
                self.counted[found] += sum(max(0, self.members(struct) - 1) for struct in self.held[found]
                                           if self.counts_in(struct, found))
        return self.counted[found]


def held_type(kind):
    """The type inside const, optional and owning pointers."""
    while True:
        inner = kind.removeprefix("const ").strip()
        if match := OWNING.fullmatch(inner):
            inner = match[1]
        if inner == kind:
            return kind
        kind = inner


def named_outside(struct, user):
    """Whether a file names the struct that is neither of its user nor the header that defines it."""
    if struct.path.endswith(".cc"):
        return False
    own = user.files | {user.path, struct.path}
    for path, name in tree.sources():
        if name not in own and struct.chain[-1] in tree.identifiers(path):
            if len(struct.chain) == 1 or re.search(rf"\b{struct.name}\b", tree.code(path)):
                return True
    return False


def figures(classes):
    """Functions, data members and source files by class."""
    holdings = Holdings(classes)
    return {found: (found.functions(), holdings.members(found), len(found.files)) for found in classes}


def keys(classes):
    """The shortest of name, folder and name, file and name that no other class has."""
    names = collections.Counter(c.name for c in classes)
    folders = collections.Counter((c.folder, c.name) for c in classes)
    return {c: c.name if names[c.name] == 1 else
            f"{c.folder} {c.name}" if folders[c.folder, c.name] == 1 else f"{c.path} {c.name}" for c in classes}


def over_limits():
    classes, _ = class_table.read()
    found, key_of = {}, keys(classes)
    for c, now in figures(classes).items():
        if any(figure > limit for figure, limit in zip(now, LIMITS)):
            parts = ", ".join(f"{figure} {name} (limit {limit})" for figure, name, limit in zip(now, NAMES, LIMITS))
            found[key_of[c]] = exceptions.Excess(now, f"{c.path}:{c.line}: {c.kind} {c.name}: {parts}")
    return found


LISTS = {"classes": over_limits}


def check():
    for tag in class_table.read()[1]:
        yield f"{tag['path']}:{tag['line']}: ctags takes {tag['name']} for a function: add it to ANNOTATIONS"
    yield from exceptions.check("classes", over_limits())


def table():
    """The largest classes, measured by the limits."""
    classes, _ = class_table.read()
    key_of = keys(classes)
    rows = sorted(figures(classes).items(), reverse=True,
                  key=lambda row: (max(figure / limit for figure, limit in zip(row[1], LIMITS)), row[0].name))
    yield f"{'class':44} functions  data members  source files"
    for c, now in rows[:TABLE_ROWS]:
        yield f"{key_of[c]:44} {now[0]:9} {now[1]:13} {now[2]:13}"
