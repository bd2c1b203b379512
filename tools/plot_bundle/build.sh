#!/usr/bin/env bash
# Makes core/page/vendor/plot.js and LICENCES.txt from the versions in package-lock.json (npm checks their hashes). The
# result is checked in, so that building perfd needs neither npm nor a network.
#   tools/plot_bundle/build.sh           write both files
#   tools/plot_bundle/build.sh --check   say whether the files checked in are what this makes; exit 1 when they are not
# Other versions: edit package.json, run `npm install --package-lock-only` here, then this.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
vendor=$here/../../core/page/vendor
command -v npm >/dev/null || { echo "npm is not installed" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/package.json "$here"/package-lock.json "$here"/entry.js "$here"/licences.mjs "$work"
cd "$work"
npm ci --ignore-scripts --no-audit --no-fund --silent
node_modules/.bin/esbuild entry.js --bundle --minify --format=iife --global-name=Plot --target=es2019 --charset=ascii \
  --legal-comments=none --log-level=warning --metafile=meta.json --outfile=body.js
node licences.mjs meta.json >LICENCES.txt
plot=$(node -p 'require("./node_modules/@observablehq/plot/package.json").version')
{ echo "/*! Observable Plot $plot with parts of D3. ISC licence: the whole text is at the end of this page. */"; cat body.js; } >plot.js
if [ "${1:-}" = --check ]; then
  cmp plot.js "$vendor/plot.js" && cmp LICENCES.txt "$vendor/LICENCES.txt" && echo "the bundle is what this script makes"
else
  mkdir -p "$vendor"
  cp plot.js LICENCES.txt "$vendor"
  wc -c "$vendor"/plot.js "$vendor"/LICENCES.txt
fi
