#!/bin/sh
# Tools outside PyPI that some tests use. As root they are installed; otherwise the test run lists what is missing and why it matters.
set -eu
# promtool lints the exposition; the server beside it in the package is not started. Chromium shows the page to the tests.
# gcc makes the libraries that stand in for those of drivers.
wanted=
command -v promtool >/dev/null 2>&1 || wanted="$wanted prometheus"
command -v systemd-nspawn >/dev/null 2>&1 || wanted="$wanted systemd-container"
command -v chromium >/dev/null 2>&1 || wanted="$wanted chromium"
command -v gcc >/dev/null 2>&1 || wanted="$wanted gcc libc6-dev"
# podman and runc run a deployment for real; they are small, and no service of theirs is started.
command -v podman >/dev/null 2>&1 || wanted="$wanted podman"
command -v runc >/dev/null 2>&1 || wanted="$wanted runc"
# npm brings what checks the page: types of its code, and axe for accessibility (tools/node).
command -v npm >/dev/null 2>&1 || wanted="$wanted nodejs npm"
[ -n "$wanted" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get -qq update >/dev/null 2>&1 || true
    for package in $wanted; do
        RUNLEVEL=1 apt-get -qq install -y --no-install-recommends "$package" >/dev/null 2>&1 ||
            echo "$package could not be installed: what needs it will not be checked" >&2
    done
else
    echo "not installed (Debian: apt-get install$wanted): what needs it will not be checked" >&2
fi
