#!/usr/bin/env bash
# Builds and tests perfd. On a bare Debian 12 it installs what it needs first (root or sudo).
#   tests/run.sh            the small tier: what a change has to pass
#   tests/run.sh all        everything else, in parts; `tests/run.sh list` names them, `tests/run.sh PART...` runs some
# Ends with one line: "N passed, N failed, N skipped". All of it is explained in tests/runner/main.py.
set -euo pipefail
cd "$(dirname "$0")/.."
# Whoever only asks for something to read gets it at once.
case "${1:-}" in
  -h | --help | list | times | slowest) ;;
  *) PROGRESS_STEP="packages: " deploy/install-packages.sh bqt ;;
esac
# Debian's own: another python3 in the PATH does not have Debian's pytest.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
exec "$python" -B tests/runner/main.py "$@"
