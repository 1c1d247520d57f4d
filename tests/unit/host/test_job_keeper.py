"""The keeper started by hand, for what its owner cannot bring about."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec

from nodeproof.host.job_board import Board
from nodeproof.host.job_record import JobLimits, JobSpec
from nodeproof.host.process_tree import ProcessTree
from nodeproof.model.process import Limits


def run(folder: Path, **changes: object) -> tuple[int, dict[str, object]]:
    """Exit status of a keeper that ends by itself, and its board."""
    own = ProcessTree().stat(os.getpid())
    assert own is not None
    limits = JobLimits(**msgspec.structs.asdict(Limits()))
    spec = JobSpec(
        "tok", ("x",), "/bin/true", "/", {}, limits, str(folder / "o"), str(folder / "r"), own.identity, use_cgroup=False
    )
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    board = Board.make()
    spec_fd = os.memfd_create("spec")
    os.write(spec_fd, spec._replace(**changes).to_json())  # type: ignore[arg-type]  # fields of the spec
    fds = [theirs.fileno(), board.fd, spec_fd]
    with ours, theirs:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-m", "nodeproof.host.job_keeper", "tok", *map(str, fds)],
            pass_fds=fds,
            env=environment,
            check=False,
            capture_output=True,
        )
    os.close(spec_fd)
    state = board.read()
    board.close()
    assert done.stderr == b""
    return done.returncode, state


def test_program_that_ends_at_once(tmp_path: Path) -> None:
    code, state = run(tmp_path)
    assert code == 0
    assert state["state"] == "ended"
    assert json.loads((tmp_path / "r").read_bytes())["ended"] == state["ended"]


def test_owner_that_died_before_the_start(tmp_path: Path) -> None:
    """Nothing is started for nobody."""
    code, state = run(tmp_path, owner=(1, 0))
    assert (code, state["state"], state["stage"], state["pid"]) == (1, "failed", "not started, its owner is gone", 0)
    assert list(tmp_path.iterdir()) == []


def test_record_that_cannot_be_written(tmp_path: Path) -> None:
    code, state = run(tmp_path, record_path="/proc/r")
    assert (code, state["state"], state["stage"]) == (1, "failed", "/proc/r")
    assert list(tmp_path.iterdir()) == []


def test_record_that_cannot_be_completed(tmp_path: Path) -> None:
    """The program removes the directory of its record and puts a file there: the end is on the board all the same."""
    (tmp_path / "records").mkdir()
    script = f"rm -r {tmp_path}/records; : > {tmp_path}/records"
    code, state = run(tmp_path, argv=("sh", "-c", script), executable="/bin/sh", record_path=str(tmp_path / "records" / "r"))
    assert code == 0
    ended = state["ended"]
    assert isinstance(ended, dict)
    assert (ended["kind"], ended["exit_code"]) == ("exited", 0)
    assert ended["evidence"][-1].startswith("the record could not be written: ")
