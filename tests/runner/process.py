"""Runs one command to its end: its output goes to a log and line by line to a function; it has a time limit, and a tick each
second. What is cut off is ended with all that it started in its process group."""
import contextlib
import os
import selectors
import signal
import subprocess
import time

KILLED_AFTER_S = 30


class TimeLimit(Exception):
    pass


def end(process):
    """The process group: asked first, then killed; its leader may have ended before others."""
    for number, seconds in ((signal.SIGTERM, KILLED_AFTER_S), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)


def lines_of(process, log, on_line, on_tick, limit_s):
    begin, rest = time.monotonic(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if selector.select(1.0):
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    break
                log.write(piece)
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    on_line(line.decode(errors="replace"))
            on_tick()
            if time.monotonic() - begin > limit_s:
                raise TimeLimit
    if rest:
        on_line(rest.decode(errors="replace"))


def run(command, log, limit_s, on_line=lambda line: None, on_tick=lambda: None, env=None, cwd=None):
    """Its exit code; TimeLimit after so many seconds."""
    with open(log, "ab") as out, subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})}, cwd=cwd, start_new_session=True) as process:
        try:
            lines_of(process, out, on_line, on_tick, limit_s)
            return process.wait(KILLED_AFTER_S)
        except subprocess.TimeoutExpired:
            end(process)
            raise TimeLimit from None
        except BaseException:
            end(process)
            raise


def passing(command, limit_s, env=None, cwd=None):
    """As run, for a command that writes to the screen itself."""
    with subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})},
                          cwd=cwd, start_new_session=True) as process:
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            end(process)
            raise TimeLimit from None
        except BaseException:
            end(process)
            raise


def succeeds(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
                          check=False).returncode == 0


def output(*command, cwd=None, seconds=60):
    """What a short command prints; "" when it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=cwd, timeout=seconds,
                          stdin=subprocess.DEVNULL, check=False)
    return done.stdout if done.returncode == 0 else ""
