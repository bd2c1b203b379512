#!/usr/bin/env python3
"""The metrics endpoint: clean by promtool, scraped by a real Prometheus."""
import json
import resource
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest

import cluster
from cluster import Cluster, PUPPETS, wait_until

pytestmark = pytest.mark.skipif(not shutil.which("promtool") or not shutil.which("prometheus"), reason="Prometheus is not installed")


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def profile_something(c):
    c.mpirun("job", 2, [PUPPETS / "counting", 200000, 60000])
    wait_until(lambda: len(cluster.ranks_of("counting")) == 2, 20, "the ranks run")
    profile = c.submit("--command", "counting", "--duration", "3s")
    c.wait_over(profile)
    return profile


@pytest.fixture
def c():
    with Cluster(daemon_flags=["--metrics-names"]) as c:
        yield c


def test_promtool_finds_nothing(c):
    profile = profile_something(c)
    text = wait_until(lambda: profile in (page := fetch(c.metrics_url())) and page, 20, "the profile is in the metrics")
    run = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=30)
    assert run.returncode == 0 and not run.stdout.strip() and not run.stderr.strip(), run
    for name in ("perfd_build_info", "perfd_windows_stored_total", "perfd_loop_share_ratio",
                 "perfd_samples_dropped_total", "process_resident_memory_bytes"):
        assert name in text, f"{name} is missing"


@pytest.mark.small
def test_a_real_prometheus_scrapes_it(c):
    profile = profile_something(c)
    target = urllib.parse.urlparse(c.metrics_url())
    config = c.dir / "prometheus.yml"
    config.write_text(f"""global: {{ scrape_interval: 1s }}
scrape_configs:
  - job_name: perfd
    metrics_path: {target.path or '/metrics'}
    static_configs: [{{ targets: ['{target.netloc}'] }}]
""")
    port = 39090
    c.spawn("prometheus", ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={c.dir}/tsdb",
                           f"--web.listen-address=127.0.0.1:{port}"])

    def query(expression):
        try:
            url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
            return json.loads(fetch(url))["data"]["result"]
        except OSError:
            return None
    wait_until(lambda: query('up{job="perfd"} == 1'), 30, "Prometheus scraped perfd")
    shares = wait_until(lambda: query(f'perfd_loop_share_ratio{{profile="{profile}"}}'), 20, "loop shares")
    assert 0 < max(float(s["value"][1]) for s in shares) <= 1
    joined = query(f'perfd_loop_share_ratio{{profile="{profile}"}} * on(profile, loop) group_left(function) '
                   'perfd_loop_info')
    assert joined and joined[0]["metric"]["function"], joined


def series(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_a_thousand_agents_stay_below_ten_thousand_series():
    """Real connections. What the page may show at most, with measured loops of twenty profiles: exposition_test.cc."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with Cluster(nodes=()) as c:
        fake = c.spawn("agents", [cluster.BIN / "fake_agents", "--address", f"unix:{c.socket}", "--agents", 1000, "--ranks", 2,
                                  "--loops", 20, "--windows", 10, "--interval-ms", 1000])
        wait_until(lambda: '"connected": 1000' in c.log("agents"), 90, "a thousand agents are connected", 0.5)
        profile = c.submit("--command", "simulation", "--duration", "60s")
        pages = []

        def shown():
            pages.append(fetch(c.metrics_url()))
            return "perfd_agents_connected 1000" in pages[-1] and f'perfd_loop_info{{profile="{profile}"' in pages[-1]
        wait_until(shown, 60, "agents and loops are in the metrics", 1)
        most = max(len(series(page)) for page in pages)
        of_agents = [line for line in series(pages[-1]) if line.startswith("perfd_agent_")]
        assert len(of_agents) >= 4000 and most < 10000, (len(of_agents), most)
        loops = [line for line in series(pages[-1]) if line.startswith("perfd_loop_share_ratio{")]
        assert len(loops) == 12, loops  # of twenty
        print(f"   {most} series with 1000 agents", flush=True)
        fake.wait(120)
        c.wait_over(profile, 90)


if __name__ == "__main__":
    cluster.pytest_file(__file__)
