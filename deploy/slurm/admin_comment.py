#!/usr/bin/env python3
"""Writes the summary of each profiled job into its AdminComment, where sacct and job portals show it.

Run it every few minutes by a timer on a host where Slurm's commands work, as an operator of Slurm who may see all profiles
in perfd; never from Prolog or Epilog, which must not call Slurm. What was written is remembered in --state. Jobs that are over
need Slurm's accounting database (slurmdbd): slurmctld changes only those that run. What fails is tried again for a week.

  admin_comment.py --state /var/lib/perfd/admin_comment.json [--perfctl PATH] [--address ADDRESS] [--dry-run]
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time

LONGEST = 250   # characters
REMEMBERED = 5000  # profiles
OLDEST_SECONDS = 7 * 86400


def run(command):
    """Its output; None when it failed, which the next turn of the timer tries again."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"admin_comment: {command[0]}: {error}", file=sys.stderr)
        return None
    if done.returncode not in (0, 8):  # perfctl: 8 is a partial result
        print(f"admin_comment: {' '.join(command[:3])}: {done.stderr.strip()[:200]}", file=sys.stderr)
        return None
    return done.stdout


def read_state(path):
    try:
        with open(path) as file:
            return list(json.load(file))
    except FileNotFoundError:
        return []


def write_state(path, done):
    with open(f"{path}.new", "w") as file:
        json.dump(done[-REMEMBERED:], file)
    os.replace(f"{path}.new", path)


def comment(job, line, dry_run):
    """slurmctld changes jobs that run, the accounting database those that are over."""
    text = re.sub(r"[^ -~]|[\"'\\=]", " ", line.strip())[:LONGEST]
    commands = (["scontrol", "update", f"JobId={job}", f"AdminComment={text}"],
                ["sacctmgr", "-i", "modify", "job", "where", f"jobid={job}", "set", f"AdminComment={text}"])
    if dry_run:
        print(f"{job}: {text}")
        return True
    return any(run(command) is not None for command in commands)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", required=True, help="file with the profiles that were written already")
    parser.add_argument("--perfctl", default="/usr/bin/perfctl", help="path of perfd's client")
    parser.add_argument("--address", default="unix:/run/perfd/perfd.sock", help="where perfd listens")
    parser.add_argument("--dry-run", action="store_true", help="print the comments, write none")
    flags = parser.parse_args()
    client = [flags.perfctl, "--address", flags.address]
    listed = run([*client, "list", "--limit", "1000", "--json"])
    hooked = run([*client, "hook", "list", "--limit", "1000", "--json"])
    if listed is None or hooked is None:
        return 1
    # What people submit may name anybody's job: only the scheduler's own word says whose a profile is.
    job_of = {entry["profile"]: entry["job"] for entry in json.loads(hooked)["jobs"] if entry["job"].isdigit()}
    done, failed = read_state(flags.state), 0
    oldest_ns = (time.time() - OLDEST_SECONDS) * 1e9
    for profile in reversed(json.loads(listed)["profiles"]):  # oldest first
        job = job_of.get(profile["id"])
        if job is None or profile["id"] in done or profile["state"] not in ("DONE", "PARTIAL") \
                or profile["finished_unix_ns"] < oldest_ns:
            continue
        line = run([*client, "report", profile["id"], "--line"])
        if line is not None and comment(job, line, flags.dry_run):
            done.append(profile["id"])
        else:
            failed += 1
    if not flags.dry_run:
        write_state(flags.state, done)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
