"""Commands as processes: pipes that close, streams that are full or shut, terminals, and a daemon beside them."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.daemon import Daemon, environment, nodeproof, until
from support.observed import HOSTILE, steers

_STYLE = re.compile(r"\x1b\[[0-9;]*m|\r")
"""What rich writes itself: bold headings, line ends of a terminal."""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return environment({"NODEPROOF_DATA_DIR": str(tmp_path), "NODEPROOF_CONFIG": "/dev/null"})


def shell(line: str, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run ``line`` with ``$N`` for the command."""
    script = f'N="{sys.executable} -m nodeproof"; {line}'
    return subprocess.run(["/bin/bash", "-c", script], env=env, capture_output=True, check=False, timeout=30)


def test_a_reader_that_has_seen_enough(home: dict[str, str]) -> None:
    done = shell("$N collect --component cpu --component memory -o json | head -1; echo ${PIPESTATUS[0]}", home)
    first, code = done.stdout.decode().splitlines()
    assert json.loads(first)["component"] == "cpu"
    assert code in {"0", "141"}
    assert done.stderr == b""
    done = shell("$N explain | { read line; exec <&-; sleep 0.3; }; echo ${PIPESTATUS[0]}", home)
    assert done.stderr == b""


def test_help_to_a_reader_that_is_gone(home: dict[str, str]) -> None:
    done = shell("{ sleep 0.5; $N --help; echo $? >&2; } | true", home)
    assert done.stderr.decode().splitlines() in (["0"], ["141"])


@pytest.mark.parametrize(("command", "code"), [("list", b"1"), ("explain", b"1"), ("version", b"1"), ("check", b"3")])
def test_a_full_disk_behind_the_output(command: str, code: bytes, home: dict[str, str]) -> None:
    done = shell(f"$N {command} >/dev/full; echo $?", home)
    assert done.stdout.strip() == code
    if command != "check":
        assert done.stderr == b"nodeproof: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize(("command", "code"), [("list", b"2"), ("collect", b"2"), ("check", b"3")])
def test_closed_standard_output(command: str, code: bytes, home: dict[str, str]) -> None:
    done = shell(f"$N {command} >&-; echo $?", home)
    assert done.stdout.strip() == code
    assert b"Traceback" not in done.stderr


def test_all_streams_closed_changes_no_exit_code(home: dict[str, str]) -> None:
    assert shell("$N check <&- >&- 2>&-; echo $? >$NODEPROOF_DATA_DIR/code", home).returncode == 0
    assert Path(home["NODEPROOF_DATA_DIR"], "code").read_text().strip() == "3"


@pytest.mark.parametrize("encoding", ["ascii:strict", "latin-1"])
def test_a_locale_that_cannot_show_a_character(encoding: str, home: dict[str, str]) -> None:
    done = nodeproof("health", env={**home, "PYTHONIOENCODING": encoding})
    assert done.code == 0
    assert "Overall:" in done.out
    assert done.err == ""


def test_interrupted(home: dict[str, str]) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "nodeproof", "health"], env=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(0.6)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=20)
    assert child.returncode in {130, -signal.SIGINT}
    assert b"Traceback" not in err


def on_a_terminal(argv: list[str], env: dict[str, str]) -> str:
    """What a command shows on a terminal of 200 columns."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "nodeproof", *argv], env={**env, "TERM": "xterm", "COLUMNS": "200"}, stdout=slave, stderr=slave
    )
    os.close(slave)
    shown = b""
    while select.select([master], [], [], 20.0)[0]:
        try:
            part = os.read(master, 65536)
        except OSError:  # EIO: nobody has the other end open any more
            break
        if not part:
            break
        shown += part
    os.close(master)
    child.wait(20)
    return shown.decode("utf-8", "replace")


@pytest.mark.parametrize(
    "argv",
    [
        ["collect", "--component", "fans", "-o", "table"],
        ["collect", "--component", "fans", "-o", "json", "--missing"],
        ["collect", "--component", "fans", "-o", "prom"],
        ["list"],
    ],
    ids=["table", "json", "prom", "list"],
)
def test_no_hostile_text_steers_a_terminal(daemon: Daemon, argv: list[str]) -> None:
    body = f"""
HOSTILE = {HOSTILE!r}
class Theirs(Frame):
    def collect(self):
        gone = Missing("fans", HOSTILE, Absence.READ_ERROR, HOSTILE, {{"fan": HOSTILE}}, HOSTILE, HOSTILE)
        return Batch("fans", "", 0.0, [Metric("fans", HOSTILE, 1.0, HOSTILE, {{HOSTILE: HOSTILE}})], [gone])
"""
    daemon.install("fans", body)
    daemon.install("broken", f"raise ValueError({HOSTILE!r})\n")
    shown = on_a_terminal([*argv, "-c", str(daemon.config)], daemon.env)
    assert "owned" in shown
    assert not steers(_STYLE.sub("", shown)), shown


def test_up_says_the_first_verdict_and_where_to_look(daemon: Daemon, tmp_path: Path) -> None:
    said = tmp_path / "said"
    with open(said, "wb") as out:
        daemon.process = subprocess.Popen(
            [sys.executable, "-m", "nodeproof"],
            env={**daemon.env, "NODEPROOF_CONFIG": str(daemon.config)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
    until(lambda: "Ctrl-C ends." in said.read_text(), "the first verdict", 15.0)
    text = said.read_text()
    assert re.search(r"Overall: +\[[█░]{30}\] +\d+ / 100 +\[ \w+ \]", text)
    assert f"Metrics at http://127.0.0.1:{daemon.port}/metrics." in text
    assert f"Snapshots in {daemon.snapshots}." in text
    assert daemon.stop(signal.SIGINT) == 0


def test_explain_beside_a_living_daemon(daemon: Daemon) -> None:
    daemon.start()
    daemon.until_check(0, 1, 2)
    done = nodeproof("explain", "cpu.usage", "-c", str(daemon.config))
    assert done.code == 0
    assert f"Readings of the daemon (process {daemon.pid})." in done.out
    assert re.search(r"Reads: +cpu.usage \(core=total\) = [\d.]+ %", done.out)
    assert re.search(r"Age: +[01]\.\d s", done.out)
    assert "The daemon, at" in done.out
    done = nodeproof("explain", "memory.oom_kills", "-c", str(daemon.config))
    assert "second reading" not in done.out


def test_health_needs_no_second_reading(home: dict[str, str]) -> None:
    done = nodeproof("health", "-o", "json", env=home)
    assert done.code == 0
    assert "second reading" not in done.out
    assert json.loads(done.out)["coverage"] > 0.5
