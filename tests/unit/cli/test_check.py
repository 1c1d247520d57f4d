"""``nodeproof check``: one line and an exit code, whatever the state of daemon, directory and configuration."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from nodeproof.cli.commands import check
from nodeproof.cli.main import main
from nodeproof.model.health import Finding, Grade, HealthScore, Reading, Severity
from nodeproof.sinks import last_verdict
from support.batches import health
from support.node import bare, healthy
from support.observed import HOSTILE, live_directory, steers


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"NODEPROOF_DATA_DIR": str(tmp_path), "NODEPROOF_CONFIG": "/dev/null"}


def ask(home: Mapping[str, str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["check"], home)
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1, "one line"
    assert not steers(out)
    assert json.loads(_json(home, capsys))["exit_code"] == code
    return code, out.removesuffix("\n")


def _json(home: Mapping[str, str], capsys: pytest.CaptureFixture[str]) -> str:
    main(["check", "-o", "json"], home)
    return capsys.readouterr().out


def warning(message: str) -> HealthScore:
    reading = Reading("disk", "space_usage", 99.0, "%")
    one = Finding("disk.full", Severity.WARNING, "disk", message, reading, "statvfs", 0.0, "> 95 %", "<= 93 %", "")
    return msgspec.structs.replace(health(97), grade=Grade.GOOD, findings=[one])


@pytest.mark.parametrize(
    ("score", "code", "line"),
    [
        (health(97), 0, "SOUND: score 97 Excellent, 100% of what applies was read"),
        (warning("/ is 99 % full"), 1, "WARNING: score 97 Good, 100% of what applies was read; / is 99 % full"),
        (
            msgspec.structs.replace(health(30), grade=Grade.CRITICAL),
            2,
            "CRITICAL: score 30 Critical, 100% of what applies was read",
        ),
        (
            msgspec.structs.replace(health(0), grade=Grade.UNKNOWN, coverage=0.25),
            3,
            "UNKNOWN: score 0 Unknown, 25% of what applies was read",
        ),
    ],
)
def test_the_verdict_of_a_living_daemon(
    score: HealthScore, code: int, line: str, home: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with live_directory(tmp_path / "snapshot", healthy(), score):
        assert ask(home, capsys) == (code, line)


def test_no_daemon_and_one_that_was_stopped(home: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "snapshot"
    assert ask(home, capsys) == (3, f"UNKNOWN: daemon absent: no daemon has written to {folder}")
    with live_directory(folder, healthy()):
        pass
    assert ask(home, capsys) == (3, f"UNKNOWN: daemon stopped: process {os.getpid()} was stopped in good order")


def test_a_daemon_whose_files_hold_no_answer_is_judged_here(
    home: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with live_directory(tmp_path / "snapshot", healthy()) as whole:
        whole.write(warning("/ is 99 % full"))
        assert ask(home, capsys) == (1, "WARNING: score 97 Good, 100% of what applies was read; / is 99 % full")
        (tmp_path / "snapshot" / "snapshot.json").write_bytes(
            (tmp_path / "snapshot" / "snapshot.json").read_bytes().replace(b'"findings":[', b'"findings":[3,')
        )
        code, line = ask(home, capsys)
    assert code == 3
    assert " holds no snapshot: Expected `object`, got `int` - at `$.health.findings[0]`" in line


def test_a_directory_named_by_a_file(home: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "n.yaml"
    for text, folder in [("snapshot: {dir: %s/there}\n", "there"), ("snapshot: {enabled: true}\nfeatures: [web]\n", "snapshot")]:
        file.write_text(text.replace("%s", str(tmp_path)))
        with live_directory(tmp_path / folder, healthy(), health(97)):
            assert ask({**home, "NODEPROOF_CONFIG": str(file)}, capsys)[0] == 0


def test_a_daemon_that_has_written_nothing_yet(
    home: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_verdict, "_PATIENCE_S", 0.1)
    with live_directory(tmp_path / "snapshot", bare(), health()):
        (tmp_path / "snapshot" / "snapshot.json").unlink()
        code, line = ask(home, capsys)
    assert code == 3
    assert line.startswith("UNKNOWN: daemon starting: ")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\x00", b'{"health": 3}', b"[]", b'{"pid": "x"}'])
def test_a_file_that_holds_no_snapshot(
    content: bytes, home: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with live_directory(tmp_path / "snapshot", healthy()):
        (tmp_path / "snapshot" / "snapshot.json").write_bytes(content)
        code, line = ask(home, capsys)
    assert code == 3
    assert line.startswith("UNKNOWN: ")


def test_a_hostile_message_stays_one_line(home: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with live_directory(tmp_path / "snapshot", healthy(), warning(HOSTILE + "x" * 1000)):
        code, line = ask(home, capsys)
    assert code == 1
    assert len(line) == 400


def test_a_bad_configuration_is_unknown_and_not_critical(
    home: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, which other commands give, would tell a scheduler that the node is critical."""
    file = tmp_path / "n.yaml"
    file.write_text("snapshott: {}\nfeatures: [x]\n")
    code, line = ask({**home, "NODEPROOF_CONFIG": str(file)}, capsys)
    assert code == 3
    assert line.startswith(
        f"UNKNOWN: {file}:1: snapshott: unknown key (did you mean snapshot?); {file}:2: features: 'x' is none of"
    )


def test_an_error_of_our_own_is_unknown(
    home: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> object:
        raise KeyError(HOSTILE)

    monkeypatch.setattr(check, "last_verdict", fail)
    code, line = ask(home, capsys)
    assert code == 3
    assert line.startswith("UNKNOWN: an error of nodeproof itself: KeyError: ")


def test_the_exit_code_stands_though_nobody_can_be_told(
    home: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[int] = []
    monkeypatch.setattr(check, "drop_output", lambda: dropped.append(1))

    class Full:
        encoding = "utf-8"

        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

        def flush(self) -> None: ...

    monkeypatch.setattr(sys, "stdout", Full())
    with live_directory(tmp_path / "snapshot", healthy(), warning("/ is full")):
        assert main(["check"], home) == 1
    assert dropped == [1]
