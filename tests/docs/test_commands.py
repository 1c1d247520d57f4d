"""Every shell command of the documents runs as it stands there.

A block ``sh`` is run in order with the others of its page, in one folder, by ``bash -eu``. A block that is only ``nodeproof up``
is started, and ends with the page. Words behind ``sh`` say what a block needs that is not here (``fresh clone``, ``root``); such
blocks are listed at the end of the run and not run.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import free_port
from support.documents import PAGES, Block, blocks

pytestmark = pytest.mark.timeout(120)

PORT = "19320"
_READY_S = 30.0
_TOOLS = ("bash", "curl", "jq")

WITH_COMMANDS = [page for page in PAGES if any(block.info.split()[:1] == ["sh"] for block in blocks(page))]


class Desk:
    """A folder, an environment and perhaps a daemon in which the commands of one page run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        config = folder / "of-the-test.yaml"
        places = f"exporter: {{address: '127.0.0.1:{self.port}'}}\nweb: {{address: '127.0.0.1:{free_port()}'}}\n"
        config.write_text(places, encoding="utf-8")
        self.program = str(Path(sys.executable).parent / "nodeproof")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = os.environ | {
            "PATH": path,
            "NODEPROOF_CONFIG": str(config),
            "NODEPROOF_DATA_DIR": str(folder / "state"),
            "HOME": str(folder),
        }
        self.ports: dict[str, str] = {}
        """Free ones in the place of those that servers of the page listen on."""
        self.daemon: subprocess.Popen[bytes] | None = None

    def run(self, block: Block) -> None:
        """Run one block; each port of the documents becomes one that is free here."""
        text = block.text.replace(PORT, str(self.port))
        self.ports |= {port: str(free_port()) for port in re.findall(r"--port (\d+)", text) if port not in self.ports}
        for port, free in self.ports.items():
            text = text.replace(port, free)
        if text.strip() == "nodeproof up":
            self.start()
            return
        done = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", text],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, f"line {block.line}: exit {done.returncode}\n{block.text}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip(), f"line {block.line}: a command that shows nothing\n{block.text}\n{done.stderr}"

    def start(self) -> None:
        """Start the daemon and wait until it has a verdict."""
        with open(self.folder / "daemon.log", "wb") as log:
            self.daemon = subprocess.Popen([self.program, "up"], cwd=self.folder, env=self.environment, stdout=log, stderr=log)
        until = time.monotonic() + _READY_S
        while time.monotonic() < until:
            done = subprocess.run([self.program, "check"], env=self.environment, capture_output=True, check=False)
            if done.returncode in {0, 1, 2}:
                return
            assert self.daemon.poll() is None, self._log()
            time.sleep(0.2)
        pytest.fail(f"the daemon has no verdict after {_READY_S:g} s\n{self._log()}")

    def end(self) -> None:
        """End the daemon, in good order."""
        if self.daemon is not None:
            self.daemon.send_signal(signal.SIGINT)
            assert self.daemon.wait(20) == 0, self._log()

    def _log(self) -> str:
        return (self.folder / "daemon.log").read_text("utf-8", "replace")[-4000:]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """The desk of one page."""
    desk = Desk(tmp_path)
    yield desk
    desk.end()


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_commands_run_as_they_stand_there(page: Path, desk: Desk, absent_here: list[str]) -> None:
    lacking = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if lacking:
        absent_here.append(f"{', '.join(lacking)}: commands of {page.name} were not run")
        return
    for block in blocks(page):
        if block.info == "sh":
            desk.run(block)
        elif block.info.startswith("sh "):
            commands = "; ".join(line.partition("#")[0].strip() for line in block.text.splitlines() if line.strip())
            absent_here.append(f"{page.name} line {block.line}, needs {block.info.removeprefix('sh ')}: {commands}")
