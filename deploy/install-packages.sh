#!/usr/bin/env bash
# Installs the Debian packages that perfd needs and that are missing. Nothing is downloaded when all are there.
#   deploy/install-packages.sh bq       to build and to run the quickstart
#   deploy/install-packages.sh bqt      to run every test as well
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/progress.sh
groups=${1:?usage: deploy/install-packages.sh [b][q][t]}
missing=()
while read -r group package; do
  case $group in ''|'#'*) continue ;; esac
  case $groups in *"$group"*) ;; *) continue ;; esac
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done <deploy/packages.txt
[ ${#missing[@]} -eq 0 ] && exit 0
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "these packages are missing and you are not root: ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
echo "installing ${#missing[@]} Debian packages and what they need: ${missing[*]}"
log=$(mktemp)
apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o Dpkg::Use-Pty=0)
if ! { progress packages "$log" "${apt[@]}" update &&
       progress packages "$log" "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; }; then
  tail -n 20 "$log" >&2
  echo "installing packages failed; the whole log is $log" >&2
  exit 1
fi
rm -f "$log"
