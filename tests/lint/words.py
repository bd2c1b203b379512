"""Old words do not come back: no identifier of the code or its tests matches a line of words.txt."""
import fnmatch
import functools
import re

import tree


class Words:
    """What words.txt says: whole identifiers, and patterns for more than one."""

    def __init__(self, text):
        self.whole, self.patterns = {}, []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            old, arrow, new = (part.strip() for part in line.partition(" -> "))
            if not (old and arrow and new):
                raise SystemExit(f"tests/lint/words.txt:{number}: write 'old -> new'")
            if re.fullmatch(r"\w+", old):
                self.whole[old] = (old, new)
            else:
                regex = old[1:-1] if old.startswith("/") and old.endswith("/") else fnmatch.translate(old)
                self.patterns.append((re.compile(regex), (old, new)))

    @functools.cache
    def find(self, identifier):
        """The line that an identifier matches, or None."""
        if identifier in self.whole:
            return self.whole[identifier]
        return next((line for pattern, line in self.patterns if pattern.fullmatch(identifier)), None)


def check():
    words = Words((tree.ROOT / "tests/lint/words.txt").read_text())
    for path, name in tree.sources(tops=tree.CODE + tree.TESTS):
        for identifier, line in tree.identifiers(path).items():
            if found := words.find(identifier):
                yield f"{name}:{line}: {identifier} is an old word ({found[0]}): write {found[1]}"
