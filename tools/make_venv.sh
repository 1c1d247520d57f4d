#!/bin/sh
# Make a virtual environment with pip in the folder $1, on a machine with no more than Python 3.11 and, as root, apt.
# PYTHON names the interpreter; without it the first one is taken that is new enough.
set -eu
venv=$1
[ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 && exit 0

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python=
if [ -n "${PYTHON:-}" ]; then
    if ! new_enough "$PYTHON"; then
        echo "PYTHON=$PYTHON: not there, or older than 3.11" >&2
        exit 1
    fi
    python=$PYTHON
else
    for candidate in python3 python3.13 python3.12 python3.11; do
        if new_enough "$candidate"; then
            python=$candidate
            break
        fi
    done
fi
if [ -z "$python" ]; then
    echo "nodeproof needs Python 3.11 or newer; install it, or name it: PYTHON=/path/to/python make run" >&2
    exit 1
fi

make_with_pip() {
    rm -rf "$venv"
    "$python" -m venv "$venv" >/dev/null 2>&1 && "$venv/bin/python" -m pip --version >/dev/null 2>&1
}

make_with_pip && exit 0

# Debian ships venv without ensurepip: a pip of the system can fill an environment made without one.
rm -rf "$venv"
if "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --without-pip "$venv"
    "$python" -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check pip
    exit 0
fi
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "$python has neither ensurepip nor pip: installing python$version-venv" >&2
    apt-get -qq update
    apt-get -qq install -y "python$version-venv" >/dev/null
    make_with_pip && exit 0
fi
rm -rf "$venv"
cat >&2 <<END
$python cannot make a virtual environment with pip here: it has neither ensurepip nor pip.
Have it installed (Debian: apt-get install python$version-venv), or name another interpreter: PYTHON=/path/to/python make run
END
exit 1
