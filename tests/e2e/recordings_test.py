#!/usr/bin/env python3
"""`perfctl memory --recording` against perf itself: each sample of a recording, and damaged recordings."""
import csv
import io
import json
import pathlib
import random
import re
import shutil
import subprocess
import time

import pytest

from cluster import BIN
from recording_writer import Writer, data_src

pytestmark = [pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed"), pytest.mark.small]

RECORDINGS = pathlib.Path(__file__).resolve().parents[1] / "data" / "perf"
PUBLIC = {"skx-load-latency-weight-struct": ("weight",), "cfl-pebs-cycles-addr-only": ()}  # and what they have beside
# What perf's words for a source mean in ours; the first that is found counts.
LEVELS = (("L1 miss", ("l1", 1)), ("Remote RAM", ("remote_dram", 0)), ("Remote Cache", ("remote_cache", 0)),
          ("Local RAM", ("local_dram", 0)), ("LFB", ("fill_buffer", 0)), ("L1", ("l1", 0)), ("L2", ("l2", 0)), ("L3 miss", ("l3", 1)),
          ("L3", ("l3", 0)), ("Uncached", ("uncached", 0)), ("I/O", ("io", 0)), ("N/A", ("unknown", 0)))
SNOOPS = (("HitM", "hit_modified"), ("None", "none"), ("Miss", "miss"), ("Hit", "hit"), ("N/A", "unknown"))
TLBS = (("L2 miss", "walk"), ("Walker", "walk"), ("Fault", "fault"), ("L1 or L2 hit", "hit"), ("L1 hit", "first_level"),
        ("L2 hit", "second_level"), ("N/A", "unknown"))


def perfctl(*arguments):
    return subprocess.run([BIN / "perfctl", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def ours(path):
    run = perfctl("memory", "--recording", path, "--csv")
    assert run.returncode == 0, run.stderr
    return list(csv.DictReader(io.StringIO(run.stdout)))


def ours_of(words, table):
    return next((value for text, value in table if text in words), words)


def perfs(path, *more):
    """Each access as perf script has it, in the order of time. `more`: what this recording has beside."""
    fields = ",".join(("tid", "time", "event", "addr", "data_src", "period", *more))
    run = subprocess.run(["perf", "script", "--ns", "-i", path, "-F", fields], capture_output=True, text=True, timeout=60,
                         errors="replace")
    assert run.returncode == 0, run.stderr
    rows = []
    line_of = re.compile(r"^\s*(\d+)\s+([\d.]+):\s+(\d+)\s+(\S.*?):\s+([0-9a-f]+)\s+([0-9a-f]+)\s+\|OP ([^|]*)\|LVL ([^|]*)\|SNP ([^|]*)"
                         r"\|TLB ([^|]*)\|LCK ([^|]*)\|BLK\s+(\S+)(.*)$")
    for line in run.stdout.splitlines():
        if (found := line_of.match(line)) is None:
            assert "|OP" not in line, f"not understood: {line!r}"
            continue
        tid, at, period, event, address, source, op, level, snoop, tlb, lock, _, rest = found.groups()
        numbers = re.findall(r"\S+", rest)
        rows.append(dict(tid=tid, time_ns=str(round(float(at.split(".")[0])) * 10**9 + int(at.split(".")[1].ljust(9, "0"))),
                         period=period, event=event, address=int(address, 16), latency=numbers[0] if "weight" in more else "0",
                         level=ours_of(level, LEVELS), snoop=ours_of(snoop, SNOOPS), dtlb=ours_of(tlb, TLBS),
                         locked={"Yes": "yes", "No": "no"}.get(lock.strip(), "unknown"), op=op.strip()))
    return rows


def compare(mine, theirs):
    assert len(mine) == len(theirs) > 0
    for a, b in zip(sorted(mine, key=lambda r: (int(r["time_ns"]), int(r["tid"]))),
                    sorted(theirs, key=lambda r: (int(r["time_ns"]), int(r["tid"])))):
        assert (a["tid"], a["time_ns"], a["period"], a["latency"]) == (b["tid"], b["time_ns"], b["period"], b["latency"])
        assert int(a["address"], 16) == b["address"]
        assert (a["level"], int(a["missed"])) == b["level"], (a, b)
        assert (a["snoop"], a["dtlb"], a["locked"]) == (b["snoop"], b["dtlb"], b["locked"]), (a, b)
        assert a["operation"] == {"LOAD": "load", "STORE": "store", "PFETCH": "prefetch", "N/A": "unknown"}[b["op"]]


def synthetic():
    """One of each kind that has names of its own, and then many at random."""
    w = Writer()
    kinds = [
        (1, data_src("load", ("hit", "l1"))),
        (1, data_src("load", ("hit", "lfb"))),
        (1, data_src("load", ("hit", "l2"), tlb=("hit", "l2"))),
        (1, data_src("load", ("hit", "l3"), "hitm")),
        (1, data_src("load", ("hit", "l3"), "miss", tlb=("miss", "l2"))),
        (1, data_src("load", ("miss", "l3"), "na")),
        (1, data_src("load", ("hit", "cache1"), "hitm")),
        (1, data_src("load", ("hit", "cache1"), "hit")),
        (1, data_src("load", ("hit", "local"), "miss", tlb=("hit", "walker"))),
        (1, data_src("load", ("hit", "remote1"), "none")),
        (1, data_src("load", ("hit", "uncached"), "na")),
        (1, data_src("load", ("hit", "io"), "na")),
        (1, data_src("load", ("hit", "l1"), lock="locked")),
        (2, data_src("store", ("hit", "l1"), "na", "na", ("hit", "l1"))),
        (2, data_src("store", ("miss", "l1"), "na", "na", "na")),
        (2, data_src("na", "na", "na", "na", "na")),
    ]
    rng = random.Random(23)
    for i in range(400):
        identifier, source = kinds[i] if i < len(kinds) else rng.choice(kinds)
        w.add(identifier, source, tid=100 + i % 4, time_ns=10**9 + i * 10**7, address=0x7f0000000000 + rng.randrange(1 << 30),
              latency=rng.randrange(1, 3000), cpu=i % 4, ip=0x400100 + 8 * (i % 50), page=rng.choice((4096, 2 << 20)),
              period=rng.choice((1000, 1009)))
    return w


def unpacked(name, folder):
    path = folder / name
    subprocess.run(["zstd", "-dqf", RECORDINGS / f"{name}.perf.data.zst", "-o", path], check=True, timeout=60)
    return path


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_recording_sample_by_sample(name, tmp_path):
    path = unpacked(name, tmp_path)
    compare(ours(path), [row for row in perfs(path, *PUBLIC[name]) if row["address"] or row["op"] != "N/A"])


def test_a_synthetic_recording_sample_by_sample(tmp_path):
    w = synthetic()
    path = tmp_path / "synthetic.perf.data"
    w.write(path)
    mine = ours(path)
    assert len(mine) == len(w.samples)
    for row, sample in zip(mine, w.samples):
        assert row["event"] == ("loads", "stores")[sample["event"] - 1]
        assert (int(row["address"], 16), int(row["ip"], 16)) == (sample["address"], sample["ip"])
        assert (int(row["page_bytes"]), int(row["cpu"])) == (sample["page"], sample["cpu"])
    compare(mine, perfs(path, "weight", "ip", "data_page_size"))


def test_shares_of_a_synthetic_recording(tmp_path):
    w = Writer()
    for i in range(4000):  # half of the samples in L1 with 10 cycles, half in another node's memory with 390
        far = i % 2 == 1
        w.add(1, data_src("load", ("hit", "remote1" if far else "l1"), tlb=("miss", "l2") if i % 4 == 3 else ("hit", "l1")),
              tid=100 + i // 2 % 4, time_ns=10**9 + i * 10**7, latency=390 if far else 10)
    path = tmp_path / "shares.perf.data"
    w.write(path)
    run = perfctl("memory", "--json", "--recording", path)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    for border in found["beyond"]:
        assert border["why_not"] is None and abs(border["share"] - 0.975) < 1e-6, border
        assert border["share_low"] <= 0.975 <= border["share_high"]
    walks = {row["result"]: row["samples"] for row in found["accesses"]["dtlb"]}
    assert walks == {"first_level": 3000, "walk": 1000}


def test_damaged_recordings_end_in_words(tmp_path):
    w = synthetic()
    path = tmp_path / "whole.perf.data"
    w.write(path)
    whole = path.read_bytes()
    rng = random.Random(5)
    bad = tmp_path / "bad.perf.data"
    start = time.monotonic()
    for _ in range(60):
        raw = bytearray(whole[:rng.randrange(1, len(whole))] if rng.random() < 0.3 else whole)
        for _ in range(rng.randrange(0, 6)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        bad.write_bytes(raw)
        run = perfctl("memory", "--recording", bad)
        assert run.returncode in (0, 1, 2, 3, 8), (run.returncode, run.stderr)
        assert run.returncode == 0 or run.stderr.strip(), "it says why"
    assert time.monotonic() - start < 60
