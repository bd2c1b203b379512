"""Checks of sizes: lines of a file and of a function, files of a folder; a sub-folder is a target of its own."""
import re

import exceptions
import includes
import tree

FILE_LIMIT, FUNCTION_LIMIT, FOLDER_LIMIT = 600, 60, 20
TARGET = re.compile(r"^\s*(?:perfd_library|perfd_binary|add_library|add_executable)\s*\(", re.M)


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


def check_files():
    for path, name in tree.sources():
        text = path.read_text()
        if "lint: data table" in text:
            continue
        lines = text.count("\n")
        if lines > FILE_LIMIT:
            yield f"{name}: {lines} lines, limit {FILE_LIMIT}"
        for start, length in function_lengths(text):
            if length > FUNCTION_LIMIT:
                yield f"{name}:{start}: a function of {length} lines, limit {FUNCTION_LIMIT}"


def large_folders():
    found = {}
    for path, name in tree.folders():
        count = sum(1 for f in path.iterdir() if f.is_file())
        if count > FOLDER_LIMIT:
            found[name] = exceptions.Excess((count,), f"{name}: {count} files, limit {FOLDER_LIMIT}")
    return found


def lacks(path, name, layers):
    """What a sub-folder with sources lacks to be a module."""
    if name not in layers:
        yield "a line of its own in tests/lint/layers.txt"
    build = path / "CMakeLists.txt"
    if not build.exists() or not TARGET.search(build.read_text()):
        yield "a CMakeLists.txt with a target"


def plain_subfolders():
    found, layers = {}, includes.read_layers()
    for path, name in tree.folders():
        if name in tree.CODE or not any(f.suffix in (".h", ".cc") for f in path.iterdir()):
            continue
        missing = list(lacks(path, name, layers))
        if missing:
            found[name] = exceptions.Excess((), f"{name}: a sub-folder is a target: it lacks {' and '.join(missing)}")
    return found


LISTS = {"folders": large_folders, "subfolders": plain_subfolders}


def check():
    yield from check_files()
    for name, find in LISTS.items():
        yield from exceptions.check(name, find())
