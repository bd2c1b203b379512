#!/usr/bin/env python3
"""Every query of every dashboard on a real Prometheus that scrapes a real perfd which profiled a real job, as
deploy/observability/start.sh starts it: each returns data, for all jobs and for the one that was measured."""
import json
import math
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

import cluster
import replay_test
from cluster import Cluster, PUPPETS, wait_until

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy/observability"
# What Grafana puts in by itself.
GIVEN = {"__rate_interval": "2m", "__interval": "15s", "__range": "10m", "datasource": "test"}

pytestmark = pytest.mark.skipif(not shutil.which("promtool") or not shutil.which("prometheus"), reason="Prometheus is not installed")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    def __init__(self, c, target):
        listen = f"127.0.0.1:{free_port()}"
        self.address = f"http://{listen}"
        c.spawn("prometheus", [DEPLOY / "start.sh", "--cluster", "test", "--target", target, "--data", c.dir / "prometheus",
                               "--listen", listen, "--interval", "1s"])
        wait_until(lambda: self.query('up{job="perfd", cluster="test"} == 1'), 30, "Prometheus scraped perfd")

    def get(self, path, **arguments):
        url = f"{self.address}/api/v1/{path}?" + urllib.parse.urlencode(arguments, doseq=True)
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.loads(answer.read())["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None  # it still starts
            raise AssertionError(f"{arguments}: {json.loads(error.read()).get('error')}") from None
        except OSError:
            return None

    def query(self, expression):
        data = self.get("query", query=expression)
        return data["result"] if data else None

    def values(self, expression):
        """The figures that are numbers."""
        return [v for series in self.query(expression) or [] if not math.isnan(v := float(series["value"][1]))]


def substitute(expression, values):
    """As Grafana does: $name and ${name}, longer names first."""
    for name in sorted(values, key=len, reverse=True):
        expression = re.sub(rf"\$\{{{name}(:\w+)?\}}|\${name}\b", lambda _: values[name], expression)
    assert "$" not in expression, f"a variable is left in {expression}"
    return expression


def dashboards():
    boards = [json.loads(path.read_text()) for path in sorted((DEPLOY / "grafana/dashboards").glob("*.json"))]
    assert len(boards) >= 5, boards
    return boards


def empty_variables(prometheus, board, values):
    """Variables that would offer nothing, or not what `values` has."""
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            definition = substitute(variable["definition"], values)
            selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", definition).groups()
            found = prometheus.get(f"label/{label}/values", **{"match[]": selector})
            if not found or values[variable["name"]] not in (".*", *found):
                yield f"{board['title']}: ${variable['name']}: {definition} -> {found}"


def empty_panels(prometheus, board, values):
    """Queries without data, or whose data are no numbers."""
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            expression = substitute(target["expr"], values)
            if not prometheus.values(expression):
                yield f"{board['title']} / {panel['title']} ({target['refId']}): {expression}"


NEED_A_PMU = ("Loops by the time of their loads",)  # or a recording


def check_dashboards(prometheus, profile, user, program, *, without=()):
    """`without`: titles of panels that cannot have data here, and must have none."""
    one = {**GIVEN, "cluster": "test", "user": user, "program": program, "job": profile}
    everything = {**one, "cluster": ".*", "user": ".*", "program": ".*"}  # "All"; a job is always one
    queries = sum(len(panel.get("targets", [])) for board in dashboards() for panel in board["panels"])
    faults = []
    for values in (one, everything):
        for board in dashboards():
            faults += [*empty_variables(prometheus, board, values), *empty_panels(prometheus, board, values)]
    expected = [fault for fault in faults if any(f" / {title} (" in fault for title in without)]
    faults = [fault for fault in faults if fault not in expected]
    assert bool(expected) == bool(without), f"{without} have data: leave them to the check"
    assert not faults, f"{len(faults)} without data:\n" + "\n".join(faults[:20])
    # The check finds what is wrong.
    broken = [{"refId": "A", "expr": expression} for expression in
              ("perfd_nonsense", 'perfd_build_info{cluster="$cluster", version="none"}', "0 * perfd_build_info / 0")]
    assert len(list(empty_panels(prometheus, {"title": "", "panels": [{"title": "", "targets": broken}]}, one))) == 3
    # That a query may also be empty: of a job that does not exist nothing is shown.
    nobody = {**one, "job": "p-999999"}
    board = next(b for b in dashboards() if b["uid"] == "perfd-job")
    of_job = [t["expr"] for p in board["panels"] for t in p.get("targets", []) if "$job" in t["expr"]]
    assert len(of_job) > 10
    filled = [e for e in of_job if prometheus.values(substitute(e, nobody))]
    assert not filled, filled
    print(f"   {queries} queries of {len(dashboards())} dashboards return data", flush=True)


def check_rules(prometheus):
    groups = prometheus.get("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    sick = [(r["name"], r.get("lastError")) for r in rules if r["health"] != "ok"]
    assert not sick and len(rules) > 30, (sick, len(rules))
    firing = [r["name"] for r in rules if r.get("state") == "firing"]
    assert not firing, f"a sound system raises {firing}"


def call_hooks(c, jobs):
    """As a scheduler: each job begins, on two nodes, and ends. By the policy none of them is profiled."""
    for job in range(jobs):
        for call, node in (("begin", "node1"), ("begin", "node2"), ("end", "node1")):
            run = c.perfctl("hook", call, "--job", 1 + job, "--user", "root", "--nodes", "node[1-2]", "--node", node,
                            "--timeout", "10s")
            assert run.returncode == 0 and "not profiled" in run.stderr + "not profiled" * (call == "end"), run


def profile_with_a_gain(c, prometheus):
    """(its id, how many were made): without a name there is no gain to show."""
    made = []

    def profile():
        made.append(c.submit("--command", "slow_rank", "--duration", "8s", "--variants", "LS,FP,DL1,NO_DIV", "--overhead", "30%"))
        status = c.wait_over(made[-1], 60)
        assert status["state"] in ("DONE", "PARTIAL"), status
        wait_until(lambda: prometheus.query(f'perfd_profile_missing_ratio{{profile="{made[-1]}"}}'), 60, "its outcome")
        return c.json("report", made[-1])["verdicts"]

    cluster.profile_again(profile, lambda verdicts: any(gain["of_job"]["value"] > 0 for v in verdicts for gain in v["gains"]), most=6)
    wait_until(lambda: prometheus.query(f'cluster_profile:perfd_loop_gain_ratio:max{{profile="{made[-1]}"}}'), 60, "the recordings of it")
    return made[-1], len(made)


def replay(c, program):
    """A profile of a recorded job of that name: with accesses to memory, which need a PMU otherwise."""
    recorded = replay_test.Program(c.dir, program)
    path = c.dir / "recorded.perf.data"
    replay_test.recording(recorded, path)
    with replay_test.replayed(c, path, "recorded"):
        wait_until(lambda: replay_test.nodes_of(c).get("recorded", {}).get("connected"), 20, "the recording is connected")
        profile = c.submit("--node", "recorded", "--command", program, "--duration", "60s")
        assert c.wait_over(profile, 60)["state"] == "DONE"
    return profile


def check_memory(c, prometheus, profile):
    """The figures are those of its report."""
    for place in c.json("report", profile)["memory"]["places"]:
        one = f'{{profile="{profile}", loop="{place["id"]}"}}'
        share = next(b["share"] for b in place["beyond"] if b["border"] == "l2")
        walks = sum(t["weight"] for t in place["accesses"]["dtlb"] if t["result"] == "walk") / place["accesses"]["weight"]
        for metric, value in (("memory_beyond_l2", share), ("dtlb_walks", walks)):
            found = prometheus.values(f"last_over_time(perfd_loop_{metric}_ratio{one}[1h])")
            assert len(found) == 1 and math.isclose(found[0], value, rel_tol=1e-6), (metric, place["function"], found, value)


def check_hook_and_archive(c, prometheus, jobs, profiles):
    """The figures are those of what was done. Then the policy gets a fault."""
    def shows(metric, value):
        wait_until(lambda: prometheus.values(f"sum({metric})") == [value], 20, f"{metric} is {value}")
    shows('perfd_hook_jobs_total{decision="not_chosen"}', jobs)
    shows("perfd_hook_jobs_total", jobs)
    for result in ("decided", "repeated", "ended"):
        shows(f'perfd_hook_calls_total{{result="{result}"}}', jobs)
    shows("perfd_hook_seconds_count", 3 * jobs)
    for metric, value in (("written_total", profiles), ("pending", 0), ("healthy", 1)):
        shows(f"perfd_archive_{metric}", value)
    shows("perfd_policy_healthy", 1)
    (c.dir / "policy.yaml").write_text("every: never\n")
    c.daemon.send_signal(signal.SIGHUP)
    shows("perfd_policy_healthy", 0)
    firing = 'ALERTS{alertname="PerfdPolicyBroken", alertstate="pending"}'
    wait_until(lambda: prometheus.query(firing), 20, "the alert of it waits for its five minutes")


@pytest.mark.small
def test_every_query_of_every_dashboard_returns_data():
    c = Cluster()
    (c.dir / "policy.yaml").write_text("every: 1000\n")
    c.daemon_flags = ["--metrics-names", "--policy", c.dir / "policy.yaml", "--archive", c.dir / "archive"]
    with c:
        target = urllib.parse.urlparse(c.metrics_url()).netloc
        prometheus = Prometheus(c, target)
        call_hooks(c, 3)
        c.mpirun("job", 2, [PUPPETS / "slow_rank", 90, 1])
        wait_until(lambda: len(cluster.ranks_of("slow_rank")) == 2, 20, "the ranks run")
        recorded = replay(c, "slow_rank")
        profile, made = profile_with_a_gain(c, prometheus)
        check_memory(c, prometheus, recorded)
        check_dashboards(prometheus, profile, c.json("status", profile)["requester"]["name"], "slow_rank")
        check_rules(prometheus)
        # Rank 1 computes twice as much: 4/3 of the mean, give or take what two busy CPUs do to it.
        imbalance = prometheus.values(f'perfd_profile_imbalance_ratio{{profile="{profile}"}}')
        assert len(imbalance) == 1 and 1.1 < imbalance[0] < 1.7, imbalance
        shares = prometheus.values(f'sum(perfd_profile_category_share_ratio{{profile="{profile}"}})')
        assert abs(shares[0] - 1) < 1e-6, shares
        report = c.json("report", profile)
        assert math.isclose(imbalance[0], report["imbalance"], rel_tol=1e-6), (imbalance, report["imbalance"])
        seconds = prometheus.values(f'perfd_loop_rank_max_seconds{{profile="{profile}", loop="{report["loops"][0]["id"]}"}}')
        assert math.isclose(seconds[0], report["loops"][0]["rank_max_seconds"], rel_tol=1e-6), (seconds, report["loops"][0])
        check_hook_and_archive(c, prometheus, 3, made + 1)


def test_start_refuses_what_it_does_not_know():
    for arguments in (["--targets", "x"], ["--target"], ["x"]):
        run = subprocess.run([DEPLOY / "start.sh", *arguments], capture_output=True, text=True, timeout=20)
        assert run.returncode == 2 and "--target" in run.stderr, run


if __name__ == "__main__":
    cluster.pytest_file(__file__)
