#!/usr/bin/env python3
"""Runs the tests; called by tests/run.sh, which installs what is needed first.

    tests/run.sh                the small tier: what a change has to pass
    tests/run.sh all            all parts that have not yet passed for this state of the tree (--again: all of them)
    tests/run.sh PART...        these parts
    tests/run.sh list           the parts: what each holds, how long it took, whether it has passed
    tests/run.sh times          where the time of the last run went
    tests/run.sh slowest        its twenty slowest tests

The last line is "N passed, N failed, N skipped", counted by cases. A second try there is only for the label `timing`, for at
most two files of a run. A skip counts as a failure unless its reason is on tests/skips.txt."""
import signal
import sys
import time

import cases
import parts
import state
from run import Run, table
from screen import Screen, duration


def show_list():
    passed, took = state.Passed(state.tree_state()), state.Notes("parts.json").values
    print(f"{'part':14} {'about':>7} {'last':>9}  passed  holds")
    for part in parts.PARTS:
        last = duration(took[part.name]) if part.name in took else "-"
        print(f"{part.name:14} {part.minutes:3} min {last:>9}  {'yes' if passed.has(part.name) else 'no':6}  {part.holds}")


def finish(run, name, begin):
    run.close(name, time.monotonic() - begin)
    return 1 if run.failed() else 0


def note(passed, names, good):
    """Only what the tree is that was tested."""
    if state.tree_state() != passed.tree:
        return
    for name in names:
        (passed.add if good else passed.remove)(name)


def run_small(screen):
    run, passed, begin = Run(screen), state.Passed(state.tree_state()), time.monotonic()
    if run.run(parts.SMALL):
        note(passed, parts.HELD_BY_SMALL, True)
    return finish(run, "small", begin)


def run_parts(screen, wanted, again):
    run, passed, begin = Run(screen), state.Passed(state.tree_state()), time.monotonic()
    for number, part in enumerate(wanted, 1):
        if passed.has(part.name) and not again:
            screen.line(f"== {part.name} has passed for this tree (tests/run.sh {part.name} runs it again)")
            continue
        screen.line(f"== part {number} of {len(wanted)}: {part.name}, about {part.minutes} min: {part.holds}")
        since, before = time.monotonic(), len(run.cases)
        good = run.run(part.steps)
        took = state.Notes("parts.json")
        took.values[part.name] = round(time.monotonic() - since, 1)
        took.save()
        note(passed, [part.name], good)
        screen.line(f"== {part.name}: {cases.closing_line(run.cases[before:])} in {duration(took.values[part.name])}")
    return finish(run, " ".join(part.name for part in wanted) if len(wanted) < 4 else "all", begin)


def main(arguments):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    again, words = "--again" in arguments, [word for word in arguments if word != "--again"]
    if words == ["list"]:
        show_list()
    elif words == ["times"]:
        print(table(state.Notes("times.json").values))
    elif words == ["slowest"]:
        print((state.LOGS / "slowest.txt").read_text(), end="")
    elif words == ["all"]:
        return run_parts(Screen(), parts.PARTS, again)
    elif not arguments:
        return run_small(Screen())
    elif words and all(parts.part(word) for word in words):
        return run_parts(Screen(), [parts.part(word) for word in words], True)
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
