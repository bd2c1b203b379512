#!/usr/bin/env python3
"""The archive of finished profiles, and the history of a program from it and from the store."""
import json
import sys
import time

import cluster
import prometheus_test
from cluster import Cluster, PUPPETS, wait_until


def profile(c):
    job = c.mpirun("job", 2, [PUPPETS / "counting", 200000, 60000])
    wait_until(lambda: len(cluster.ranks_of("counting")) == 2, 20, "the ranks run")
    profile = c.submit("--command", "counting", "--duration", "2s", "--variants", "none")
    c.wait_over(profile)
    job.terminate()
    wait_until(lambda: not cluster.ranks_of("counting"), 30, "the job ends")
    return profile


def files(folder):
    return sorted(folder.glob("*/*/*/*.json"))


def metrics(c):
    text = prometheus_test.fetch(c.metrics_url())
    return {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if line.startswith("perfd_archive_")}


def archive_check(c):
    run = c.perfctl("doctor", "--json")
    checks = [check for place in json.loads(run.stdout)["places"] for check in place["checks"]]
    return next(check for check in checks if check["name"] == "archive")


def ids(c, *arguments):
    return [entry["profile"] for entry in c.json("history", *arguments)["profiles"]]


def test_every_finished_profile_is_archived():
    c = Cluster()
    folder = c.dir / "archive"
    c.daemon_flags = ["--archive", folder]
    with c:
        first = profile(c)
        file = wait_until(lambda: files(folder), 20, "the file is there")[0]
        assert file.name == f"{first}.json" and file.parent == folder / time.strftime("%Y/%m/%d", time.gmtime()), file
        assert not folder.stat().st_mode & 0o7 and not file.stat().st_mode & 0o7
        entry = json.loads(file.read_text())
        report = c.json("report", first)
        assert entry["summary"] == c.perfctl("report", first, "--line").stdout.strip(), entry["summary"]
        assert entry["loops"] == report["loops"] and entry["status"] == report["status"]
        assert entry["job"]["command"] == "counting" and entry["job"]["ranks"] == 2, entry["job"]
        assert archive_check(c)["ok"]

        # Somebody puts a file in its place: profiles go on, everyone is told, and later nothing is missing.
        folder.rename(c.dir / "away")
        folder.write_text("in the way")
        second = profile(c)
        wait_until(lambda: not archive_check(c)["ok"], 20, "doctor says so")
        check = archive_check(c)
        assert check["optional"] and str(folder) in check["found"] and "1 reports wait" in check["fix"], check
        shown = wait_until(lambda: (m := metrics(c)) and m["perfd_archive_healthy"] == 0 and m, 20, "metrics say so")
        assert shown["perfd_archive_pending"] == 1 and shown["perfd_archive_failures_total"] >= 1, shown
        assert "cannot be archived" in c.log("perfd")
        folder.unlink()
        (c.dir / "away").rename(folder)
        wait_until(lambda: len(files(folder)) == 2, 70, "what waited is written")
        assert archive_check(c)["ok"]

        # A daemon that starts finds what is missing.
        c.daemon.terminate()
        c.daemon.wait(15)
        files(folder)[0].unlink()
        c.start_daemon()
        wait_until(lambda: len(files(folder)) == 2, 20, "what was missing is written again")

        both = [first, second]
        assert ids(c) == ids(c, "counting") == ids(c, "--archive", folder) == both
        assert c.perfctl("history", "nothing").returncode == 3
        by_rpc, by_folder = c.json("history"), c.json("history", "--archive", folder)
        assert by_rpc == by_folder, (by_rpc, by_folder)
        heaviest = by_rpc["loops"][0]
        assert heaviest["verdict"] == "too_few" and all(heaviest["points"]), heaviest
        assert heaviest["points"][0]["share"] == report["loops"][0]["share"]
        text = c.perfctl("history").stdout
        assert "counting: 2 profiles" in text and "too few profiles" in text, text


if __name__ == "__main__":
    cluster.run_tests(sys.modules[__name__])
