# Last stage: lspci from a package, what fits to what, no compilers, and the one program. $1: CANN's environment script, or nothing.
set -euo pipefail
place=${NPU_PLACE:-/opt/nodeproof-npu}
program=${NPU_PROGRAM:-/usr/local/bin/catmonitor-npu-burn}
packages=${NPU_PACKAGES:-/packages}
. "$place/cann-env.sh"
find_cann "${1-}"
for tool in gcc g++ cc clang make cmake bisheng; do
    if command -v "$tool" >/dev/null 2>&1; then
        echo "the runtime base holds $tool: take a base without compilers" >&2
        exit 1
    fi
done
if python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("vllm") is None)'; then
    echo "the runtime base holds vllm: take a base with CANN's runtime, torch and torch_npu alone" >&2
    exit 1
fi
if [ -d "$packages" ]; then
    if compgen -G "$packages/*.deb" >/dev/null; then
        dpkg --install "$packages"/*.deb
    else
        rpm --install --nodeps --replacepkgs "$packages"/*.rpm
    fi
    rm -rf "$packages"
elif ! command -v lspci >/dev/null 2>&1; then
    if command -v apt-get >/dev/null 2>&1; then
        apt-get update && apt-get install -y --no-install-recommends pciutils && rm -rf /var/lib/apt/lists/*
    elif command -v dnf >/dev/null 2>&1; then
        dnf install -y pciutils && dnf clean all
    elif command -v yum >/dev/null 2>&1; then
        yum install -y pciutils && yum clean all
    fi
fi
# Without lspci NPU Burn takes any node for one of eight devices.
if ! lspci --version; then
    echo "lspci does not run: give its packages with --pciutils-package, or take a base that has it" >&2
    exit 1
fi
here=$(python3 - <<'END'
import json
import sys
from importlib import metadata

found = {"python": ".".join(map(str, sys.version_info[:2]))}
for name in ("torch", "torch_npu"):
    found[name] = metadata.version(name)
print(json.dumps(found, sort_keys=True))
END
)
if [ "$here" != "$(cat "$place/versions.json")" ]; then
    echo "built with $(cat "$place/versions.json"), and the runtime base has $here: compiled parts would not fit" >&2
    exit 1
fi
mkdir -p "$(dirname "$program")"
cat >"$program" <<END
#!/bin/bash
# NPU Burn under CANN's environment.
set +u
. $CANN_ENV
export PYTHONPATH=$place/site\${PYTHONPATH:+:\$PYTHONPATH}
exec $place/site/bin/npu-burn "\$@"
END
chmod 0755 "$program"
rm "$place/npu-runtime.sh" "$place/cann-env.sh"
