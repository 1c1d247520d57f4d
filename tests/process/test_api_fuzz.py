"""schemathesis drives every operation of the OpenAPI document against a real server, with all of its checks.

A few examples an operation belong to each run; the acceptance run has more::

    NODEPROOF_API_EXAMPLES=200 python -m pytest tests/process/test_api_fuzz.py
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodeproof.web import gate
from support.api_site import api_site

EXAMPLES = int(os.environ.get("NODEPROOF_API_EXAMPLES", "6"))
NEVER_ENDS = "/api/events"
"""No answer that a fuzzer could wait for; ``test_stream`` and ``test_connection`` read it."""
SEED = "20261201"

pytestmark = pytest.mark.timeout(120 if EXAMPLES < 50 else 3000)


def test_every_operation_does_what_the_document_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "_STARTS", 1_000_000)  # else the first five starts would be all that is tried
    with api_site(tmp_path) as server:
        command = [
            *(str(Path(sys.executable).parent / "schemathesis"), "run", f"{server.url}api/openapi.json"),
            *("--checks", "all", "--max-examples", str(EXAMPLES), "--seed", SEED, "--exclude-path", NEVER_ENDS),
            *("--generation-database", "none", "--request-timeout", "20", "--no-color", "--continue-on-failure"),
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
