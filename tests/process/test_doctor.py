"""``nodeproof doctor`` as a process: by users with less and more rights, on whole machines and with single files taken away."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.daemon import Daemon, environment, nodeproof
from support.hosts import write_host

POWERLESS = ("/usr/bin/setpriv", "--inh-caps=-all", "--bounding-set=-all")
"""Root without any capability: owner of its files, and no more."""


def doctor(*argv: str, env: dict[str, str], **options: Any) -> dict[str, Any]:
    """Its diagnosis, and its exit code under ``code``."""
    done = nodeproof("doctor", "-o", "json", *argv, env=env, **options)
    assert done.err == ""
    found: dict[str, Any] = json.loads(done.out)
    assert found["everything_applicable_can_be_read"] is (done.code == 0)
    return {**found, "code": done.code}


def causes(found: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """By state and reason."""
    return {(one["state"], one["reason"]): one for one in (*found["causes"], *found["pending"])}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment({"NODEPROOF_DATA_DIR": str(tmp_path / "home"), "NODEPROOF_CONFIG": "/dev/null"})


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A recorded virtual machine."""
    return Path(write_host("vm-2cpu", str(tmp_path / "host")))


@pytest.fixture
def powerless(absent_here: list[str]) -> tuple[str, ...]:
    """What takes a user's rights beyond those of owner and group; nothing for an ordinary user."""
    if os.geteuid() != 0:
        return ()
    if not os.path.exists(POWERLESS[0]):
        absent_here.append("doctor without rights: there is no setpriv to take them from root with")
        pytest.skip("needs setpriv")
    return POWERLESS


def test_one_file_taken_away_changes_its_line_only(host: Path, env: dict[str, str], powerless: tuple[str, ...]) -> None:
    before = doctor("--root", str(host), env=env, command=powerless)
    for path, metric, rule in (
        ("proc/meminfo", "memory.usage", "memory.usage"),
        ("proc/net/dev", "network.error_count", "network.errors"),
        ("dev/kmsg", "cpu.machine_checks", "cpu.uncorrected_errors"),
        ("proc/sys/kernel/tainted", "system.kernel_taint", "system.tainted_by_oops"),
    ):
        (host / path).chmod(0)
        after = doctor("--root", str(host), env=env, command=powerless)
        (host / path).chmod(0o644)
        new = causes(after).keys() - causes(before).keys()
        assert new == {("no_permission", f"/{path}: Permission denied")}
        [cause] = [causes(after)[key] for key in new]
        assert metric in cause["metrics"]
        assert rule in cause["rules"]
        assert cause["remedy"]
        # What a log that was read could not tell, on a machine that started within this hour, goes with the log.
        kept = {
            key: one for key, one in causes(before).items() if path != "dev/kmsg" or "the kernel log does not reach" not in key[1]
        }
        assert {key: one for key, one in causes(after).items() if key not in new} == kept
        changed = [(one["item"], one["detail"]) for one in after["checks"] if one not in before["checks"]]
        assert changed == ([("kernel log", "/dev/kmsg: Permission denied")] if path == "dev/kmsg" else [])
        assert after["points_blind"] - before["points_blind"] == pytest.approx(cause["points"], abs=0.02)
        assert after["code"] == 1


def test_what_an_ordinary_user_cannot_read_here(env: dict[str, str], powerless: tuple[str, ...]) -> None:
    """On this very machine: the kernel log, where it is restricted, and nothing that anybody may read."""
    found = doctor(env=env, command=powerless)
    denied = {reason for state, reason in causes(found) if state == "no_permission"}
    try:
        with open("/proc/sys/kernel/dmesg_restrict", encoding="ascii") as file:
            restricted = file.read().strip() == "1"
    except OSError:
        restricted = False
    if restricted:
        assert any(reason.startswith("/dev/kmsg: ") for reason in denied)
    assert not any("/proc/stat" in reason or "/proc/meminfo" in reason for reason in denied)
    assert found["readings"] > 100


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that everybody may enter, which pytest's own are not."""
    made = Path(tempfile.mkdtemp(prefix="nodeproof-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def test_as_nobody(open_to_all: Path, absent_here: list[str]) -> None:
    """Nobody's own directories, and a file that only root may read."""
    python = f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    site = next(path for path in sys.path if path.endswith("site-packages"))
    if os.geteuid() != 0 or not os.access(python, os.X_OK):
        absent_here.append(f"doctor as nobody: needs root, and {python} for everybody to run")
        pytest.skip("needs root, and an interpreter that everybody may run")
    host = Path(write_host("vm-2cpu", str(open_to_all / "host")))
    (host / "proc/meminfo").chmod(0o400)
    env = environment({"NODEPROOF_CONFIG": "/dev/null", "HOME": "/nonexistent"}, without=("XDG_STATE_HOME", "NODEPROOF_DATA_DIR"))
    env["PYTHONPATH"] += f":{site}"
    found = doctor("--root", str(host), env=env, python=python, user=65534, group=65534, extra_groups=[])
    assert found["user"].endswith("(uid 65534)")
    assert ("no_permission", "/proc/meminfo: Permission denied") in causes(found)
    standing = {one["item"]: one for one in found["checks"]}
    assert standing["snapshot directory"]["standing"] == "bad"
    assert "Permission denied" in standing["snapshot directory"]["detail"]


def test_beside_a_running_daemon(daemon: Daemon) -> None:
    daemon.start()
    found = {one["item"]: one for one in doctor("-c", str(daemon.config), env=daemon.env)["checks"]}
    assert found["daemon"]["detail"].startswith(f"running: process {daemon.pid} wrote ")
    assert found["exporter"]["detail"] == f"127.0.0.1:{daemon.port} is the running daemon's"
    assert found["snapshot directory"]["detail"] == f"{daemon.snapshots} can be written"
    assert daemon.state().fresh
    assert daemon.answers()


def test_the_table_reads_well(host: Path, env: dict[str, str]) -> None:
    done = nodeproof("doctor", "--root", str(host), env=env)
    assert done.code in {0, 1}
    assert done.out.startswith("\nTried now, as ")
    assert "rules that apply here could be judged" in done.out
    assert "metrics do not apply to this machine" in done.out
    assert max(map(len, done.out.split("What cannot be read")[1].splitlines())) <= 130
