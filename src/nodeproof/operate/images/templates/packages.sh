# Packages that are not there yet, from the package manager of the base; nothing is asked of it when none is missing.
set -eu
missing=
for package in "$@"; do
    dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null | grep -q '^installed$' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
export DEBIAN_FRONTEND=noninteractive
# The list is ours: it is meant to be split into words.
# shellcheck disable=SC2086
if ! { apt-get update && apt-get install -y --no-install-recommends $missing; }; then
    echo "the base lacks$missing, and its package manager cannot bring them: take a base that has them, or another --build-network" >&2
    exit 1
fi
rm -rf /var/lib/apt/lists/*
