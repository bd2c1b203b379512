"""The source tree as the checks see it: its files, their text, and their code without comments and literals."""
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = ("core", "agent", "daemon", "client")
TESTS = ("tests/unit", "tests/integration", "tests/bench", "tests/fuzz")

# A comment, or a literal. The raw string comes before the plain one; a quote after a digit separates digits.
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|R"(?P<delimiter>[^\s()\\"]{0,16})\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'", re.S)


@functools.cache
def sources(suffixes=(".h", ".cc"), tops=CODE):
    """Each source file below the given folders, with its name from the root."""
    return [(path, path.relative_to(ROOT).as_posix()) for top in tops for path in sorted((ROOT / top).rglob("*"))
            if path.suffix in suffixes and path.is_file()]


def folders(tops=CODE):
    """Each folder below the given ones, themselves included, with its name from the root."""
    for top in tops:
        for path in sorted([ROOT / top, *(ROOT / top).rglob("*")]):
            if path.is_dir():
                yield path, path.relative_to(ROOT).as_posix()


def without(text, fill):
    """The text with spaces for comments and `fill` for what stands in literals. Lines keep their numbers."""
    def blank(match):
        token = match[0]
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        token = re.sub("^R", "", token)
        return token[0] + re.sub(r"[^\n]", fill, token[1:-1]) + token[-1]
    return TOKEN.sub(blank, text)


@functools.cache
def code(path):
    """The code with its literals, but not what they say: "~~~" for a text of three characters."""
    return without(path.read_text(), "~")


@functools.cache
def identifiers(path):
    """The identifiers of a file, each with its first line. Comments, literals and include lines have none."""
    text = re.sub(r"^[ \t]*#[ \t]*include\b[^\n]*", "", without(path.read_text(), " "), flags=re.M)
    first = {}
    for number, line in enumerate(text.splitlines(), 1):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            first.setdefault(name, number)
    return first
