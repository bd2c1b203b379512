"""What is remembered between runs, in build/test-logs: how long tests and parts took, and which parts have passed for this tree."""
import hashlib
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOGS = ROOT / "build/test-logs"


def git(*arguments, root=ROOT):
    """Whoever owns the folder. Fails where there is no repository."""
    return subprocess.run(["git", "-c", "safe.directory=*", "-C", str(root), *arguments], capture_output=True, text=True,
                          timeout=60, check=True).stdout


def tree_state(root=ROOT):
    """A digest of all files that git has or would take: the same after a checkout, another after any edit."""
    try:
        names = [n for n in git("ls-files", "-co", "--exclude-standard", "-z", root=root).split("\0") if n]
    except (OSError, subprocess.SubprocessError):
        names = [p.relative_to(root).as_posix() for p in root.rglob("*")
                 if p.is_file() and not {"build", ".git", "__pycache__"} & set(p.relative_to(root).parts)]
    digest = hashlib.sha256()
    for name in sorted(set(names)):
        path = root / name
        content = path.read_bytes() if path.is_file() else b"gone"
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:20]


class Notes:
    """A JSON file that is written as a whole."""

    def __init__(self, name, folder=LOGS):
        self.path = folder / name
        try:
            self.values = json.loads(self.path.read_text())
        except (OSError, ValueError):
            self.values = {}

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.values, indent=1, sort_keys=True) + "\n")
        new.replace(self.path)


class Passed:
    """The parts that have passed for one state of the tree."""

    def __init__(self, tree, folder=LOGS):
        self.notes, self.tree = Notes("passed.json", folder), tree
        if self.notes.values.get("tree") != tree:
            self.notes.values = {"tree": tree, "parts": []}

    def has(self, part):
        return part in self.notes.values["parts"]

    def add(self, part):
        self.notes.values["parts"] = sorted({*self.notes.values["parts"], part})
        self.notes.save()

    def remove(self, part):
        if self.has(part):
            self.notes.values["parts"].remove(part)
            self.notes.save()
