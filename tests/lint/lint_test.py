#!/usr/bin/env python3
"""Shows that each lint can fail: plants one violation of each kind in a copy of the tree and expects it to be found."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLANTS = [
    ("layers", "core/base/planted.cc", '#include "daemon/store/database.h"\n'),
    ("cycles", "core/model/planted.cc", '#include "core/analysis/hot_set.h"\n'),
    ("doors", "core/base/planted.cc", "long f() { return ptrace(0); }\n"),
    ("sizes", "core/base/planted.cc", "int x;\n" * 401),
    ("headers", "core/base/planted.h", "int x;\n"),
    ("protos", "proto/perfd/v1/planted.proto", "message Bare {\n}\n"),
    *(("pages", "docs/planted.md", text) for text in (
        "    perfd --frob\n", "`perfctl report last --variant LS`\n", "`perfctl hook list --wait`\n", "a `--frob` flag\n",
        "`perf-agent --user-mode --store-dir x`\n", "    perfd --socket x \\\n        --frob\n", "`spool.limit_gib`\n",
        "`core/base/nothing.h`\n", "`e2e_nothing`\n", "[more](nothing.md)\n")),
]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch) / "tree"
        for part in ("core", "agent", "daemon", "client", "proto", "deploy", "docs", "tests/lint"):
            shutil.copytree(ROOT / part, copy / part)
        for check, name, text in PLANTS:
            planted = copy / name
            planted.write_text(text)
            run = subprocess.run([sys.executable, "-B", str(copy / "tests/lint/lint.py"), check], capture_output=True,
                                 text=True, timeout=60)
            if run.returncode != 1 or "planted" not in run.stdout and check != "cycles":
                print(f"{check}: {text!r} was not found:\n{run.stdout}{run.stderr}")
                failed += 1
            planted.unlink()
    print(f"{len(PLANTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
