"""clang-tidy over what has changed, or over a part of the tree: one case for each file."""
import json
import math
import os
import subprocess
import tempfile
import time

import cases
import state
from screen import duration

FOLDERS = ("core/", "agent/", "daemon/", "client/", "deploy/")
MOST_CHANGED = 12  # files; the rest waits for the parts of `all`
FILE_LIMIT_S = 300


def compiled(build):
    """Sources of ours that the build compiles, by their paths below the root."""
    path = build / "compile_commands.json"
    if not path.exists():
        return []
    files = {os.path.relpath(entry["file"], state.ROOT) for entry in json.loads(path.read_text())}
    return sorted(name for name in files if name.startswith(FOLDERS))


def chunk_of(files, number, chunks):
    """Neighbours go to different chunks: folders differ in what their files take."""
    return files[number - 1::chunks]


def changed_names():
    """(since when, names): since the branch has left main, or, where nothing differs, the last commit."""
    for main in ("origin/main", "main"):
        try:
            base = state.git("merge-base", "HEAD", main).strip()
        except (OSError, subprocess.SubprocessError):
            continue
        names = state.git("diff", "--name-only", base) + state.git("ls-files", "-o", "--exclude-standard")
        if names.strip():
            return f"since {main}", names.split()
    try:
        return "in the last commit", state.git("show", "--format=", "--name-only", "HEAD").split()
    except (OSError, subprocess.SubprocessError):
        return "known (there is no repository)", []


def sources_of(names, files):
    """The sources among them, and for a header the source beside it."""
    wanted = {name for name in names} | {name.removesuffix(".h") + ".cc" for name in names if name.endswith(".h")}
    return [file for file in files if file in wanted]


def choose(step, build):
    """(files, a line that says what was chosen)."""
    files = compiled(build)
    if step.chunks:
        chosen = chunk_of(files, step.chunk, step.chunks)
        return chosen, f"clang-tidy: {len(chosen)} of {len(files)} files"
    since, names = changed_names()
    changed = sources_of(names, files)
    chosen = changed[::max(1, math.ceil(len(changed) / MOST_CHANGED))]
    rest = f"; {len(changed) - len(chosen)} more are left to the parts tidy-*" if len(chosen) < len(changed) else ""
    return chosen, f"clang-tidy: {len(chosen)} files that changed {since}{rest}"


def start(build, file):
    out = tempfile.TemporaryFile("w+")
    return time.monotonic(), out, subprocess.Popen(
        ["clang-tidy", "-p", build, "--quiet", file], cwd=state.ROOT, stdout=out, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL)


def finish(file, begin, out, process, screen):
    """The case, and the first findings on the screen when there are any that count."""
    out.seek(0)
    text, seconds = out.read(), time.monotonic() - begin
    out.close()
    if process.returncode == 0:
        return cases.Case("clang-tidy", file, cases.PASSED, seconds)
    for line in [line for line in text.splitlines() if "error:" in line][:10] or text.splitlines()[-5:]:
        screen.line(f"    {line[:300]}")
    return cases.Case("clang-tidy", file, cases.FAILED, seconds, "clang-tidy found something")


def check(build, files, screen):
    """All files, as many at a time as there are CPUs."""
    waiting, running, done, begin = list(files), {}, [], time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                file = waiting.pop(0)
                running[file] = start(build, file)
            time.sleep(0.1)
            for file, (since, out, process) in list(running.items()):
                if process.poll() is None and time.monotonic() - since > FILE_LIMIT_S:
                    process.kill()
                    process.wait()
                if process.poll() is not None:
                    del running[file]
                    done.append(finish(file, since, out, process, screen))
            left = (time.monotonic() - begin) / max(1, len(done)) * (len(files) - len(done))
            screen.moment(f"[{len(done)} of {len(files)}] clang-tidy {', '.join(running)}; about {duration(left)} left")
    finally:
        for _, _, process in running.values():
            process.kill()
            process.wait()
    return done
