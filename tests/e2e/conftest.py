"""What pytest needs to know of these files: marks, fixtures, and what may excuse a failure."""
import pytest

import cluster
import nodes

ALL_SKIPPED = 77  # ctest's SKIP_RETURN_CODE


def pytest_configure(config):
    # A thread that dies looks for nothing any more.
    config.addinivalue_line("filterwarnings", "error::pytest.PytestUnhandledThreadExceptionWarning")
    config.addinivalue_line("markers", "small: one of its kind, in the small tier of tests/run.sh")
    config.addinivalue_line("markers", "only_calm: measures: its failure does not count while others use this machine's cores "
                            "or caches. Never for a promise")
    config.addinivalue_line("markers", "promise: nothing excuses its failure, whatever the marks of its file say")


@pytest.hookimpl(trylast=True)
def pytest_runtest_logstart():
    print(flush=True)  # ends the line with the name of the test: who reads along knows what runs


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.failed:
        return
    for open_cluster in cluster.OPEN:
        open_cluster.show_logs()
    if item.get_closest_marker("only_calm") and not is_promise(item, call) and not cluster.host_is_calm():
        print(report.longreprtext)
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: failed while this host was busy with other things: "
                           f"{str(call.excinfo.value)[:300]}")


def is_promise(item, call):
    return item.get_closest_marker("promise") is not None or call.excinfo.errisinstance(cluster.Broken)


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == 0 and reporter.stats.get("skipped") and not reporter.stats.get("passed"):
        session.exitstatus = ALL_SKIPPED


@pytest.fixture(scope="session")
def several_nodes():
    """For tests of nodes.Fleet."""
    if reason := nodes.why_not():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def free_cpus():
    """For what measures nothing but waiting where ranks lack a CPU."""
    if not cluster.cpus_are_free():
        pytest.skip("this host does not give two threads two CPUs right now")


@pytest.fixture
def c():
    """perfd with one node. A test of its own starts one: that takes a third of a second."""
    with cluster.Cluster() as c:
        yield c
