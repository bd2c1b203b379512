#!/usr/bin/env python3
"""Shows that each lint can fail: plants one violation of each kind in a tree and expects it to be found.

What is just within a limit is planted too, and must not be found. Checks that need the real files get a copy of the
tree; the others get an empty tree with empty lists, in which nothing but the plant can be found.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = ("core", "agent", "daemon", "client")
HERE, LISTS = "core/planted.cc", "tests/lint/exceptions"
FINE = None  # nothing may be found


def class_of(functions=0, members=0, more=""):
    lines = [f"  void F{i}();" for i in range(functions)] + [f"  int m{i}_ = 0;" for i in range(members)]
    return "namespace perfd::agent {\nclass Planted {\n public:\n" + "\n".join(lines) + f"\n{more}}};\n}}\n"


def definition_of(function):
    return f"namespace perfd::agent {{\nvoid Planted::F{function}() {{}}\n}}\n"


def slices_of(count):
    return {"core/planted.h": class_of(count)} | {f"core/planted_{i}.cc": definition_of(i) for i in range(count)}


def compare(expression):
    return {HERE: f"constexpr absl::string_view kPlanted = \"said\";\nbool f() {{\n  return {expression};\n}}\n"}


def folder_of(files, build):
    return {f"core/planted/x{i}.cc": "int x;\n" for i in range(files)} | {"core/planted/CMakeLists.txt": build}


OVERLOADS = "  void F0(int);\n  void F0(long) const;\n"
STATE = "  struct State {\n    int a, b, c, d;\n    std::string text;\n  };\n"
OPTIONS = {"core/planted_user.cc": "void Use(PlantedOptions options);\n",
           "core/planted.h": "struct PlantedOptions {\n  int a, b, c, d;\n};\n" +
                             class_of(0, 11, "PlantedOptions o_;\n")}

GROWS = "namespace perfd::daemon {\nclass Planted {\n  %s waiting_;\n};\n}\n"
BOUNDS = "tests/lint/bounds.txt"
WORDS = {"tests/lint/words.txt": "# Comment\nLab -> Injector\n*Desk -> *Admission\n/Take[0-9]/ -> Drain\n"}

# The check, what is planted, and what the finding says.
IN_COPY = [
    ("layers", {"core/base/planted.cc": '#include "daemon/store/database.h"\n'}, "planted.cc: core/base may not"),
    ("cycles", {"core/model/planted.cc": '#include "core/analysis/hot/hot_set.h"\n'}, "include cycle"),
    ("doors", {"core/base/planted.cc": "long f() { return ptrace(0); }\n"}, "planted.cc:1"),
    ("bounds", {"daemon/planted.h": GROWS % "std::deque<int>"}, "Planted::waiting_ grows"),
    ("bounds", {"daemon/planted.h": GROWS % "Rows", "daemon/base.h": "using Rows = std::map<int, int>;\n"}, "Planted::waiting_ grows"),
    ("bounds", {"daemon/planted.h": GROWS % "std::deque<int>", BOUNDS: "Planted::waiting_: kMostWrites\n"}, "nothing is called"),
    ("bounds", {"daemon/planted.h": GROWS % "std::deque<int>", BOUNDS: "Planted::waiting_: Limit::kGone\n"}, "no limit is called"),
    ("bounds", {"daemon/planted.h": GROWS % "std::deque<int>", BOUNDS: "Planted::waiting_: Limit::kWatches\n"}, FINE),
    ("bounds", {"daemon/planted.h": GROWS % "int", BOUNDS: "Planted::waiting_: own\n"}, "does not grow"),
    ("bounds", {"daemon/store/schema.cc": "// CREATE TABLE planted(\n"}, "planted grows"),
    ("headers", {"core/base/planted.h": "int x;\n"}, "planted.h: does not open"),
    ("protos", {"proto/perfd/v1/planted.proto": "message Bare {\n}\n"}, "planted.proto:1"),
    *(("pages", {"docs/planted.md": text}, "planted.md") for text in (
        "    perfd --frob\n", "`perfctl report last --variant LS`\n", "`perfctl hook list --wait`\n", "a `--frob` flag\n",
        "`perf-agent --user-mode --store-dir x`\n", "    perfd --socket x \\\n        --frob\n", "`spool.limit_gib`\n",
        "`core/base/nothing.h`\n", "`e2e_nothing`\n", "[more](nothing.md)\n")),
    ("pages", {"docs/benchmarks/notebook/planted.md": "[more](nothing.md)\n"}, "planted.md"),
]
IN_EMPTY = [
    ("sizes", {HERE: "int x;\n" * 600}, FINE),
    ("sizes", {HERE: "int x;\n" * 601}, "planted.cc: 601 lines"),
    ("sizes", {"core/planted.h": "int x;\n" * 601}, "planted.h: 601 lines"),
    ("sizes", {HERE: "void F() {\n" + "  G();\n" * 60 + "}\n"}, "planted.cc:1: a function of 61 lines"),
    ("sizes", folder_of(20, "perfd_library(planted)\n"), "core/planted: 21 files"),
    ("sizes", folder_of(19, "perfd_library(planted)\n"), "it lacks a line of its own in tests/lint/layers.txt"),
    ("sizes", folder_of(1, "add_custom_target(planted)\n") | {"tests/lint/layers.txt": "core/planted:\n"},
     "core/planted: a sub-folder is a target: it lacks a CMakeLists.txt with a target"),
    ("sizes", folder_of(19, "perfd_library(planted)\n") | {"tests/lint/layers.txt": "core/planted:\n"}, FINE),
    ("sizes", {f"{LISTS}/folders.txt": "planted: 40\n"}, "planted: remove its line"),
    ("sizes", {f"{LISTS}/subfolders.txt": "planted\n"}, "planted: remove its line"),
    ("classes", {HERE: class_of(25, 12)}, FINE),
    ("classes", {HERE: class_of(26)}, "Planted: 26 functions"),
    ("classes", {HERE: class_of(24, 0, OVERLOADS)}, "Planted: 26 functions"),
    ("classes", {HERE: class_of(25, 0, "  ~Planted() = default;\n  Planted(int) = delete;\n")}, FINE),
    ("classes", {HERE: class_of(0, 13)}, "13 data members"),
    ("classes", {HERE: class_of(0, 12, "  static constexpr int kMost = 3;\n")}, FINE),
    ("classes", {HERE: class_of(0, 12, "  int guarded_ ABSL_GUARDED_BY(mutex_) = 0;\n")}, "13 data members"),
    ("classes", slices_of(2), FINE),
    ("classes", slices_of(3), "Planted: 3 functions (limit 25), 0 data members (limit 12), 3 source files"),
    ("classes", {HERE: class_of(0, 8, STATE + "  State state_;\n")}, "13 data members"),
    ("classes", {HERE: class_of(0, 8, STATE + "  std::unique_ptr<State> state_;\n")}, "13 data members"),
    ("classes", {HERE: class_of(0, 7, STATE + "  State state_;\n")}, FINE),
    ("classes", {HERE: class_of(0, 11, STATE + "  std::vector<State> states_;\n")}, FINE),
    ("classes", OPTIONS, FINE),
    ("classes", {HERE: class_of(0, 0, "  int x_ ABSL_PLANTED(mutex_);\n")}, "planted.cc:5: ctags takes ABSL_PLANTED"),
    ("classes", {f"{LISTS}/classes.txt": "Planted 40 3 1\n"}, "Planted: remove its line"),
    ("classes", {HERE: class_of(26), f"{LISTS}/classes.txt": "Planted 27 0 0\n"},
     "lower its line in exceptions/classes.txt to 'Planted 26 0 0'"),
    ("classes", {HERE: class_of(27), f"{LISTS}/classes.txt": "Planted 26 0 0\n"}, "allows no more than 'Planted 26 0 0'"),
    ("classes", {f"agent/{i}/planted.h": class_of(26) for i in "ab"} |
     {f"{LISTS}/classes.txt": "agent/a Planted 26 0 0\n"},
     "agent/b/planted.h:2: class Planted"),
    ("classes", {HERE: class_of(26), f"{LISTS}/classes.txt": "Planted 26 0 0\n"}, FINE),
    ("prose", compare('absl::StartsWith(run.failure, "not run")'), "planted.cc: compares text for people: line 3"),
    ("prose", compare('absl::StrContains(std::string(status.message()),\n      "gone")'), "planted.cc: compares"),
    ("prose", compare('refusal.reason == kPlanted'), "planted.cc: compares"),
    ("prose", compare('"said" != verdict_text'), "planted.cc: compares"),
    ("prose", compare('Of(loop, 1).why.find("noisy") == 0'), "planted.cc: compares"),
    ("prose", {HERE: 'void f() {\n  std::string t = status.message();\n  g(t == "no");\n}\n'}, "planted.cc: compares"),
    ("prose", compare('reason.empty() || reason == "" || reason == Reason::kPlanted || message.node() == "n"'), FINE),
    ("prose", compare('a.reason == b.reason && protocol_version != kVersion'), FINE),
    ("prose", {HERE: '// reason == "x"\nconst char* k = "reason == \\"x\\"";\n'}, FINE),
    ("prose", {f"{LISTS}/prose.txt": "planted.cc: 2\n"}, "planted.cc: remove its line"),
    ("words", {HERE: "int Lab = 0;\n"} | WORDS, "planted.cc:1: Lab is an old word (Lab): write Injector"),
    ("words", {"tests/unit/planted.cc": "int FrontDesk;\n"} | WORDS, "planted.cc:1: FrontDesk is an old word (*Desk)"),
    ("words", {HERE: "int x;\nint Take2;\n"} | WORDS, "planted.cc:2: Take2 is an old word"),
    ("words", {HERE: "int Lab2, aLab, lab;  // Lab\nconst char* k = \"Lab\";\n#include <Lab>\n"} | WORDS, FINE),
]


class Tree:
    """A tree into which files are planted for one run at a time."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(ROOT / "tests/lint", folder / "tests/lint")

    def fill(self):
        for part in (*CODE, "proto", "deploy", "docs"):
            shutil.copytree(ROOT / part, self.folder / part)
        return self

    def empty(self):
        for part in (*CODE, "tests/unit"):
            (self.folder / part).mkdir(parents=True)
        for path in [self.folder / "tests/lint/words.txt", *(self.folder / LISTS).iterdir()]:
            path.write_text("# What may stand here.\n")
        return self

    def lint(self, *arguments):
        return subprocess.run([sys.executable, "-B", str(self.folder / "tests/lint/lint.py"), *arguments],
                              capture_output=True, text=True, timeout=60)

    def plant(self, files):
        """Adds to files that are there, makes the others; returns what takes all of it back."""
        before, made = {}, []
        for name, text in files.items():
            path = self.folder / name
            before[path] = path.read_text() if path.exists() else None
            if not path.parent.exists():
                path.parent.mkdir()
                made.append(path.parent)
            path.write_text((before[path] or "") + text)

        def take_back():
            for path, text in before.items():
                path.unlink(missing_ok=True) if text is None else path.write_text(text)
            for path in made:
                path.rmdir()
        return take_back


def passes(tree, check, files, expected):
    take_back = tree.plant(files)
    run = tree.lint(check)
    take_back()
    if run.returncode == (expected is not FINE) and (expected or "fine") in run.stdout:
        return True
    print(f"{check}: {files}: expected {expected or 'nothing'!r}:\n{run.stdout}{run.stderr}")
    return False


def list_only_shrinks(tree):
    """--update lowers lines and takes them away. It adds and raises only what --allow-new allows."""
    path = tree.folder / LISTS / "classes.txt"

    def updated(allow, code, there):
        run = tree.lint("classes", "--update", *allow)
        if run.returncode == code and there in path.read_text():
            return True
        print(f"--update {allow}: expected {code} and {there!r}:\n{run.stdout}{run.stderr}{path.read_text()}")
        return False

    take_back = tree.plant({HERE: class_of(26), f"{LISTS}/classes.txt": "Vanished 30 1 1\n"})
    good = updated([], 1, "\nVanished 30 1 1\n") and updated(["--allow-new"], 0, "here.\nPlanted 26 0 0\n")
    (tree.folder / HERE).write_text(class_of(27))
    good = good and updated([], 1, "\nPlanted 26 0 0\n")
    path.write_text(path.read_text().replace("Planted 26", "Planted 30"))
    good = good and updated([], 0, "\nPlanted 27 0 0\n")
    (tree.folder / HERE).unlink()
    good = good and updated([], 0, "here.\n") and "Planted" not in path.read_text()
    take_back()
    return good


def main():
    with tempfile.TemporaryDirectory() as scratch:
        copy, empty = Tree(pathlib.Path(scratch) / "copy").fill(), Tree(pathlib.Path(scratch) / "empty").empty()
        results = [passes(copy, *plant) for plant in IN_COPY] + [passes(empty, *plant) for plant in IN_EMPTY]
        results.append(list_only_shrinks(empty))
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
