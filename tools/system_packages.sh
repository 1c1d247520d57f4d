#!/bin/sh
# Tools outside PyPI that some tests use. As root they are installed; otherwise the test run lists what is missing and why it matters.
set -eu
command -v promtool >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    # promtool lints the exposition; the server beside it in the package is not started.
    (apt-get -qq update && RUNLEVEL=1 apt-get -qq install -y --no-install-recommends prometheus) >/dev/null 2>&1 ||
        echo "promtool could not be installed: the exposition will not be linted by it" >&2
else
    echo "promtool is not installed (Debian: apt-get install prometheus): the exposition will not be linted by it" >&2
fi
