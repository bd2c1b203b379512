#!/usr/bin/env bash
# From a bare Debian 12 to the first report: builds perfd, starts it with an agent on this machine, profiles a real
# MPI x OpenMP job while it runs, prints the report, stops everything again, and ends with what a fix of each loop would save.
#   deploy/quickstart.sh            packages are installed if they are missing (root or sudo)
#   SECONDS_TO_PROFILE=60 deploy/quickstart.sh   (30 without it: 2 % of ten seconds buy the reading of the program and little more)
# Everything it writes is below build/. Nothing is left running.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/progress.sh
root=$PWD
seconds=${SECONDS_TO_PROFILE:-30}
say() { printf '\n\033[1m== %s\033[0m\n' "$*" | if [ -t 1 ]; then cat; else sed 's/\x1b\[[0-9;]*m//g'; fi; }

say "1/5 packages and build"
PROGRESS_STEP="1/5 packages: " deploy/install-packages.sh bq
programs=(perfd perf-agent perf-agent-reader perf-agent-tracer perfctl)
mkdir -p build
# What the tests have built and nobody has changed since will do.
if [ ! -e build/release/bin/perfctl ] && [ -e build/ci/build.ninja ] && ninja -C build/ci -n "${programs[@]}" | grep -q 'no work to do'; then
  preset=ci
else
  preset=release
  PROGRESS_STEP="1/5 configure: " progress configure build/configure.log cmake --preset release -DPERFD_TESTS=OFF || {
    tail -n 20 build/configure.log; exit 1; }
  PROGRESS_STEP="1/5 build: " progress_build build/build.log ninja -C build/release "${programs[@]}"
fi
bin=$root/build/$preset/bin
echo "the programs are in $bin after $SECONDS s"
scratch=$(mktemp -d "$root/build/quickstart.XXXXXX")
mpicc -O2 -g -fopenmp -o "$scratch/heat" deploy/quickstart/heat.c -lm

pids=()
stop_all() {
  local pid
  trap - EXIT INT TERM
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
  done
  rm -rf "$scratch"
}
trap stop_all EXIT
trap 'exit 130' INT TERM

# wait_until SECONDS STEP COMMAND...: tries it until it succeeds; a line every 10 s says what is waited for.
wait_until() {
  local most=$1 step=$2 tries=0
  shift 2
  until "$@"; do
    tries=$((tries + 1))
    [ "$tries" -lt $((most * 10)) ] || return 1
    [ $((tries % 100)) -ne 0 ] || echo "$step, $((tries / 10)) of at most $most s"
    sleep 0.1
  done
}

# wait_for FILE PATTERN STEP: up to a minute for a line in a log.
wait_for() {
  wait_until 60 "$3" grep -qE "$2" "$1" 2>/dev/null && return 0
  echo "no '$2' in $1 after a minute:" >&2; tail -n 20 "$1" >&2; return 1
}
has_ended() { ! kill -0 "$1" 2>/dev/null; }

say "2/5 perfd and perf-agent"
export PERFD_ADDRESS=unix:$scratch/perfd.sock
"$bin/perfd" --store-dir "$scratch/store" --socket "$scratch/perfd.sock" --metrics-listen 127.0.0.1:0 \
  2>"$scratch/perfd.log" & pids+=($!)
wait_for "$scratch/perfd.log" 'metrics on http' "2/5 perfd starts"
metrics=$(grep -oE 'http://[^ ]+' "$scratch/perfd.log" | head -n 1)
"$bin/perf-agent" --spool-dir "$scratch/spool" 2>"$scratch/agent.log" & pids+=($!)
wait_for "$scratch/agent.log" 'connected to perfd' "2/5 perf-agent connects"
"$bin/perfctl" nodes

threads=$(($(nproc) > 3 ? $(nproc) / 2 : 1))  # one per CPU: who shares a CPU waits, and that is all a measurement would see
say "3/5 a job: mpirun -n 2 heat, threads each: $threads"
run_as_root=; [ "$(id -u)" -ne 0 ] || run_as_root=--allow-run-as-root
OMP_WAIT_POLICY=passive OMP_NUM_THREADS=$threads mpirun $run_as_root --oversubscribe --bind-to none -n 2 "$scratch/heat" $((seconds + 6)) \
  >"$scratch/heat.log" 2>&1 & job=$!; pids+=($job)
sleep 1

say "4/5 profile it: perfctl submit job.yaml, perfctl watch"
sed "s/^duration: .*/duration: ${seconds}s/" deploy/quickstart/job.yaml >"$scratch/job.yaml"
profile=$("$bin/perfctl" submit "$scratch/job.yaml")
"$bin/perfctl" watch "$profile"

say "5/5 the report: perfctl report $profile"
"$bin/perfctl" report "$profile"
savings=$("$bin/perfctl" report "$profile" | sed -n '/^What a fix would save/,/^$/p')
echo
echo "metrics for Prometheus were at $metrics ($(curl -fsS "$metrics" 2>/dev/null | grep -c '^perfd_' || true) perfd series)"
wait_until 300 "5/5 the job comes to its end" has_ended "$job" || { echo "the job does not end" >&2; exit 1; }
wait "$job"
echo "the job itself says: $(cat "$scratch/heat.log")"
stop_all
echo "everything is stopped; nothing is left but $root/build"

say "the saturations of that job, measured while it ran"
# At least one variant with its figure; of a loop that was refused there are none.
if ! grep -qE '^ +[A-Z][A-Z0-9_]* +[0-9]+\.[0-9]+ ' <<<"$savings"; then
  printf '%s\n' "no variant of any loop was measured; the report above says why (refused, open or never entered)" >&2
  exit 1
fi
printf '%s\n' "$savings"
