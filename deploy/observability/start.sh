#!/usr/bin/env bash
# Starts Prometheus with perfd's rules, in the foreground; ends with it (Ctrl-C).
#   deploy/observability/start.sh [--target HOST:PORT] [--cluster NAME] [--data DIR] [--listen HOST:PORT] [--interval TIME]
#   --target    where perfd serves its metrics; may be given several times (default: those of targets.yml)
#   --cluster   how the cluster of the targets after it is called (default main)
#   --data      configuration and measurements (default build/observability; kept)
#   --listen    where Prometheus answers (default 127.0.0.1:9090: it knows no users, so do not open it to everyone)
#   --interval  how often to scrape and to evaluate rules (default: as in prometheus.yml)
# Needs the Debian package prometheus. Grafana is not in Debian; README.md says how to import the dashboards.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../../build/observability listen=127.0.0.1:9090 interval='' cluster=main targets=''
usage() { sed -n 2,10p "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    --target) targets+="- { targets: ['$2'], labels: { cluster: '$cluster' } }"$'\n' ;;
    --cluster) cluster=$2 ;;
    --data) data=$2 ;;
    --listen) listen=$2 ;;
    --interval) interval=$2 ;;
    *) usage ;;
  esac
  shift 2
done
for tool in prometheus promtool; do
  command -v "$tool" >/dev/null || { echo "start.sh: $tool is not installed: apt-get install prometheus" >&2; exit 1; }
done
mkdir -p "$data/rules"
cp "$here"/rules/*.yml "$data/rules/"
cp "$here/prometheus.yml" "$data/prometheus.yml"
if [ -n "$interval" ]; then
  sed -i -E "s/^(  (scrape|evaluation)_interval: )[^ ]+/\1$interval/" "$data/prometheus.yml"
fi
if [ -n "$targets" ]; then printf '%s' "$targets" >"$data/targets.yml"; else cp "$here/targets.yml" "$data/targets.yml"; fi
promtool check config "$data/prometheus.yml" >"$data/check.log" || { cat "$data/check.log" >&2; exit 1; }
echo "Prometheus: http://$listen/  alerts: http://$listen/alerts  data: $data"
exec prometheus --config.file="$data/prometheus.yml" --storage.tsdb.path="$data/tsdb" --web.listen-address="$listen" \
  --storage.tsdb.retention.time=90d --log.level=warn
