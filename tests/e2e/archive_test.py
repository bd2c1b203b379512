#!/usr/bin/env python3
"""The archive of finished profiles, and the history of a program from it and from the store."""
import copy
import json
import os
import pathlib
import subprocess
import time

import pytest

import cluster
import prometheus_test
from cluster import BIN, Cluster, PUPPETS, wait_until
from worse_days_test import Tidy, fill

DAY_NS = 24 * 3600 * 10**9


def profile(c, *arguments):
    arguments = arguments or ("--duration", "2s", "--variants", "none")
    job = c.mpirun("job", 2, [PUPPETS / "counting", 200000, 60000])
    wait_until(lambda: len(cluster.ranks_of("counting")) == 2, 20, "the ranks run")
    profile = c.submit("--command", "counting", *arguments)
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


@pytest.mark.small
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


def test_the_disk_of_the_archive_is_full():
    """One page is free: the file begins, and does not end."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it mounts a small disk")
    c = Tidy().small_disk("archive", 1024)
    folder, ballast = c.dir / "archive", c.dir / "archive/ballast"
    c.daemon_flags = ["--archive", folder]
    with c:
        def kept():
            return sorted(path for path in folder.rglob("*") if path.is_file() and path != ballast)

        first = profile(c)
        wait_until(lambda: files(folder), 20, "the file is there")
        [whole] = kept()
        text = whole.read_bytes()
        fill(folder)
        os.truncate(ballast, ballast.stat().st_size - 4096)
        assert len(text) > 4096, "too short to be cut"
        second = profile(c)
        assert c.json("status", second)["state"] == "DONE" and c.json("report", second)["loops"]
        check = wait_until(lambda: not (check := archive_check(c))["ok"] and check, 20, "doctor says so")
        assert "No space left on device" in check["found"] and str(folder) in check["found"], check
        assert check["optional"] and "free space in" in check["fix"] and "1 reports wait" in check["fix"], check
        shown = wait_until(lambda: (m := metrics(c)) and m["perfd_archive_healthy"] == 0 and m, 20, "metrics say so")
        assert shown["perfd_archive_pending"] == 1 and shown["perfd_archive_written_total"] == 1, shown
        failures = shown["perfd_archive_failures_total"]
        wait_until(lambda: metrics(c)["perfd_archive_failures_total"] > failures >= 1, 30, "it is tried again")
        assert c.log("perfd").count("cannot be archived") == 1, "said once"
        # Between two attempts; what is whole stays whole.
        wait_until(lambda: kept() == [whole] and os.statvfs(folder).f_bavail == 1, 10, f"nothing half-written: {kept()}")
        assert whole.read_bytes() == text
        # A daemon that ends with it and comes back still knows what is missing.
        c.daemon.terminate()
        assert c.daemon.wait(15) == 0
        c.start_daemon()
        c.wait_connected(1)
        wait_until(lambda: metrics(c)["perfd_archive_healthy"] == 0, 20, "it was tried again")
        ballast.unlink()
        wait_until(lambda: len(files(folder)) == 2, 70, "what waited is written")
        assert json.loads(files(folder)[1].read_text())["job"]["profile"] == second and len(kept()) == 2, kept()
        wait_until(lambda: (m := metrics(c)) and m["perfd_archive_healthy"] == 1 and m["perfd_archive_pending"] == 0, 20,
                   "metrics say that it is over")
        assert archive_check(c)["ok"] and whole.read_bytes() == text
        assert ids(c, "--archive", folder) == [first, second]


class Series:
    """An archive of made-up days: one profile that was measured here, as if it had been measured once a day since 2026-01-01."""

    def __init__(self, folder, entry):
        self.folder, self.entry, self.count = folder, entry, 0

    def add(self, edit=lambda entry: None):
        self.count += 1
        entry = copy.deepcopy(self.entry)
        begin = 1767225600 * 10**9 + (self.count - 1) * DAY_NS
        lasted = entry["status"]["finished_unix_ns"] - entry["status"]["started_unix_ns"]
        name = f"p-{self.count:06}"
        entry["status"] |= {"id": name, "submitted_unix_ns": begin, "started_unix_ns": begin,
                            "finished_unix_ns": begin + lasted}
        entry["job"] |= {"profile": name, "started_unix_ns": begin, "finished_unix_ns": begin + lasted}
        edit(entry)
        day = self.folder / time.strftime("%Y/%m/%d", time.gmtime(begin // 10**9))
        day.mkdir(parents=True)
        (day / f"{name}.json").write_text(json.dumps(entry))

    def history(self, *arguments):
        """Without a daemon."""
        run = subprocess.run([str(BIN / "perfctl"), "history", "--archive", str(self.folder), *arguments], capture_output=True,
                             text=True, timeout=60, stdin=subprocess.DEVNULL,
                             env={**os.environ, "PERFD_ADDRESS": "unix:/nowhere"})
        assert run.returncode == 0, run
        return run.stdout

    def changes(self):
        return {loop["loop_id"]: loop for loop in json.loads(self.history("--json"))["loops"] if loop["verdict"] != "steady"}


def measured_well(verdict):
    """Twice the time is beyond what its entries differ by: the fastest is not much faster than the median."""
    figures = [f for rank in verdict["ranks"] for f in rank["figures"] if f["variant"] == "REF" and f["thread"] == "team"]
    return bool(figures) and all(f["cycles_min"] > 0.75 * f["cycles"] > 0 for f in figures)


def slower(loop, factor):
    """Its entries take so much longer; an edit of an archived profile."""
    def edit(entry):
        edited = 0
        for verdict in entry["verdicts"]:
            figures = [*verdict["variants"], *(f for rank in verdict["ranks"] for f in rank["figures"])]
            for figure in figures if verdict["loop_id"] == loop else []:
                if figure["variant"] == "REF":
                    figure["cycles"] *= factor
                    if "cycles_min" in figure:
                        figure["cycles_min"] *= factor
                    edited += 1
        assert edited >= 2, entry["verdicts"]
    return edit


def lighter(loop, factor):
    """It has so much of its share; the rest of the time is spent outside of loops."""
    def edit(entry):
        [row] = [row for row in entry["loops"] if row["id"] == loop]
        for key in ("share", "share_low", "share_high", "wall_share", "wall_share_low", "wall_share_high"):
            row[key] = row[key] and row[key] * factor  # none where an agent was older
    return edit


def without_wall_shares(entry):
    """As an agent sent it that did not know them."""
    entry = copy.deepcopy(entry)
    for row in entry["loops"]:
        row |= {key: None for key in ("wall_share", "wall_share_low", "wall_share_high")}
    return entry


def test_history_tells_which_loop_got_slower():
    c = Cluster()
    c.daemon_flags = ["--archive", c.dir / "archive"]
    with c:
        for attempt in range(1, 4):
            profile(c, "--duration", "6s", "--variants", "LS", "--overhead", "30%")
            archived = wait_until(lambda: len(found := files(c.dir / "archive")) == attempt and found, 20, "the file is there")
            real = json.loads(archived[-1].read_text())
            measured = [verdict["loop_id"] for verdict in real["verdicts"] if measured_well(verdict)]
            if measured:
                break
            print("      no loop was measured well on this busy machine: once more", flush=True)
        assert measured, real["verdicts"]
        loop, row = measured[0], next(row for row in real["loops"] if row["id"] == measured[0])
        place = f"{pathlib.Path(row['file']).name}:{row['first_line']}"

        days = Series(c.dir / "days", real)
        for _ in range(5):
            days.add()
        assert {found["verdict"] for found in days.changes().values()} == {"too_few"}, days.changes()
        assert "too few profiles" in days.history()
        days.add()
        assert days.changes() == {} and "slower" not in days.history() and "heavier" not in days.history(), days.history()
        # Three days are a change; one and two might be chance.
        for count in (1, 2):
            days.add(slower(loop, 2))
            assert days.changes() == {}, (count, days.history())
        days.add(slower(loop, 2))
        [(name, change)] = days.changes().items()
        assert name == loop and change["verdict"] == "up" and change["quantity"] == "cycles_per_iteration", change
        assert change["since"] == "p-000007" and abs(change["after"] / change["before"] - 2) < 1e-6, change
        text = days.history()
        [line] = [line for line in text.splitlines() if "slower" in line]
        assert "slower since p-000007 (2026-01-07)" in line and "+100 %" in line and loop[:8] in line and place in line, text
        assert "p-000007" in days.history("--loop", loop[:8]), text
        print(line.strip())

        # Without variants only shares are known, of elapsed time where agents send them; and a share is heavier, not slower.
        real["verdicts"] = []
        assert row["wall_share"], row
        for quantity, entry in (("wall_share", real), ("share", without_wall_shares(real))):
            shares = Series(c.dir / quantity, entry)
            for factor in (0.6, 0.6, 0.6, 1, 1, 1, 1):
                shares.add(lighter(loop, factor))
            [(name, change)] = shares.changes().items()
            assert name == loop and change["verdict"] == "up" and change["quantity"] == quantity, change
            text = shares.history()
            assert "heavier since p-000004 (2026-01-04)" in text and "slower" not in text, text


if __name__ == "__main__":
    cluster.pytest_file(__file__)
