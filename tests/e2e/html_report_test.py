#!/usr/bin/env python3
"""The page of a report in a real browser: what it shows, on a screen, a phone and on paper, and what it must never do."""
import copy
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

import chromium
import cluster
import page_reports
from chromium import Chromium
from cluster import BUILD, Cluster, PUPPETS, wait_until

TEMPLATE = BUILD / "core/page/page_template.html"
PICTURES = BUILD / "screenshots"  # kept, for people to look at
ALWAYS = {"time", "open", "cost", "sources"}

pytestmark = pytest.mark.skipif(chromium.installed() is None, reason="Chromium is not installed (Debian package chromium)")


def page_of(report, folder, name="page"):
    """What RenderHtml makes of a report; its own substitution is tested in tests/unit/page."""
    text = json.dumps(report, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    page = TEMPLATE.read_text()
    assert page.count("{{report}}") == 1
    file = pathlib.Path(folder) / f"{name}.html"
    file.write_text(page.replace("{{report}}", text))
    return file


class Pages:
    """A browser and a folder."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="perfd-page-")
        self.browser = Chromium()
        return self

    def __exit__(self, *error):
        self.browser.__exit__(*error)
        shutil.rmtree(self.folder, ignore_errors=True)

    def show(self, report, width=1280, dark=False, name="page"):
        self.browser.complaints.clear()
        self.browser.open(page_of(report, self.folder, name), width, dark=dark)
        return self.browser


def open_all(browser):
    browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    browser.settle()


# Of the texts of each chart those that lie on one another.
OVERLAPS = """[...document.querySelectorAll('.plot svg')].flatMap(svg => {
  const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent).map(t => [t.textContent, t.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0).sort(([, a], [, b]) => a.left - b.left);
  return texts.flatMap(([text, a], i) => {
    const hit = texts.slice(i + 1).find(([, b]) => b.left < a.right - 0.5 && b.top < a.bottom - 4 && b.bottom > a.top + 4);
    return hit ? [`${text} | ${hit[0]}`] : [];
  });
}).slice(0, 5)"""


def check_drawn(browser, width):
    assert browser.complaints == [], browser.complaints
    assert browser.run("document.documentElement.scrollWidth") <= width, "the page is wider than the screen"
    assert browser.run("document.querySelector('.notice-error') === null") is True
    figures, drawn = browser.run("(plots => [plots.length, plots.filter(p => p.querySelector('svg rect')).length])"
                                 "([...document.querySelectorAll('.plot')].filter(p => !p.closest('details:not([open])')))")
    assert figures == drawn > 0, f"{drawn} of {figures} charts are drawn"
    outside = browser.run("[...document.querySelectorAll('.plot svg')].filter(s => s.getBoundingClientRect()"
                          ".right > s.parentNode.getBoundingClientRect().right + 1).length")
    assert outside == 0, f"{outside} charts are wider than their place"
    assert browser.run(OVERLAPS) == [], "texts of a chart overlap"
    unlabelled = browser.run("[...document.querySelectorAll('.plot')].filter(p => !p.ariaLabel).length")
    assert unlabelled == 0


# Where the middle of a chart's first bar is, and its colour.
BAR = """(bar => {
  const box = bar.getBoundingClientRect(), fill = getComputedStyle(bar).fill;
  return [[box.x + box.width / 3 + scrollX, box.y + box.height / 2 + scrollY], fill.match(/\\d+/g).map(Number)];
})(document.querySelector('%s g[aria-label=bar] rect'))"""


def take_picture(browser, name, width, charts=("#time .plot",)):
    """The page as it is now, as PNG: as wide as it must be, nothing of it blank, its bars where the page has them."""
    PICTURES.mkdir(exist_ok=True)
    file = PICTURES / f"{name}.png"
    bars = [browser.run(BAR % chart) for chart in charts]
    height = browser.run("document.documentElement.scrollHeight")
    *size, scale = browser.screenshot(file)
    assert size == [width * scale, height * scale] and 1000 < height <= 16384, (name, size, scale, width, height)
    parts, found = browser.colours(file, [[int(x * scale), int(y * scale)] for (x, y), _ in bars])
    assert min(parts) > 8, f"parts of {name}.png are blank: {parts}"
    assert found == [fill for _, fill in bars], (name, found, bars)
    print(f"      {file}: {size[0]} x {size[1]}")


def test_pictures_of_the_page():
    charts = ("#gains .plot", "#loop-1 .plot", "#time .plot", "#cost .plot")
    with Pages() as pages:
        for name, width, dark in (("wide", 1280, False), ("wide-dark", 1280, True), ("phone", 390, False), ("phone-dark", 390, True)):
            browser = pages.show(page_reports.rich(), width, dark)
            check_drawn(browser, width)
            take_picture(browser, name, width, charts)
        browser = pages.show(page_reports.rich(), 700, dark=True)
        for_print(browser)
        take_picture(browser, "print", 700, charts)


def for_print(browser, width=700):
    browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    browser.ask("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.settle()


def test_sections_appear_when_there_are_data():
    expected = ALWAYS | {"gains", "loops", "ranks"}
    with Pages() as pages:
        for name in page_reports.RECORDED:
            report = page_reports.recorded(name)
            browser = pages.show(report, name=name)
            check_drawn(browser, 1280)
            sections = set(browser.run("[...document.querySelectorAll('section')].map(s => s.id)"))
            assert sections == expected, (name, sections)
            links = set(browser.run("[...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))"))
            assert links == sections, (name, links)
            assert browser.run("document.querySelectorAll('.card').length") == len(report["verdicts"])
            assert report["status"]["id"] in browser.run("document.title")
        samples_only = page_reports.recorded("twelve_loops")
        samples_only["verdicts"] = []
        sections = set(pages.show(samples_only).run("[...document.querySelectorAll('section')].map(s => s.id)"))
        assert sections == ALWAYS - {"open"} | {"ranks"}, sections
        one_thread = page_reports.recorded("twelve_loops")
        one_thread["ranks"] = one_thread["ranks"][:1]
        for row in one_thread["loops"]:
            row["ranks"], row["threads"] = [r for r in row["ranks"] if r["rank"] == 0], []
        assert pages.show(one_thread).run("document.getElementById('ranks')") is None
        browser = pages.show(page_reports.dry_run())
        sections = set(browser.run("[...document.querySelectorAll('section')].map(s => s.id)"))
        assert "dry-run" in sections and not sections & {"gains", "loops"}, sections
        head = browser.run("document.querySelector('header').innerText")
        assert "A dry run: nothing of the job was stopped" in head and "settled" not in head and "save" not in head, head
        browser = pages.show(page_reports.rich())
        check_drawn(browser, 1280)
        assert browser.run("document.getElementById('paths').textContent.includes('main › solve › Svdcmp')")
        assert browser.run("document.querySelector('.left-out')") is None
        browser = pages.show({**page_reports.rich(), "left_out": {"rows": 0, "ranks": 12}})
        assert "12 ranks" in browser.run("document.querySelector('.left-out').textContent")


def test_figures_are_those_of_the_report():
    report = page_reports.recorded("svdcmp")
    with Pages() as pages:
        browser = pages.show(report)
        gain = report["verdicts"][0]["gains"][0]["of_job"]
        shown = browser.run("document.querySelector('#gains .plot').textContent")
        assert f"{gain['value'] * 100:.1f} % [{gain['low'] * 100:.1f}, {gain['high'] * 100:.1f}]" in shown, shown
        card = browser.run("document.querySelector('#loop-1 .plot').textContent")
        for variant in report["verdicts"][0]["variants"]:
            s = variant["saturation"]
            figure = f"{s['value']:.2f} [{s['low']:.2f}, {s['high']:.2f}]"
            base = variant["variant"] == variant["base"]
            assert base or (variant["variant"] in card and figure in card), (variant["variant"], figure, card)
        # A bar is as long as its figure: LS against the mark of the whole loop.
        bars = browser.run("[...document.querySelectorAll('#loop-1 .plot')[0].querySelectorAll('g[aria-label=bar] rect')]"
                           ".map(r => r.width.baseVal.value)")
        wanted = [v["saturation"]["value"] for v in report["verdicts"][0]["variants"] if v["variant"] != v["base"]]
        assert len(bars) == len(wanted), (bars, wanted)
        for length, value in zip(bars, wanted):
            assert abs(length / bars[0] - value / wanted[0]) < 0.01, (bars, wanted)
        open_all(browser)
        lines = browser.run("[...document.querySelectorAll('#loop-1 .assembly tbody tr')].map(r => r.innerText)")
        assert any("vdivsd" in line and "deleted" in line for line in lines), lines
        sources = set(browser.run("[...document.querySelectorAll('.source')].map(s => s.textContent)"))
        assert sources >= {"sampled", "shadow", "estimated", "live"}, sources
        bare = browser.run("[...document.querySelectorAll('.tiles dd')].filter(d => !d.querySelector('.source')).length")
        assert bare == 0, f"{bare} figures do not say where they come from"
        assert browser.run("document.querySelector('#loop-1 .source').textContent") == "shadow"
        licences = browser.run("document.getElementById('licences').textContent")
        assert "@observablehq/plot" in licences and "Permission to use, copy" in licences


def test_accesses_to_memory():
    report = page_reports.recorded(page_reports.REPLAYED)
    far = next(p for p in report["memory"]["places"] if p["function"] == "Far")
    far["beyond"][2].update(share=None, share_low=None, share_high=None, why_not="not_told")
    far["ranks"][3].update(beyond_l2=None, why_not="too_few")
    far["references_left_out"] = 7
    report["memory"]["events"][0]["latency_threshold"] = 30
    report["memory"]["lost"].update(accesses=3, without_rank=1)
    with Pages() as pages:
        for width in (1280, 390):
            browser = pages.show(report, width)
            open_all(browser)
            check_drawn(browser, width)
            assert set(browser.run("[...document.querySelectorAll('section')].map(s => s.id)")) >= {"memory", "time", "ranks"}
        take_picture(browser, "memory-phone", 390, ("#memory .plot",))
        browser = pages.show(report)
        open_all(browser)
        take_picture(browser, "memory", 1280, ("#memory .plot",))
        browser = pages.show(report)
        open_all(browser)
        sources = set(browser.run("[...document.querySelectorAll('h2 .source')].map(s => s.textContent)"))
        assert "replayed" in sources and "sampled" not in sources, sources
        text = browser.run("document.getElementById('memory').innerText")
        for figure in report["memory"]["beyond"]:
            shown = f"{figure['share'] * 100:.1f} % [{figure['share_low'] * 100:.1f}, {figure['share_high'] * 100:.1f}]"
            assert shown in text, (shown, text)
        loads = {one["level"]: one["weight"] for one in report["memory"]["accesses"]["loads"]}
        assert f"local DRAM {loads['local_dram'] / sum(loads.values()) * 100:.1f} %" in text
        assert "most of the time is of loads that do not tell" in text and "7 more instructions" in text
        assert "fewer than 30 cycles were not sampled" in text and "3 accesses are in no figure" in text
        assert "1 access is in the job's figures, and of no rank" in text
        # The histogram: a rectangle for each bucket, as high as its samples.
        heights = browser.run("[...document.querySelectorAll('#memory .plot')[1].querySelectorAll('g[aria-label=rect] rect')]"
                              ".map(r => r.height.baseVal.value)")
        buckets = [one["samples"] for one in report["memory"]["accesses"]["latency"]["histogram"]]
        assert len(heights) == len(buckets), (heights, buckets)
        for height, samples in zip(heights, buckets):
            assert abs(height / max(heights) - samples / max(buckets)) < 0.02, (heights, buckets)
        # The heat map: a cell for each rank that tells.
        cells = browser.run("[...document.querySelectorAll('#memory .plot')].at(-1).querySelectorAll('g[aria-label=bar] rect').length")
        assert cells == 2 + 6 + 5, cells
        without = {**report, "memory": None}
        assert pages.show(without).run("document.getElementById('memory')") is None


def test_copies_run_in_ranks_are_not_called_shadows():
    report = page_reports.recorded("svdcmp")
    report["verdicts"][0].update(protocol="recovery", fidelity={"value": 0, "low": 0, "high": 0})
    report["verdicts"][0]["cost"].update(recoveries=40, recovery_ns=10**6)
    with Pages() as pages:
        browser = pages.show(report)
        check_drawn(browser, 1280)
        assert browser.run("document.querySelector('#loop-1 .source').textContent") == "live"
        assert "not in shadows" in browser.run("document.getElementById('loop-1').textContent")


def test_phone_and_dark():
    with Pages() as pages:
        for name, report in [(n, page_reports.recorded(n)) for n in page_reports.RECORDED] + [("rich", page_reports.rich())]:
            for dark in (False, True):
                browser = pages.show(report, 390, dark, name)
                check_drawn(browser, 390)
                open_all(browser)
                check_drawn(browser, 390)
                light = browser.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
                assert (light < 128) == dark, (name, dark, light)


def test_paper():
    with Pages() as pages:
        browser = pages.show(page_reports.rich(), 390, dark=True)
        file = pathlib.Path(pages.folder) / "page.pdf"
        browser.paper(file)
        data = file.read_bytes()
        assert data.startswith(b"%PDF-") and data.rstrip().endswith(b"%%EOF") and len(data) > 20000, len(data)
        pages_printed = data.count(b"/Type /Page\n") + data.count(b"/Type /Page/") + data.count(b"/Type /Page ")
        assert pages_printed >= 2, pages_printed
        for_print(browser)
        assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert browser.run("document.documentElement.scrollWidth") <= 700
        assert browser.run("document.querySelector('details.listing').open") is True
        widths = browser.run("[...document.querySelectorAll('.plot svg')].map(s => s.width.baseVal.value)")
        assert widths and all(600 < width <= 700 for width in widths), widths
        assert browser.complaints == [], browser.complaints


def test_hands():
    with Pages() as pages:
        browser = pages.show(page_reports.recorded("hpcc"))
        open_all(browser)
        first = browser.run("document.querySelector('#loop-1 .assembly').innerText")
        browser.run("(s => { s.value = [...s.options].findIndex(o => o.text.startsWith('LS')); s.dispatchEvent(new Event('change')) })"
                    "(document.querySelector('#loop-1 select'))")
        assert browser.run("document.querySelector('#loop-1 .assembly').innerText") != first
        assert browser.run("document.querySelectorAll('#loop-1 .assembly th')[2].textContent") == "LS"
        heat = "document.querySelector('#ranks div > figure .plot').textContent"
        shares = browser.run(heat)
        browser.run("document.querySelectorAll('#ranks button')[1].click()")
        browser.settle()
        assert browser.run(heat) != shares and "×" in browser.run(heat)
        browser = pages.show(page_reports.recorded("lammps"))
        open_all(browser)
        rows = browser.run("document.querySelectorAll('#loop-1 .assembly tr').length")
        browser.run("document.querySelector('#loop-1 .fold button').click()")
        assert browser.run("document.querySelectorAll('#loop-1 .assembly tr').length") > rows
        browser.run("document.querySelector('#time .plot').scrollIntoView()")
        box = browser.run("(r => [r.right, r.y + r.height / 2])"
                          "(document.querySelector('#time g[aria-label=bar] rect').getBoundingClientRect())")
        browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] - 3, y=box[1], pointerType="mouse")
        browser.settle()
        tip = browser.run("document.querySelector('#time g[aria-label=tip]').textContent")
        assert "samples" in tip, tip
        assert browser.complaints == [], browser.complaints


@pytest.mark.small
def test_foreign_text_stays_text():
    report = page_reports.hostile()
    with Pages() as pages:
        clean = pages.show(page_reports.rich())
        open_all(clean)
        kinds = "[...new Set([...document.querySelectorAll('*')].map(e => e.localName))].sort().join()"
        scripts = "document.scripts.length"
        wanted, wanted_scripts = clean.run(kinds), clean.run(scripts)
        browser = pages.show(report)
        open_all(browser)
        for _ in range(3):  # what waits for a load or a timer
            browser.settle()
        assert browser.run("window.harm") is None, "foreign code ran"
        assert browser.run(scripts) == wanted_scripts
        extra = set(browser.run(kinds).split(",")) - set(wanted.split(","))
        assert not extra, f"foreign elements: {extra}"
        assert browser.run("[...document.querySelectorAll('*')].filter(e => [...e.attributes]"
                           ".some(a => a.name.startsWith('on') || /^\\s*javascript:/.test(a.value))).length") == 0
        text = browser.run("document.body.innerText")
        assert "<img src=x onerror='window.harm = 2'>" in text and "</script><script>window.harm = 1</script>" in text
        assert not set(text) & set("\u2028\u202e\x1b\x00"), "letters that hide or turn others"
        assert browser.complaints == [], browser.complaints


def test_nothing_leaves_the_page():
    with Pages() as pages:
        browser = pages.show(page_reports.recorded("svdcmp"))
        assert browser.complaints == [], browser.complaints
        for attempt in ("fetch('http://127.0.0.1:9/x').then(() => 'open', () => 'closed')",
                        "new Promise(done => { const i = new Image(); i.onload = () => done('open'); i.onerror = () => "
                        "done('closed'); i.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=' })",
                        "new Promise(done => { const s = document.createElement('script'); s.textContent = 'window.harm = 1';"
                        " document.body.append(s); setTimeout(() => done(window.harm ? 'open' : 'closed'), 20) })"):
            assert browser.run(attempt) == "closed", attempt
        assert any("Content Security Policy" in said for said in browser.complaints), browser.complaints


def test_parts_may_be_missing():
    """Of a neighbouring version, or of a profile that failed early."""
    with Pages() as pages:
        full = page_reports.rich()
        shapes = [{}, {"status": {"id": "p-1", "state": "FAILED"}, "verdicts": [{}], "loops": [{}], "ranks": [{}]}]
        for key in full:
            shapes.append({k: v for k, v in full.items() if k != key})
            shapes.append({**full, key: None})
        for field in ("gains", "variants", "ranks", "cost", "fidelity", "listings", "bound", "refusals", "loop_id"):
            one = copy.deepcopy(full)
            del one["verdicts"][0][field]
            shapes.append(one)
        for field in ("accesses", "beyond", "places", "events", "lost"):
            one = copy.deepcopy(full)
            del one["memory"][field]
            shapes.append(one)
        for field in ("accesses", "beyond", "references", "ranks", "function", "file", "id"):
            one = copy.deepcopy(full)
            del one["memory"]["places"][0][field]
            shapes.append(one)
        for shape in shapes:
            browser = pages.show(shape)
            assert browser.complaints == [], (sorted(shape), browser.complaints)
            assert browser.run("document.querySelectorAll('h1').length") == 1
            assert "NaN" not in browser.run("document.body.innerText"), sorted(shape)
            said = browser.run("document.body.innerText")
            assert "undefined" not in said, (sorted(shape), said[max(0, said.index("undefined") - 80):][:160])


def test_many_ranks():
    with Pages() as pages:
        for width in (390, 1280):
            browser = pages.show(page_reports.many_ranks(512, 8), width)
            check_drawn(browser, width)
            assert browser.run("document.querySelectorAll('svg rect').length") < 20000
            cells = browser.run("[...document.querySelectorAll('#ranks .plot')].map(p => Math.min(...[...p.querySelectorAll("
                                "'g[aria-label=bar] rect')].map(r => r.width.baseVal.value)))")
            assert cells and all(cell >= 3 for cell in cells), cells
            assert "in each column" in browser.run("document.getElementById('ranks').textContent")


@pytest.mark.small
def test_perfctl_writes_the_page_of_a_live_job():
    with Cluster() as c, Pages() as pages:
        c.mpirun("job", 2, [PUPPETS / "counting", 200000, 60000])
        wait_until(lambda: len(cluster.ranks_of("counting")) == 2, 20, "the ranks run")
        profile = c.submit("--command", "counting", "--duration", "3s")
        c.wait_over(profile)
        out = pathlib.Path(pages.folder) / "out.html"
        run = c.perfctl("report", profile, "--html", out)
        assert run.returncode == 0 and not run.stdout, run
        browser = pages.browser
        browser.open(out)
        check_drawn(browser, 1280)
        report = c.json("report", profile)
        assert browser.run("JSON.parse(document.getElementById('report').textContent)")["loops"] == report["loops"]
        assert profile in browser.run("document.title")
        assert report["loops"][0]["function"] in browser.run("document.getElementById('time').textContent")


def fetch(url):
    """Status, header fields and text."""
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def profile_of_a_job(c):
    c.mpirun("job", 2, [PUPPETS / "counting", 200000, 60000])
    wait_until(lambda: len(cluster.ranks_of("counting")) == 2, 20, "the ranks run")
    return c.submit("--command", "counting", "--duration", "3s", "--variants", "none")


@pytest.mark.small
def test_perfd_serves_the_same_page():
    with Cluster() as c, Pages() as pages:
        profile = profile_of_a_job(c)
        url = c.perfctl("report", profile, "--url").stdout.strip()
        assert "?key=" in url and f"/profiles/{profile}" in url, url
        wait_until(lambda: fetch(url)[0] == 200 and "counting" in fetch(url)[2], 20, "the page of the running job")
        c.wait_over(profile)
        status, fields, page = fetch(url)
        written = pathlib.Path(pages.folder) / "written.html"
        assert c.perfctl("report", profile, "--html", written).returncode == 0
        assert status == 200 and page == written.read_text(), (status, len(page))
        assert "frame-ancestors 'none'" in fields["Content-Security-Policy"], fields
        browser = pages.browser
        for width, dark in ((1280, False), (390, True)):
            browser.open(url, width, dark=dark)
            check_drawn(browser, width)
            assert profile in browser.run("document.title")
            take_picture(browser, "served" if width > 600 else "served-phone", width)
        # Nobody else: not without the key, nor with that of another profile, and the answer is that for nothing.
        nothing = fetch(url.replace(profile, "p-999999"))
        assert nothing[0] == 404
        for wrong in (url.split("?")[0], url[:-1], url[:-1] + ("0" if url[-1] != "0" else "1")):
            assert fetch(wrong)[::2] == nothing[::2], wrong
        root = url.split("/profiles/")[0]
        status, _, landing = fetch(root + "/")
        assert status == 200 and "/metrics" in landing and "p-0" not in landing, landing
        assert fetch(root + "/metrics")[0] == 200
        stranger = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", cluster.BIN / "perfctl", "--address",
                    f"unix:{c.socket}", "report", profile, "--url"]
        if os.geteuid() == 0:
            run = subprocess.run([str(word) for word in stranger], capture_output=True, text=True, timeout=30)
            assert run.returncode == 4 and "key" not in run.stdout, run


def test_open_reports_need_no_key():
    with Cluster(daemon_flags=("--open-reports", "--report-url", "http://perf.site/")) as c, Pages() as pages:
        profile = profile_of_a_job(c)
        c.wait_over(profile)
        link = c.perfctl("report", profile, "--url").stdout.strip()
        assert link == f"http://perf.site/profiles/{profile}", link
        root = c.metrics_url().rsplit("/", 1)[0]
        browser = pages.browser
        browser.open(root + "/")
        assert browser.complaints == [], browser.complaints
        assert browser.run("[...document.querySelectorAll('td a')].map(a => a.textContent)") == [profile]
        browser.open(f"{root}/profiles/{profile}")
        check_drawn(browser, 1280)


if __name__ == "__main__":
    cluster.pytest_file(__file__)
