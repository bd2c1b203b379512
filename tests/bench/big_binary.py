#!/usr/bin/env python3
"""Analysis of a large program: generates and builds one of about 100 MB with DWARF, runs it, and measures the time from
submit to the first loops on the screen, then once more with everything cached.

Usage: tests/bench/big_binary.py [--build DIR] [--files 40] [--keep DIR]     (the build takes some minutes)
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

FILE = """#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace big {{
template <int N> struct Item {{ int key; double value[N % 7 + 1]; std::string name; }};
template <int N> double Work(std::vector<Item<N>>& items, std::map<int, Item<N>>& index) {{
  std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) {{ return a.key < b.key; }});
  double sum = 0;
  for (const auto& item : items) {{ index[item.key] = item; sum += item.value[0]; }}
  for (auto& [key, item] : index) for (double& v : item.value) v = v * 0.5 + key;
  return sum;
}}
double Run{file}(int n) {{
  double sum = 0;
{calls}
  return sum;
}}
}}
"""
CALL = "  {{ std::vector<Item<{k}>> v(n); std::map<int, Item<{k}>> m; sum += Work<{k}>(v, m); }}"
MAIN = """#include <cstdlib>
#include <cstdio>
#include <ctime>
namespace big {{
{declarations}
}}
static double a[4096], b[4096];
__attribute__((noinline)) void Hot() {{
  for (int i = 0; i < 4096; ++i) a[i] = b[i] / (1.0 + a[i]);
}}
int main(int argc, char** argv) {{
  const std::time_t end = std::time(nullptr) + std::atoi(argv[1]);
  double sum = 0;
  if (argc > 2) {{ {calls} }}
  while (std::time(nullptr) < end) for (int i = 0; i < 1000; ++i) {{ Hot(); sum += a[7]; }}
  std::printf("%g\\n", sum);
}}
"""


def generate(folder, files, per_file=45):
    for number in range(files):
        calls = "\n".join(CALL.format(k=number * per_file + i) for i in range(per_file))
        (folder / f"part{number}.cc").write_text(FILE.format(file=number, calls=calls))
    declarations = "\n".join(f"double Run{i}(int);" for i in range(files))
    calls = " ".join(f"sum += big::Run{i}(3);" for i in range(files))
    (folder / "main.cc").write_text(MAIN.format(declarations=declarations, calls=calls))
    (folder / "Makefile").write_text(
        "objects = $(patsubst %.cc,%.o,$(wildcard *.cc))\n"
        "big_program: $(objects)\n\tg++ -g -o $@ $(objects)\n"
        "%.o: %.cc\n\tg++ -g -O1 -c -o $@ $<\n")
    subprocess.run(["make", "-s", "-j2", "-C", folder, "big_program"], check=True)
    return folder / "big_program"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--keep", help="folder for the generated program; reused when it is there")
    args = parser.parse_args()
    os.environ["PERFD_BUILD_DIR"] = str(pathlib.Path(args.build).resolve())
    import cluster
    folder = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="perfd-big-"))
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "big_program"
    if not program.exists():
        program = generate(folder, args.files)
    result = {"binary_mib": round(program.stat().st_size / 2**20, 1)}
    with cluster.Cluster() as c:
        c.spawn("job", [program, "60"])
        cluster.wait_until(lambda: cluster.ranks_of("big_program"), 20, "the program runs")
        for kind in ("first", "cached"):
            begin = time.monotonic()
            profile = c.submit("--command", "big_program", "--duration", "4s")
            watch = subprocess.Popen([cluster.BIN / "perfctl", "watch", profile, "--json"], stdout=subprocess.PIPE,
                                     text=True, env={**os.environ, "PERFD_ADDRESS": f"unix:{c.socket}"})
            for line in watch.stdout:
                if json.loads(line).get("top_loops"):
                    result[f"{kind}_loops_seconds"] = round(time.monotonic() - begin, 3)
                    break
            watch.stdout.read()
            watch.wait(60)
            c.wait_over(profile)
        top = c.json("report", profile)["loops"][0]
        result["hottest"] = f"{top['function']} {pathlib.Path(top['file']).name}:{top['first_line']}"
    print(json.dumps(result))


if __name__ == "__main__":
    main()
