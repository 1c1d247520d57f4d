#!/bin/sh
# What tests of the page use of npm, by the hashes of the lock; nothing of it is shipped. Without npm the test run lists what was not checked.
set -eu
cd "$(dirname "$0")/node"
command -v npm >/dev/null 2>&1 || { echo "npm is not installed: types and accessibility of the page will not be checked" >&2; exit 0; }
npm ci --silent --no-audit --no-fund --no-update-notifier >/dev/null 2>&1 ||
    echo "npm ci failed in tools/node: types and accessibility of the page will not be checked" >&2
