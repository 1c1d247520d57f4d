# First stage: one wheel out of the source, installed offline into an overlay, and proved. $1: CANN's environment script, or nothing.
set -euo pipefail
tools=${NPU_TOOLS:-/build/tools}
build=${NPU_BUILD:-/build}
place=/opt/nodeproof-npu/site
. "$tools/cann-env.sh"
find_cann "${1-}"
python3 "$tools/npu_preflight.py" builder
if [ -f "$tools/compat.patch" ]; then
    patch --directory="$build/source" --strip=1 --fuzz=0 --forward --batch <"$tools/compat.patch"
fi
python3 -m pip wheel --no-index --no-deps --no-build-isolation --disable-pip-version-check -w "$build/wheel" "$build/source"
wheels=("$build"/wheel/*.whl)
if [ ${#wheels[@]} -ne 1 ] || [ ! -f "${wheels[0]}" ]; then
    echo "the source made ${#wheels[@]} wheels, and one is wanted" >&2
    exit 1
fi
overlay=$build/overlay
# The builder's own pip: the runtime base needs none. Even where the base has the same version, this one is installed.
python3 -m pip install --no-index --no-deps --force-reinstall --disable-pip-version-check --no-compile \
    --target "$overlay$place" "${wheels[0]}"
python3 "$tools/npu_preflight.py" installed "$overlay$place" >"$overlay/opt/nodeproof-npu/versions.json"
entry=$overlay$place/bin/npu-burn
# By stat: a test for "executable" lies under some sandboxes.
case $(stat --format=%a "$entry") in
*[1357]) ;;
*)
    echo "$entry is there and is no program that all may run" >&2
    exit 1
    ;;
esac
sha256sum "${wheels[0]}" | sed 's, .*/, ,' >"$overlay/opt/nodeproof-npu/wheel.sha256"
