"""A whole server as the API fuzzer meets it: snapshots, jobs that end at once, runs, faults and a doctor's answer."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from nodeproof.stress.settings import BENCHMARKS
from nodeproof.web.backstage import Makers
from nodeproof.web.server import WebServer
from support.daemon import environment
from support.stress import make_manager, make_settings, run_job, write_dispatcher
from support.web import Written, serving

__all__ = ["api_site"]


@contextlib.contextmanager
def api_site(folder: Path, *, token_file: str = "") -> Iterator[WebServer]:
    """Until the end of the block."""
    written = Written(folder / "snapshot")
    written.write()
    settings = make_settings(folder, write_dispatcher(folder / "check.sh"), names=BENCHMARKS, timeout_s=86400.0)
    settings = msgspec.structs.replace(settings, web_enabled=True)
    manager = make_manager(settings)
    run_job(make_manager(settings), "stream")
    doctor = subprocess.run(
        [sys.executable, "-m", "nodeproof", "doctor", "-o", "json"], env=environment(), capture_output=True, check=False
    ).stdout
    makers = Makers(lambda: manager, lambda: doctor, lambda: settings, str(folder / "faults"))
    try:
        with serving(written.folder, makers=makers, token_file=token_file) as server:
            yield server
    finally:
        written.close()
