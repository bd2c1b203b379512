"""Lists of what is over a limit today. A list may only shrink: a line holds today's figures, and none may get higher.

A line is `key figure figure ...`; the key may end in a colon. Lines that start with # are comments.
"""
import dataclasses

import tree

FOLDER = "tests/lint/exceptions"


@dataclasses.dataclass(frozen=True)
class Excess:
    figures: tuple  # in the order of the list; empty where being there is all
    message: str  # the finding, if nothing excuses it


def path_of(name):
    return tree.ROOT / FOLDER / f"{name}.txt"


def read(name):
    """The figures by key."""
    listed = {}
    for line in path_of(name).read_text().splitlines():
        words = line.split()
        if not words or line.startswith("#"):
            continue
        count = next((i for i, word in enumerate(reversed(words)) if not word.isdigit()), len(words))
        key = " ".join(words[:len(words) - count])
        listed[key.rstrip(":")] = tuple(map(int, words[len(words) - count:]))
    return listed


def line_of(key, figures):
    colon = ":" if figures and "/" in key and " " not in key else ""
    return " ".join([key + colon, *map(str, figures)])


def is_higher(excess, figures):
    return len(figures) != len(excess.figures) or any(now > then for now, then in zip(excess.figures, figures))


def check(name, found):
    """What is found over the limits against the list: new, grown, and lines that must shrink or go."""
    listed, place = read(name), f"exceptions/{name}.txt"
    for key, excess in found.items():
        if key not in listed:
            yield excess.message
        elif is_higher(excess, listed[key]):
            yield f"{excess.message}; {place} allows no more than '{line_of(key, listed[key])}'"
        elif excess.figures != listed[key]:
            yield f"{key}: lower its line in {place} to '{line_of(key, excess.figures)}'"
    for key in listed.keys() - found.keys():
        yield f"{key}: remove its line from {place}: it is within the limits, or is no more"


def update(name, found, allow_new):
    """Writes today's figures into the list. Returns what stops it: lines that would be new or higher."""
    listed = read(name)
    worse = [f"{line_of(key, excess.figures)}: " + ("is higher" if key in listed else "is new")
             for key, excess in found.items() if key not in listed or is_higher(excess, listed[key])]
    if worse and not allow_new:
        return worse
    head = [line for line in path_of(name).read_text().splitlines() if line.startswith("#")]
    lines = [line_of(key, found[key].figures) for key in sorted(found)]
    path_of(name).write_text("\n".join(head + lines) + "\n")
    return []
