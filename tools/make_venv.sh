#!/bin/sh
# Make a virtual environment with pip in the folder $1, on a machine with no more than Python 3.11 and, as root, apt.
set -eu
venv=$1
[ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 && exit 0

python=
for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "nodeproof needs Python 3.11 or newer; install it, or name it: PYTHON=/path/to/python make run" >&2
    exit 1
fi

rm -rf "$venv"
"$python" -m venv "$venv" 2>/dev/null && exit 0

# Debian ships venv without ensurepip: a pip of the system can fill an environment made without one.
rm -rf "$venv"
if "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --without-pip "$venv"
    "$python" -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check pip
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get -qq update && apt-get -qq install -y python3-venv >/dev/null
    "$python" -m venv "$venv"
    exit 0
fi
echo "Python's venv module cannot make an environment here; install python3-venv (Debian: apt-get install python3-venv)" >&2
exit 1
