"""Installing and taking back: every change said before, none lost, none of somebody else's touched."""

import json
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from nodeproof.cli.commands import install
from nodeproof.cli.main import main
from nodeproof.errors import CommandError, CommandFailure, RecordError
from nodeproof.host import atomic
from nodeproof.host.commands import CommandResult
from nodeproof.operate.install import steps as steps_module
from nodeproof.operate.install.layout import SERVICES, Site, check_program, found_devices, steps
from nodeproof.operate.install.steps import Action, FileStep, InstallError, Journal, RunStep, apply, plan, undo, undo_plan
from nodeproof.operate.install.templates import template

DROP_INS = {
    "nodeproof.service.d": ("nvidia", "amd", "ascend"),
    "nodeproof-reader.service.d": ("kmsg", "smart", "ipmi", "ascend"),
}


class Programs:
    """Notes what is run; ``bad`` fails."""

    def __init__(self, bad: str = "") -> None:
        self.ran: list[str] = []
        self.bad = bad
        self.started_total = 0

    def find(self, program: str) -> str | None:
        return None if self.bad == "absent" else program

    def lent(self, program: str) -> bool:
        del program
        return False

    def run(self, argv: Sequence[str], *, deadline_s: float, subject: str = "") -> CommandResult:
        del deadline_s, subject
        line = " ".join(argv)
        self.ran.append(line)
        if self.bad == "absent":
            raise CommandError(argv[0], CommandFailure.NOT_FOUND, "not found")
        failed = bool(self.bad) and self.bad in line
        return CommandResult(tuple(argv), int(failed), b"", b"Failed to start.\n" if failed else b"", 0.0, truncated=False)

    def close(self) -> None:
        pass


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "nodeproof-install" not in str(path)
    }


def journal(folder: Path) -> Journal:
    made = Journal(str(folder), "1.0")
    made.load()
    return made


def staged(folder: Path, **changes: object) -> Site:
    plain = Site(program="/opt/nodeproof/bin/nodeproof", root=str(folder), pages={"/usr/share/man/man1/x.1": "x"})
    return msgspec.structs.replace(plain, **changes)


def test_a_plan_changes_nothing_and_the_installation_is_what_it_said(tmp_path: Path) -> None:
    wanted = steps(staged(tmp_path))
    said = plan(wanted, journal(tmp_path))
    assert tree(tmp_path) == {}
    assert apply(wanted, journal(tmp_path), Programs()) == said
    assert {change.what for change in said} == {f"{tmp_path}/{name}" for name in tree(tmp_path)}
    assert all(change.action is Action.CREATE for change in said)
    assert plan(wanted, journal(tmp_path)) == []


def test_units_run_the_program_and_hold_no_placeholder(tmp_path: Path) -> None:
    apply(steps(staged(tmp_path, devices=("nvidia",))), journal(tmp_path), Programs())
    found = tree(tmp_path)
    assert (
        "ExecStart=/opt/nodeproof/bin/nodeproof daemon --config /etc/nodeproof/nodeproof.yaml\n"
        in found["etc/systemd/system/nodeproof.service"]
    )
    assert not [name for name, text in found.items() if "@PROGRAM@" in text or "@CONFIG@" in text]
    assert "etc/systemd/system/nodeproof.service.d/nvidia.conf" in found
    assert "etc/systemd/system/nodeproof.service.d/amd.conf" not in found


def test_uninstall_leaves_nothing_but_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hosts").write_text("mine\n")
    apply(steps(staged(tmp_path)), journal(tmp_path), Programs())
    assert {change.action for change in undo_plan(journal(tmp_path))} == {Action.REMOVE}
    done, troubles = undo(journal(tmp_path), Programs())
    assert troubles == []
    assert len(done) > 10
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == ["etc", "etc/hosts", "var", "var/lib"]


def test_only_the_parts_asked_for(tmp_path: Path) -> None:
    apply(steps(staged(tmp_path, services=("daemon",))), journal(tmp_path), Programs())
    units = [name for name in tree(tmp_path) if "systemd/system" in name]
    assert units == ["etc/systemd/system/nodeproof.service"]
    with pytest.raises(InstallError, match=r"deamon: no such part; there are daemon, reader, runner, web"):
        steps(staged(tmp_path, services=("deamon",)))


def test_a_configuration_that_is_there_stays_whatever_it_says(tmp_path: Path) -> None:
    config = tmp_path / "etc/nodeproof/nodeproof.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("mine: true\n")
    said = apply(steps(staged(tmp_path)), journal(tmp_path), Programs())
    assert [change.what for change in said if change.action is Action.KEEP] == [str(config)]
    undo(journal(tmp_path), Programs())
    assert config.read_text() == "mine: true\n"


def test_a_unit_of_somebody_elses_is_refused_and_with_force_put_back_later(tmp_path: Path) -> None:
    unit = tmp_path / "etc/systemd/system/nodeproof.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\n# another packager's\n")
    unit.chmod(0o604)
    wanted = steps(staged(tmp_path))
    with pytest.raises(InstallError, match=r"nodeproof\.service is there and is not as nodeproof wrote it; .*--force"):
        apply(wanted, journal(tmp_path), Programs())
    assert tree(tmp_path) == {"etc/systemd/system/nodeproof.service": "[Service]\n# another packager's\n"}
    said = apply(wanted, journal(tmp_path), Programs(), force=True)
    assert [change.what for change in said if change.action is Action.REPLACE] == [str(unit)]
    assert Action.RESTORE in {change.action for change in undo_plan(journal(tmp_path))}
    undo(journal(tmp_path), Programs())
    assert tree(tmp_path) == {"etc/systemd/system/nodeproof.service": "[Service]\n# another packager's\n"}
    assert stat.S_IMODE(unit.stat().st_mode) == 0o604


def test_an_upgrade_replaces_what_nobody_touched_and_refuses_what_was_edited(tmp_path: Path) -> None:
    apply(steps(staged(tmp_path)), journal(tmp_path), Programs())
    newer = steps(staged(tmp_path, program="/opt/newer/bin/nodeproof"))
    said = apply(newer, journal(tmp_path), Programs())
    assert {Path(change.what).name for change in said if change.action is Action.REPLACE} == {
        "nodeproof.service",
        "nodeproof-reader.service",
        "nodeproof-runner.service",
        "nodeproof-web.service",
    }
    unit = tmp_path / "etc/systemd/system/nodeproof.service"
    unit.write_text(unit.read_text() + "MemoryMax=1G\n")
    with pytest.raises(InstallError):
        apply(steps(staged(tmp_path)), journal(tmp_path), Programs())
    done, _ = undo(journal(tmp_path), Programs())
    assert [change.what for change in done if change.action is Action.KEEP] == [str(unit)]
    assert list(tree(tmp_path)) == ["etc/systemd/system/nodeproof.service"]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("kept")
    unit = tmp_path / "etc/systemd/system/nodeproof.service"
    unit.parent.mkdir(parents=True)
    unit.symlink_to(target)
    with pytest.raises(InstallError, match="is no regular file; move it away"):
        apply(steps(staged(tmp_path)), journal(tmp_path), Programs(), force=True)
    assert target.read_text() == "kept"


def commands_of(tmp_path: Path) -> list[FileStep | RunStep]:
    return [
        RunStep(argv=(), why="forget", undo=("systemctl", "daemon-reload")),
        FileStep(path=f"{tmp_path}/a/b/one", text="1", why="first"),
        RunStep(argv=("systemctl", "enable", "x"), why="start", undo=("systemctl", "disable", "x")),
        FileStep(path=f"{tmp_path}/a/two", text="2", why="second"),
        RunStep(argv=("last",), why="to fail"),
    ]


def test_programs_are_run_in_order_and_taken_back_in_reverse(tmp_path: Path) -> None:
    programs = Programs()
    said = apply(commands_of(tmp_path), journal(tmp_path), programs)
    assert [change.what.removeprefix(f"{tmp_path}/") for change in said] == ["a/b/one", "systemctl enable x", "a/two", "last"]
    done, troubles = undo(journal(tmp_path), programs)
    assert programs.ran == ["systemctl enable x", "last", "systemctl disable x", "systemctl daemon-reload"]
    assert [change.what.removeprefix(f"{tmp_path}/") for change in done] == [
        "a/two",
        "systemctl disable x",
        "a/b/one",
        "systemctl daemon-reload",
    ]
    assert troubles == []


@pytest.mark.parametrize("bad", ["last", "absent"])
def test_a_step_that_fails_takes_back_those_before_it(tmp_path: Path, bad: str) -> None:
    with pytest.raises(InstallError, match=r"last: exit status 1: Failed to start|systemctl enable x: systemctl: not found"):
        apply(commands_of(tmp_path), journal(tmp_path), Programs(bad))
    assert tree(tmp_path) == {}
    assert not (tmp_path / "a").exists()
    assert not journal(tmp_path).load()


def test_one_that_was_killed_half_way_is_taken_back_by_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal is on the disk before each step, so wherever it stops, uninstall knows what there may be."""
    wanted = steps(staged(tmp_path))
    writes = atomic.store_file

    class Killed(BaseException):
        pass

    for stop_at in range(1, 2 * len(wanted), 3):
        left = stop_at

        def dying(path: str, data: bytes, *, mode: int = 0o640) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed
            writes(path, data, mode=mode)

        monkeypatch.setattr(steps_module, "store_file", dying)
        with pytest.raises(Killed):
            apply(wanted, journal(tmp_path), Programs())
        monkeypatch.setattr(steps_module, "store_file", writes)
        undo(journal(tmp_path), Programs())
        assert tree(tmp_path) == {}, stop_at


def test_what_cannot_be_taken_back_is_said_and_the_rest_is(tmp_path: Path) -> None:
    apply(commands_of(tmp_path)[:4], journal(tmp_path), Programs())
    done, troubles = undo(journal(tmp_path), Programs("disable"))
    assert troubles == ["systemctl disable x: exit status 1: Failed to start."]
    assert len(done) == 3
    assert tree(tmp_path) == {}
    assert [entry.undo for entry in journal(tmp_path).entries()] == [["systemctl", "disable", "x"]]


@pytest.mark.parametrize(
    ("text", "message"), [("{", "put it right or move it away"), ('{"schema": 99, "version": "9", "entries": []}', "schema 99")]
)
def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path, text: str, message: str) -> None:
    made = Journal(str(tmp_path), "1.0")
    Path(made.folder).mkdir(parents=True)
    (Path(made.folder) / "journal.json").write_text(text)
    with pytest.raises(RecordError, match=message):
        made.load()


def test_this_machine_also_gets_users_directories_and_a_start() -> None:
    lines = [" ".join(step.argv) for step in steps(Site(program="/opt/n")) if isinstance(step, RunStep)]
    assert lines == [
        "",
        "systemd-sysusers /usr/lib/sysusers.d/nodeproof.conf",
        "systemd-tmpfiles --create /usr/lib/tmpfiles.d/nodeproof.conf",
        "systemctl daemon-reload",
        "systemctl enable --now nodeproof.service nodeproof-reader.socket nodeproof-runner.service nodeproof-web.service",
    ]
    assert not [
        step for step in steps(Site(program="/opt/n", start=False)) if isinstance(step, RunStep) and "systemctl" in step.argv
    ]


def test_the_reader_may_use_chips_where_there_are_some() -> None:
    def drop_ins(*devices: str, services: tuple[str, ...] = tuple(SERVICES)) -> set[str]:
        made = steps(Site(program="/opt/n", devices=devices, services=services))
        return {
            step.path.rpartition("/etc/systemd/system/")[2] for step in made if isinstance(step, FileStep) and ".d/" in step.path
        }

    assert "nodeproof-reader.service.d/ascend.conf" in drop_ins("ascend")
    assert "nodeproof-reader.service.d/ascend.conf" not in drop_ins("nvidia")
    assert "nodeproof-reader.service.d/ascend.conf" not in drop_ins("ascend", services=("daemon",))


def test_a_plan_is_shown_though_the_program_would_be_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "nodeproof"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o775)
    monkeypatch.setattr(install, "Journal", lambda _root, version: Journal(str(tmp_path), version))
    assert main(["install", "--plan", "--program", str(program)], {}) == 1
    shown = capsys.readouterr()
    assert "create  /etc/systemd/system/nodeproof.service" in shown.out
    assert shown.err.startswith("nodeproof: this would be refused: ")
    assert "can be changed by others than root" in shown.err
    assert main(["install", "--program", str(program)], {}) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err.startswith(f"nodeproof: {program}")) == ("", True)


def test_devices_are_those_of_this_machine() -> None:
    assert set(found_devices()) <= {"nvidia", "amd", "ascend"}


def test_a_program_that_services_cannot_reach_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    program = home / "nodeproof"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with pytest.raises(InstallError, match=r"lies below .*home, which users of a service may not enter; .*/opt/nodeproof"):
        check_program(str(program))
    home.chmod(0o777)
    with pytest.raises(InstallError, match=r"home can be changed by others than root"):
        check_program(str(program))
    home.chmod(0o755)
    program.chmod(0o775)
    with pytest.raises(InstallError, match=r"nodeproof can be changed by others than root"):
        check_program(str(program))
    with pytest.raises(InstallError, match="cannot be run"):
        check_program(str(home / "none"))
    check_program("/bin/sh")


class TestSystemd:
    """What systemd itself says of the units, offline."""

    @pytest.fixture
    def units(self, tmp_path: Path, absent_here: list[str]) -> Path | None:
        if shutil.which("systemd-analyze") is None:
            absent_here.append("systemd-analyze on the units: it is not installed")
            return None
        for names in SERVICES.values():
            for name in names:
                text = template(name, program="/bin/true", config="/etc/nodeproof/nodeproof.yaml")
                (tmp_path / name).write_text(text.replace("man:nodeproof(1)", "https://localhost/"))
        return tmp_path

    def test_they_are_well_formed(self, units: Path | None) -> None:
        if units is None:
            return
        done = subprocess.run(
            ["/usr/bin/systemd-analyze", "verify", *map(str, sorted(units.iterdir()))],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize(
        ("unit", "limit"), [("nodeproof", 2.0), ("nodeproof-web", 2.0), ("nodeproof-reader", 2.0), ("nodeproof-runner", 2.5)]
    )
    def test_they_are_hardened(self, units: Path | None, unit: str, limit: float) -> None:
        if units is None:
            return
        argv = ["systemd-analyze", "security", "--offline=true", "--json=short", str(units / f"{unit}.service")]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        exposure = sum(float(line["exposure"] or 0) for line in json.loads(done.stdout))
        summary = subprocess.run([*argv[:3], argv[4]], capture_output=True, text=True, check=True).stdout.splitlines()[-1]
        assert float(summary.split(":")[1].split()[0]) <= limit, (summary, exposure)

    @pytest.mark.parametrize("drop_in", [f"{folder}/{name}.conf" for folder, names in DROP_INS.items() for name in names])
    def test_every_exception_has_its_reason(self, drop_in: str) -> None:
        first, *rest = template(drop_in).splitlines()
        assert first.startswith("# ")
        assert len(first) > 40
        assert "[Service]" in rest

    def test_jobs_do_not_run_below_the_daemon_and_have_no_quota(self) -> None:
        text = template("nodeproof-runner.service")
        assert "Slice=nodeproof-jobs.slice" in text
        assert "Delegate=yes" in text
        assert not [
            line
            for line in text.splitlines()
            if line.startswith(("CPUQuota", "MemoryMax", "MemoryHigh", "CPUWeight", "IOWeight"))
        ]
