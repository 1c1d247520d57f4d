"""One form of the state at a time: changed step by step, resumed after a kill, refused when it is newer, never lost."""

import argparse
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest

from nodeproof import __version__
from nodeproof.cli.main import main
from nodeproof.cli.state_lease import working_state
from nodeproof.errors import RecordError, UsageError, WriteError
from nodeproof.host import atomic
from nodeproof.host.shared_lock import SharedLock
from nodeproof.operate.state import version
from nodeproof.operate.state.version import SCHEMA, StateForm, Step, change_form, enter_state, read_form
from nodeproof.runs.index import RunIndex
from support.stored_runs import stored_run


def _orders(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'runs_newest'")]


def _old_index(home: Path) -> Path:
    """A store with one run, its index as form 1 has it."""
    stored_run(str(home))
    path = home / "runs" / ".index.sqlite3"
    RunIndex(str(path)).step_to(1)
    return path


def test_a_new_directory_has_the_form_of_this_nodeproof(tmp_path: Path) -> None:
    enter_state(str(tmp_path / "new")).close()

    assert read_form(str(tmp_path / "new")) == StateForm(schema=SCHEMA, nodeproof=__version__)


def test_an_old_one_is_brought_up_and_back_with_every_run(tmp_path: Path) -> None:
    index = _old_index(tmp_path)
    runs = RunIndex(str(index)).places()

    lease = enter_state(str(tmp_path))
    lease.close()
    assert (lease.did, _orders(index), RunIndex(str(index)).version()) == (("runs-index-newest",), ["runs_newest"], 2)
    again = enter_state(str(tmp_path))
    again.close()
    assert again.did == ()

    assert change_form(str(tmp_path), 1) == ("runs-index-newest",)
    assert (_orders(index), RunIndex(str(index)).version()) == ([], 1)
    assert RunIndex(str(index)).places() == runs
    assert len(runs) == 1


@pytest.mark.parametrize("form", [StateForm(schema=SCHEMA + 1, nodeproof="9.9"), StateForm(schema=1, heading_for=SCHEMA + 1)])
def test_a_newer_form_is_refused_with_the_remedy_and_left_as_it_is(form: StateForm, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(msgspec.json.encode(form))
    before = file.read_bytes()

    for attempt in (lambda: enter_state(str(tmp_path)), lambda: change_form(str(tmp_path), 1)):
        with pytest.raises(RecordError, match=rf"form {SCHEMA + 1}.*nodeproof state downgrade --to {SCHEMA}"):
            attempt()

    assert file.read_bytes() == before
    assert main(["state", "upgrade"], {"NODEPROOF_DATA_DIR": str(tmp_path)}) == 1


def test_an_index_of_a_newer_form_is_never_emptied(tmp_path: Path) -> None:
    index = _old_index(tmp_path)
    with contextlib.closing(sqlite3.connect(index)) as connection:
        connection.execute("PRAGMA user_version = 7")

    with pytest.raises(RecordError, match="form 7, of a newer nodeproof; it was set aside as"):
        RunIndex(str(index)).remove(["run-0"])

    (aside,) = index.parent.glob(".index.sqlite3.form-7-*")
    assert len(RunIndex(str(aside)).places()) == 1


def test_the_form_is_not_changed_under_a_process_that_works_with_it(tmp_path: Path) -> None:
    lease = enter_state(str(tmp_path))
    code = "import sys; from nodeproof.operate.state import version as v; v._WAIT_S = 0.05; v.change_form(sys.argv[1], 1)"

    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    lease.close()

    assert done.returncode == 1
    assert f"process {os.getpid()} works with it as it is; end that first" in done.stderr
    assert read_form(str(tmp_path)) == StateForm(schema=SCHEMA, nodeproof=__version__)
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 0


def test_nobody_works_with_a_form_that_is_being_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "_WAIT_S", 0.05)
    lock = SharedLock(str(tmp_path / ".state.lock"))
    assert lock.take(alone=True, timeout_s=0.0)

    with pytest.raises(RecordError, match="its form is being changed by"):
        enter_state(str(tmp_path))
    lock.close()
    enter_state(str(tmp_path)).close()


def _steps(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def noted(word: str) -> Step:
        def up(_: str) -> None:
            log.write_text(f"{log.read_text('utf-8')}+{word}", "utf-8")

        def down(_: str) -> None:
            log.write_text(f"{log.read_text('utf-8')}-{word}", "utf-8")

        return Step(SCHEMA, word, up, down)

    monkeypatch.setattr(version, "STEPS", (noted("a"), noted("b"), noted("c")))


def test_power_lost_at_every_write_of_a_change_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = atomic.store_file

    class PowerLostError(BaseException):
        pass

    for survives in range(10):
        home = tmp_path / f"after-{survives}"
        (home / "runs").mkdir(parents=True)
        log = home / "log"
        log.touch()
        _steps(log, monkeypatch)
        writes = 0

        def store(path: str, data: bytes, survives: int = survives) -> None:
            nonlocal writes
            writes += 1
            if writes > survives:
                raise PowerLostError
            real(path, data)

        monkeypatch.setattr(version, "store_file", store)
        try:
            enter_state(str(home)).close()
            whole = True
        except PowerLostError:
            whole = False
        monkeypatch.setattr(version, "store_file", real)
        lease = enter_state(str(home))
        lease.close()

        done = log.read_text("utf-8").replace("+", "")
        assert whole == (writes <= survives)
        assert "".join(dict.fromkeys(done)) == "abc", "in order"
        assert len(done) <= 4, "at most the step that was cut short is made twice"
        assert read_form(str(home)) == StateForm(schema=SCHEMA, nodeproof=__version__)


def test_a_change_that_was_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    code = textwrap.dedent(
        """
        import os, signal, sys
        from nodeproof.operate.state import version
        from nodeproof.operate.state.version import Step

        def note(word):
            return lambda home: open(os.path.join(home, "log"), "a").write(word)

        def killed(home):
            note("b")(home)
            if sys.argv[2] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)

        steps = {"a": note("a"), "b": killed, "c": note("c")}
        version.STEPS = tuple(Step(version.SCHEMA, name, up, up) for name, up in steps.items())
        print(version.enter_state(sys.argv[1]).did)
        """
    )

    first = subprocess.run([sys.executable, "-c", code, str(tmp_path), "kill"], capture_output=True, check=False)
    cut = read_form(str(tmp_path))
    second = subprocess.run([sys.executable, "-c", code, str(tmp_path), "go on"], capture_output=True, text=True, check=False)

    assert first.returncode == -signal.SIGKILL
    assert cut == StateForm(schema=1, nodeproof=__version__, heading_for=SCHEMA, done=("a",))
    assert second.stdout.strip() == "('b', 'c')"
    assert (tmp_path / "log").read_text() == "abbc"


def test_what_cannot_be_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"NODEPROOF_DATA_DIR": str(tmp_path)}
    with pytest.raises(UsageError, match=f"can make forms 1 to {SCHEMA}"):
        change_form(str(tmp_path), SCHEMA + 1)
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(RecordError, match="cannot be understood"):
        enter_state(str(tmp_path))

    assert main(["state", "repair"], environ) == 0
    assert "set aside as" in capsys.readouterr().out
    assert main(["state", "upgrade"], environ) == 0
    assert main(["state", "downgrade", "--to", "1"], environ) == 0
    assert "has form 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["stress", "run", "stream"],
        ["daemon"],
        ["web"],
        ["runner", "--socket", "runner.sock"],
        ["state", "repair"],
        ["state", "prune"],
        ["state", "downgrade"],
    ],
    ids=" ".join,
)
def test_no_command_works_with_a_newer_form(words: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "state.json").write_bytes(msgspec.json.encode(StateForm(schema=99, nodeproof="9.9")))
    words = [str(tmp_path / word) if word.endswith(".sock") else word for word in words]

    code = main(words, {"NODEPROOF_DATA_DIR": str(tmp_path), "HOME": str(tmp_path), "NODEPROOF_RUNNER_SOCKET": "none"})

    assert code == 1
    assert "form 99, written by nodeproof 9.9" in capfd.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == [".state.lock", "state.json"]


def test_where_the_state_cannot_be_written_there_is_nothing_to_spoil() -> None:
    options = argparse.Namespace(environ={"NODEPROOF_DATA_DIR": "/proc/nowhere"})

    with working_state(options):
        pass


def test_who_works_with_the_state_holds_it_and_says_what_was_brought_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version, "_WAIT_S", 0.05)
    _old_index(tmp_path)
    options = argparse.Namespace(environ={"NODEPROOF_DATA_DIR": str(tmp_path)})

    with working_state(options), pytest.raises(RecordError, match="works with it as it is"):
        change_form(str(tmp_path), 1)
    assert "the state was brought up: runs-index-newest" in caplog.text
    change_form(str(tmp_path), 1)


def test_what_root_makes_in_the_directory_of_a_service_belongs_to_that(tmp_path: Path, absent_here: list[str]) -> None:
    if os.geteuid() != 0:
        absent_here.append("not root: files made in another user's state directory were not looked at")
        return
    home = tmp_path / "state"
    home.mkdir()
    os.chown(home, 65534, 65534)

    enter_state(str(home)).close()

    assert {(path.stat().st_uid, path.stat().st_gid) for path in home.iterdir()} == {(65534, 65534)}


def test_root_changes_nothing_in_the_directory_of_another(
    tmp_path: Path, absent_here: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if os.geteuid() != 0:
        absent_here.append("not root: state repair in another user's directory was not tried")
        return
    os.chown(tmp_path, 65534, 65534)

    for action in ("repair", "prune", "upgrade", "downgrade"):
        assert main(["state", action], {"NODEPROOF_DATA_DIR": str(tmp_path)}) == 2
        told = capsys.readouterr().err
        assert f"-- env NODEPROOF_DATA_DIR={tmp_path} nodeproof state {action}" in told

    assert list(tmp_path.iterdir()) == []
    assert main(["state", "check"], {"NODEPROOF_DATA_DIR": str(tmp_path)}) == 0


def test_a_state_file_that_is_anothers_alone_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "state.json").write_text("{}")
    monkeypatch.setattr("builtins.open", refuse)

    with pytest.raises(WriteError, match="Permission denied"):
        read_form(str(tmp_path))


def test_a_pipe_in_its_place_is_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "state.json")
    with pytest.raises(RecordError, match=r"state\.json is no plain file"):
        read_form(str(tmp_path))
