#!/usr/bin/env python3
"""Runs a file of pytest in name spaces of its own, so that several of them can run side by side: nobody's `--command NAME` finds
another one's ranks, nobody takes another one's port, socket in /run or network device.

    isolated.py FILE [ARGUMENTS OF PYTEST]            as root; elsewhere, or where the machine refuses, without them
    isolated.py --shared FILE [ARGUMENTS OF PYTEST]   in the machine's own, always
    isolated.py --possible                            exit code 0: it would have name spaces here

/tmp, /run and /dev/shm are its own; the tree, the build and the results are the machine's. Inside a PID name space everything
that is measured, altered and forked works as outside: process ids are those that /proc shows there.
With PERFD_RESULTS=FOLDER it writes what happened to each case to a file of FOLDER, by ctest's name of the test."""
import os
import pathlib
import subprocess
import sys

import cluster
import nodes

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[2]
INSIDE = "--inside"
NAMES = {"e2e": "e2e_", "deploy": "deploy_", "runner": "lint_"}  # what ctest calls the tests of these folders
NAMESPACES = ("--mount", "--pid", "--fork", "--mount-proc", "--ipc", "--net", "--kill-child=KILL")


def possible():
    """A container may give root no name spaces."""
    if os.geteuid() != 0:
        return False
    try:
        return subprocess.run(nodes.unshare(*NAMESPACES, "ip", "link", "add", "side0", "type", "veth"), capture_output=True,
                              timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def pytest_command(file, arguments):
    name = NAMES.get(file.parent.name, "") + file.stem.removesuffix("_test")
    command = [sys.executable, "-B", "-m", "pytest", "-v", "-s", "-o", f"cache_dir={cluster.BUILD}/pytest/{name}", file]
    if results := os.environ.get("PERFD_RESULTS"):
        command.append(f"--junitxml={results}/{name}.xml")
    return [str(word) for word in (*command, *arguments)]


def own_folders():
    """Mounts, seen by nobody outside: what has to be kept is put aside first."""
    kept = [p for p in (ROOT, cluster.BUILD, os.environ.get("PERFD_RESULTS", "")) if str(p).startswith("/tmp/")]
    aside = pathlib.Path("/run/kept")
    nodes.run("mount", "-t", "tmpfs", "-o", "mode=755", "none", "/run")
    for number, path in enumerate(kept):
        (aside / str(number)).mkdir(parents=True)
        nodes.run("mount", "--rbind", path, aside / str(number))
    for folder in ("/tmp", "/dev/shm"):
        nodes.run("mount", "-t", "tmpfs", "-o", "mode=1777", "none", folder)
    for number, path in enumerate(kept):
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
        nodes.run("mount", "--move", aside / str(number), path)
    nodes.run("ip", "link", "set", "lo", "up")
    # With lo alone getaddrinfo(AI_ADDRCONFIG), which Slurm calls, finds no address at all.
    nodes.run("ip", "link", "add", "side0", "type", "veth", "peer", "name", "side1")
    nodes.run("ip", "address", "add", "198.18.79.1/24", "dev", "side0")
    nodes.run("ip", "link", "set", "side0", "up")
    nodes.run("ip", "link", "set", "side1", "up")


def first_process(command):
    """Of the name space: waits for whatever is left to it, ends with the exit code of pytest and takes all others along."""
    child = subprocess.Popen(command)
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status)


def main(arguments):
    option = arguments.pop(0) if arguments[0].startswith("--") else ""
    if option == "--possible":
        return 0 if possible() else 1
    command = pytest_command(pathlib.Path(arguments[0]).resolve(), arguments[1:])
    if option == INSIDE:
        own_folders()
        return first_process(command)
    if option != "--shared" and possible():
        command = nodes.unshare(*NAMESPACES, sys.executable, "-B", str(HERE), INSIDE, *arguments)
    os.execvp(command[0], command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
