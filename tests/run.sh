#!/usr/bin/env bash
# Builds everything and runs every test and lint. On a bare Debian 12 it installs what it needs first (root or sudo).
#   tests/run.sh            everything: release build, all tests, sanitizers on the pure parts, fuzz smoke
#   tests/run.sh quick      release build and its tests only
# Ends with one line: "N passed, N failed, N skipped". Skipped tests are listed with their reasons.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-all}
case $mode in all|quick) ;; *) sed -n 2,5p "$0"; exit 2 ;; esac
deploy/install-packages.sh bqt
out=build/test-logs
mkdir -p "$out"
passed=0 failed=0 skipped=0
jobs=$(nproc) checks=0 last_log=

# build PRESET TARGETS...: configures and builds, quietly unless it fails.
build() {
  local preset=$1; shift
  local begin=$SECONDS
  cmake --preset "$preset" >"$out/$preset-configure.log" 2>&1 || { tail -n 30 "$out/$preset-configure.log"; return 1; }
  ninja -C "build/$preset" -j "$jobs" "$@" >"$out/$preset-build.log" 2>&1 || {
    grep -E 'error|FAILED' -A 5 "$out/$preset-build.log" | head -n 60; return 1; }
  echo "built $preset in $((SECONDS - begin)) s"
}

# check PRESET CTEST-ARGUMENTS...: runs tests and adds up what happened.
check() {
  local preset=$1; shift
  local log=$out/$preset-ctest-$((++checks)).log
  last_log=$log
  local begin=$SECONDS status=0
  ctest --test-dir "build/$preset" --verbose --timeout 600 "$@" >"$log" 2>&1 || status=$?
  local ran bad none number
  bad=$(grep -cE '\*\*\*(Failed|Timeout|Exception|Not Run)' "$log" || true)
  none=$(grep -cE '\*\*\*Skipped' "$log" || true)
  ran=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#' "$log" || true)
  passed=$((passed + ran - bad - none)) failed=$((failed + bad)) skipped=$((skipped + none))
  echo "ran $ran tests of $preset ($*) in $((SECONDS - begin)) s: $((ran - bad - none)) passed, $bad failed, $none skipped"
  grep -E '\*\*\*(Skipped|Failed|Timeout|Exception|Not Run)' "$log" || true
  grep -E '^[0-9]+: (SKIPPED:|retry )' "$log" | cut -c1-300 || true
  for number in $(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#([0-9]+):.*\*\*\*(Failed|Timeout|Exception).*/\1/p' "$log"); do
    grep -E "^$number: " "$log" >"$out/one.log"
    { grep -E ': Failure|FAILED  \]|^[0-9]+: (Traceback|AssertionError|FAILED)' -A 6 "$out/one.log" | head -n 40
      tail -n 30 "$out/one.log"; } | cut -c1-600
  done
  if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ] || [ "$ran" -eq 0 ]; then tail -n 5 "$log"; failed=$((failed + 1)); fi
}

# failed_cases LOG TEST: the cases of GoogleTest that failed, one a line; "all of it" for a test that did not come to its end.
failed_cases() {
  local number
  number=$(sed -nE "s/^ *[0-9]+\/[0-9]+ Test +#([0-9]+): $2 .*\*\*\*(Failed|Timeout|Exception).*/\1/p" "$1")
  [ -n "$number" ] || return 0
  grep -qE "^$number: +[0-9]+ FAILED TEST" "$1" || { echo "all of it"; return 0; }
  sed -nE "s/^$number: \[  FAILED  \] ([^ ,]+\.[^ ,]+).*/\1/p" "$1" | sort -u
}

# again PRESET LABEL: what just failed with that label runs once more, alone and as a whole; both runs are shown, and a case counts
# as failed that failed in both. A host that lends its CPUs to others for long makes a wait too short once, now here, now there.
again() {
  local preset=$1 label=$2 first=$last_log name
  local list=build/$preset/Testing/Temporary/LastTestsFailed.log
  [ "$failed" -gt 0 ] && [ -s "$list" ] || return 0
  for name in $(ctest --test-dir "build/$preset" -N -L "$label" -R "^($(sed 's/^[0-9]*://' "$list" | paste -sd '|'))\$" |
                sed -nE 's/^ *Test +#[0-9]+: //p'); do
    local before="$passed $failed $skipped" both
    echo "once more: $name"
    check "$preset" -R "^$name\$" -j 1
    read -r passed failed skipped <<<"$before"
    failed_cases "$first" "$name" >"$out/first" && failed_cases "$last_log" "$name" >"$out/second"
    both=$(comm -12 "$out/first" "$out/second")
    if [ -s "$out/second" ] && grep -qx 'all of it' "$out/first" "$out/second"; then both=$(cat "$out/second"); fi
    if [ -z "$both" ]; then
      passed=$((passed + 1)) failed=$((failed - 1))
    else
      echo "failed twice: $name: $(paste -sd ' ' <<<"$both")"
    fi
  done
}

build ci
check ci -L 'lint|unit' -j "$jobs"
again ci unit
check ci -L 'integration|e2e|timing' -j 1
again ci integration
if [ "$mode" = all ]; then
  for preset in asan tsan; do
    build "$preset" unit_tests
    check "$preset" -L unit -j "$jobs"
  done
  build fuzz fuzzers
  check fuzz -L fuzz -j "$jobs"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
