#!/bin/sh
# torch for the tests of gpu_burn, in an environment of its own beside the one given ($1), and only where pip would take it from a
# disk of this machine: from an index it is several GB. Without it those tests are listed as not run.
set -u
venv=$1
python=$venv/bin/python
target=$venv-torch
version=2.13.0
[ -x "$target/bin/python" ] && "$target/bin/python" -c 'import torch' 2>/dev/null && exit 0
source=$(timeout 60 "$python" -m pip install --quiet --dry-run --no-deps --ignore-installed --only-binary :all: --report - \
    "torch==$version" 2>/dev/null |
    "$python" -c 'import json, sys; print(json.load(sys.stdin)["install"][0]["download_info"]["url"])' 2>/dev/null) || source=
case $source in
file:*) ;;
*)
    echo "torch $version is not on a disk of this machine: its part of gpu_burn will not be checked" >&2
    exit 0
    ;;
esac
"$(dirname "$0")/make_venv.sh" "$target" || exit 0
timeout 300 "$target/bin/python" -m pip install --quiet --disable-pip-version-check "torch==$version" msgspec PyYAML ||
    echo "torch $version could not be installed: its part of gpu_burn will not be checked" >&2
exit 0
