# nodeproof into a place of its own, out of the wheels in /wheels and nothing else.
set -eu
if python3 -c 'import ensurepip' 2>/dev/null; then
    python3 -m venv /opt/nodeproof
    pip=/opt/nodeproof/bin/pip
    $pip install --no-index --find-links /wheels --no-cache-dir --disable-pip-version-check nodeproof
    # pip was needed for this, and is for nothing else.
    $pip uninstall --yes --quiet --disable-pip-version-check pip setuptools 2>/dev/null || true
else
    python3 -m venv --without-pip /opt/nodeproof
    python3 -m pip --python /opt/nodeproof/bin/python install --no-index --find-links /wheels --no-cache-dir \
        --disable-pip-version-check nodeproof
fi
/opt/nodeproof/bin/nodeproof version
