"""The command line as a whole: commands, flags, exit codes, and where things are printed."""

import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from nodeproof import __version__
from nodeproof.cli import main as entry
from nodeproof.cli.main import main
from nodeproof.cli.options import load_config_apart
from nodeproof.cli.parser import COMMANDS, make_parser
from nodeproof.cli.web_makers import makers_of
from nodeproof.config.resolve import defaults
from nodeproof.errors import ConfigError, NodeproofError, UsageError
from nodeproof.host.commands import CommandResult, HostCommands
from nodeproof.host.reader.client import ReaderClient
from nodeproof.stress.runner.place import SOCKET_VARIABLE
from support.daemon import until

Captured = pytest.CaptureFixture[str]
NOTHING: Mapping[str, str] = {}


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose directories are the test's."""
    return {"NODEPROOF_DATA_DIR": str(tmp_path), "NODEPROOF_CONFIG": "/dev/null"}


@pytest.mark.parametrize("command", [name for name, *_ in COMMANDS])
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"], NOTHING) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith(f"usage: nodeproof {command}")
    assert f"Example: nodeproof {command}" in shown
    assert "--config FILE" in shown


def test_help_and_version_of_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"], NOTHING) == 0
    assert main(["-h"], NOTHING) == 0
    assert main(["--version"], NOTHING) == 0
    assert capsys.readouterr().out.endswith(f"nodeproof {__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "usage", "complaint"),
    [
        (["bogus"], "usage: nodeproof [-h]", "invalid choice: 'bogus'"),
        (["health", "--bogus"], "usage: nodeproof health", "unrecognized arguments: --bogus"),
        (["health", "-o", "xml"], "usage: nodeproof health", "invalid choice: 'xml'"),
        (["list", "surplus"], "usage: nodeproof list", "unrecognized arguments: surplus"),
        (["config"], "usage: nodeproof config", "the following arguments are required: action"),
        (["collect", "--comp", "cpu"], "usage: nodeproof collect", "unrecognized arguments: --comp cpu"),
        (["--bogus"], "usage: nodeproof up", "unrecognized arguments: --bogus"),
        (["collect", "-c"], "usage: nodeproof collect", "expected one argument"),
    ],
)
def test_a_wrong_command_line_is_2_with_usage_on_standard_error(
    arguments: list[str], usage: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reference printed its usage and exited 0."""
    assert main(arguments, NOTHING) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(usage)
    assert complaint in err


def test_a_wrong_command_line_of_check_is_3(capsys: pytest.CaptureFixture[str]) -> None:
    """2 would tell a scheduler that the node is in a critical state."""
    assert main(["check", "--bogus"], NOTHING) == 3
    assert "unrecognized arguments" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "code"),
    [(["check"], 3), (["faults", "active"], 3), (["straggler"], 2), (["stress", "status"], 2), (["version"], 2)],
)
def test_a_root_is_refused_where_no_machine_is_looked_at(
    command: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was taken and ignored: ``check --root`` told of this machine."""
    assert main([*command, "--root", "/host"], NOTHING) == code
    assert "unrecognized arguments: --root /host" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["-addr", "--addr", "--address"])
def test_an_address_of_the_page_that_is_none_is_answered_with_one_of_the_page(
    flag: str, home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It named the port of the exporter, and a Unix socket that no browser reaches."""
    assert main(["web", flag, "foo"], home) == 2
    assert capsys.readouterr().err == "nodeproof: 'foo' is no address; write 127.0.0.1:9527 or [::1]:9527\n"


@pytest.mark.parametrize("flag", ["-c", "-config", "--config"])
@pytest.mark.parametrize("joined", [False, True])
def test_every_spelling_of_the_configuration(flag: str, joined: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter
    file = str(tmp_path / "n.yaml")
    given = [f"{flag}={file}"] if joined else [flag, file]
    assert make_parser().parse_args(["list", *given]).config == file


@pytest.mark.parametrize("flag", ["-c", "-config", "--config"])
def test_the_configuration_that_is_given_is_read(
    flag: str, tmp_path: Path, home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Defect 2: ``-c`` was ignored."""
    file = tmp_path / "n.yaml"
    file.write_text("exporter: {address: 'localhost:1'}\n", encoding="utf-8")
    assert main(["config", "show", flag, str(file)], home) == 0
    assert "localhost:1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "given", [["-o", "json"], ["-o=json"], ["-ojson"], ["--output", "json"], ["--output=json"], ["-output", "json"]]
)
def test_every_spelling_of_the_output(given: list[str], home: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """The reference ignored ``-o=json`` and ``-output json``."""
    assert main(["list", *given], home) == 0
    assert capsys.readouterr().out.startswith('[{"name":"chassis"')


def test_no_argument_and_a_flag_first_mean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, object]] = []

    def run(options: argparse.Namespace) -> int:
        seen.append((options.command, options.config))
        return 0

    monkeypatch.setattr("nodeproof.cli.commands.observe.run", run)
    assert main([], NOTHING) == 0
    assert main(["-c", "/x.yaml"], NOTHING) == 0
    assert seen == [("up", None), ("up", "/x.yaml")]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no"), 2),
        (ConfigError("a.b", "is wrong", source="f:3"), 2),
        (NodeproofError("did not work"), 1),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
        (OSError(28, "No space left on device"), 1),
    ],
)
def test_errors_become_exit_codes(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr("nodeproof.cli.commands.version.run", fail)
    monkeypatch.setattr(entry, "drop_output", lambda: None)
    assert main(["version"], NOTHING) == code
    assert capsys.readouterr().err.count("nodeproof: ") == (0 if code in {130, 141} else 1)


def test_ending_a_command_of_bench_by_hand_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("nodeproof.cli.commands.bench_gate.run", end)
    assert main(["bench", "gate"], NOTHING) == 130


def test_an_error_of_a_plug_in_steers_no_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: object) -> int:
        raise NodeproofError("fan \x1b]0;owned\x07\x9b2J\nsecond line")

    monkeypatch.setattr("nodeproof.cli.commands.version.run", fail)
    assert main(["version"], NOTHING) == 1
    assert main(["\x1b[2Jbogus\x9b"], NOTHING) == 2
    err = capsys.readouterr().err
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", err) is None
    assert "second line" in err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"], NOTHING) == 0
    assert re.fullmatch(rf"nodeproof v{re.escape(__version__)} \(Python 3\.\d+\.\d+\S*, Linux \w+\)\n", capsys.readouterr().out)


def test_a_root_without_a_machine(tmp_path: Path, home: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--root", str(tmp_path)], home) == 2
    assert f"--root {tmp_path}: has no folder proc" in capsys.readouterr().err


def test_the_reader_serves_until_it_is_told_to_end(tmp_path: Path, home: dict[str, str]) -> None:
    path = tmp_path / "reader.sock"

    def ask_and_end() -> None:
        until(path.exists, "it listens")
        answered.append(_refused(path))
        os.kill(os.getpid(), signal.SIGTERM)

    answered: list[str] = []
    other = threading.Thread(target=ask_and_end)
    other.start()
    assert main(["reader", "--socket", str(path), "--user", str(os.geteuid())], home) == 0
    other.join()
    assert answered == ["No such file or directory"]


def _refused(path: Path) -> str:
    try:
        os.close(ReaderClient(str(path)).open("/sys/class/powercap/no-such-one/energy_uj"))
    except OSError as error:
        return str(error.strerror)
    return ""


def test_a_reader_for_a_user_that_this_machine_has_not(tmp_path: Path, home: dict[str, str], capsys: Captured) -> None:
    assert main(["reader", "--socket", str(tmp_path / "x"), "--user", "no such user"], home) == 2
    assert capsys.readouterr().err == "nodeproof: --user 'no such user': this machine has no such user\n"


def test_the_configuration_of_a_long_life_is_read_by_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "n.yaml"
    file.write_text("exporter: {address: 'localhost:1'}\n", encoding="utf-8")
    options = argparse.Namespace(config=str(file), environ={"HOME": str(tmp_path), "NODEPROOF_DATA_DIR": str(tmp_path)})
    assert load_config_apart(options).exporter.address == "localhost:1"
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert load_config_apart(options).exporter.address == "localhost:1", "without a child it is read here"
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert load_config_apart(options).exporter.address == "localhost:1", "and so where the child is of no use"
    monkeypatch.undo()
    file.write_text("exporter: {adress: x}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"exporter\.adress"):
        load_config_apart(options)


def test_the_page_is_lent_the_doctor_of_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    answer = CommandResult((), 1, b'{"checks": []}', b"", 0.1, truncated=False)

    def run(_self: object, argv: list[str], *, deadline_s: float) -> CommandResult:
        assert deadline_s == 60.0
        asked.append(argv)
        return answer

    monkeypatch.setattr(HostCommands, "run", run)
    options = argparse.Namespace(config="/x.yaml", root="/host", environ={"HOME": str(tmp_path), SOCKET_VARIABLE: "none"})
    makers = makers_of(options, defaults({"HOME": str(tmp_path)}))
    assert makers.doctor is not None
    assert makers.doctor() == b'{"checks": []}'
    assert asked[0][1:] == ["-m", "nodeproof", "doctor", "-o", "json", "--root", "/host", "-c", "/x.yaml"]
    answer = answer._replace(exit_code=2, stderr=b"nodeproof: no such file\n")
    with pytest.raises(NodeproofError, match="nodeproof doctor ended with status 2: nodeproof: no such file"):
        makers.doctor()
    assert makers.settings is not None
    assert makers.settings().default_benchmarks == ("stream",)
    options.environ[SOCKET_VARIABLE] = "/run/a-runner.sock"
    assert makers_of(options, defaults({"HOME": str(tmp_path)})).settings is None
