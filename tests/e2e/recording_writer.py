"""Writes recordings of perf with memory samples that no public recording has: synthetic, after the kernel's documentation.

Source: tools/perf/Documentation/perf.data-file-format.txt; include/uapi/linux/perf_event.h (union perf_mem_data_src).
"""
import struct

IP, TID, TIME, ADDR, CPU, PERIOD = 1, 2, 4, 8, 1 << 7, 1 << 8
WEIGHT_STRUCT, DATA_SRC, IDENTIFIER = 1 << 24, 1 << 15, 1 << 16
PHYS_ADDR, DATA_PAGE_SIZE = 1 << 19, 1 << 22
LAYOUT = IDENTIFIER | IP | TID | TIME | ADDR | CPU | PERIOD | WEIGHT_STRUCT | DATA_SRC | PHYS_ADDR | DATA_PAGE_SIZE
SAMPLE_ID_ALL = 1 << 18
HOST_NAME, ARCHITECTURE, CPU_COUNT, EVENT_DESCRIPTION = 3, 6, 7, 12

# perf_mem_data_src, by its fields.
OP = dict(na=1, load=2, store=4, prefetch=8, execute=16)
LVL = dict(na=1, hit=2, miss=4, l1=8, lfb=0x10, l2=0x20, l3=0x40, local=0x80, remote1=0x100, remote2=0x200, cache1=0x400,
           cache2=0x800, io=0x1000, uncached=0x2000)
SNOOP = dict(na=1, none=2, hit=4, miss=8, hitm=0x10)
LOCK = dict(na=1, locked=2)
TLB = dict(na=1, hit=2, miss=4, l1=8, l2=0x10, walker=0x20, os=0x40)


def data_src(op, lvl, snoop="none", lock=(), tlb=("hit", "l1", "l2")):
    def bits(names, table):
        return sum(table[name] for name in ([names] if isinstance(names, str) else names))
    return (bits(op, OP) | bits(lvl, LVL) << 5 | bits(snoop, SNOOP) << 19 | bits(lock, LOCK) << 24 | bits(tlb, TLB) << 26)


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def text(value):
    raw = value.encode() + b"\0"
    raw += b"\0" * (-len(raw) % 64)
    return struct.pack("<I", len(raw)) + raw


def attr(kind, config, period):
    out = bytearray(128)
    struct.pack_into("<IIQQQQQ", out, 0, kind, 128, config, period, LAYOUT, 0, SAMPLE_ID_ALL)
    struct.pack_into("<Q", out, 56, 0)
    return bytes(out)


class Writer:
    """Samples of two events, `loads` (identifier 1) and `stores` (2), of process 100 unless told otherwise."""

    def __init__(self):
        self.samples = []  # (identifier, fields) as the test compares them
        self.data = []
        self.process(100, "job")
        self.data.append(record(10, 2, struct.pack("<IIQQQIIQQII", 100, 100, 0x400000, 0x10000, 0, 8, 1, 42, 0, 5, 2)
                                + b"/opt/job\0\0\0\0\0\0\0\0" + self.trailer(100)))

    @staticmethod
    def trailer(pid):
        return struct.pack("<IIQIIQ", pid, pid, 1, 0, 0, 1)

    def process(self, pid, name):
        raw = name.encode() + b"\0"
        self.data.append(record(3, 0x2000, struct.pack("<II", pid, pid) + raw + b"\0" * (-len(raw) % 8) + self.trailer(pid)))

    def map_code(self, pid, start, length, offset, path, build_id):
        """A file mapped executable, as `perf record --buildid-mmap` has it."""
        raw = str(path).encode() + b"\0"
        body = struct.pack("<IIQQQBBH20sII", pid, pid, start, length, offset, len(build_id), 0, 0, build_id, 5, 2)
        self.data.append(record(10, 2 | 1 << 14, body + raw + b"\0" * (-len(raw) % 8) + self.trailer(pid)))

    def add(self, identifier, source, tid=100, time_ns=10**9, address=0x7f0000001000, latency=100, instruction=0, cpu=0,
            ip=0x400100, page=4096, period=1000, pid=100):
        body = struct.pack("<QQIIQQIIQ", identifier, ip, pid, tid, time_ns, address, cpu, 0, period)
        body += struct.pack("<IHHQQQ", latency, instruction, 0, source, 0x1000, page)
        self.data.append(record(9, 2, body))
        self.samples.append(dict(event=identifier, tid=tid, time_ns=time_ns, address=address, latency=latency, source=source,
                                 page=page, period=period, cpu=cpu, ip=ip))

    def write(self, path):
        events = [(attr(4, 0x1cd, 1000), "loads"), (attr(4, 0x82d0, 1000), "stores")]
        head = 104
        ids = struct.pack("<QQ", 1, 2)
        attrs = b"".join(a + struct.pack("<QQ", head + 8 * i, 8) for i, (a, _) in enumerate(events))
        data = b"".join(self.data)
        described = struct.pack("<II", len(events), 128)
        for i, (a, name) in enumerate(events):
            described += a + struct.pack("<I", 1) + text(name) + struct.pack("<Q", i + 1)
        features = {HOST_NAME: text("synthetic"), ARCHITECTURE: text("x86_64"), CPU_COUNT: struct.pack("<II", 4, 4),
                    EVENT_DESCRIPTION: described}
        attrs_at, data_at = head + len(ids), head + len(ids) + len(attrs)
        out = struct.pack("<8sQQ", b"PERFILE2", head, 144)
        out += struct.pack("<QQQQQQ", attrs_at, len(attrs), data_at, len(data), 0, 0)
        out += struct.pack("<QQQQ", sum(1 << bit for bit in features), 0, 0, 0)
        out += ids + attrs + data
        at = len(out) + 16 * len(features)
        for contents in features.values():
            out += struct.pack("<QQ", at, len(contents))
            at += len(contents)
        path.write_bytes(out + b"".join(features.values()))
