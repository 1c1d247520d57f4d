"""The runner over its socket: the reference's routes to the letter, our own, and the facade that makes it look like a manager."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import RecordError, RunError
from nodeproof.host.peer import Peer
from nodeproof.host.unix_http import UnixHttpServer
from nodeproof.host.unix_listener import UnixListener
from nodeproof.model.job import Initiator, Report, Status
from nodeproof.stress.adapters.base import DescribeError
from nodeproof.stress.adapters.describe_v1 import read_description
from nodeproof.stress.facade import RunOptions
from nodeproof.stress.problems import Busy, Disabled, JobNotFound, SelectionError
from nodeproof.stress.runner import service
from nodeproof.stress.runner.access import Access, Role
from nodeproof.stress.runner.client import RunnerClient, RunnerGone
from nodeproof.stress.runner.remote import RemoteManager, runner_socket
from nodeproof.stress.runner.routes import Routes
from nodeproof.stress.runner.service import RunnerService
from nodeproof.stress.runner.wire import Cancel, Start, V1Run
from support.stress import STREAM_GOOD, make_manager, make_settings, write_dispatcher

pytestmark = pytest.mark.timeout(40)
SLOW = "echo begun; sleep 60"


class FixedAccess(Access):
    """Everybody has one role."""

    def __init__(self, role: Role) -> None:
        super().__init__()
        self.fixed = role

    def role(self, peer: Peer) -> Role:
        del peer
        return self.fixed


class Runner:
    """One in this process, on a dispatcher that a test writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / "check.sh"
        write_dispatcher(self.script)
        self.manager = make_manager(make_settings(folder, str(self.script), names=("stream", "hpl", "hpcg", "npu_burn")))
        self.access = FixedAccess(Role.OPERATOR)
        self.path = str(folder / "r.sock")
        self._listener = UnixListener(self.path)
        self.service = RunnerService(self.manager)
        self._server = UnixHttpServer(Routes(self.service, self.access))
        self._server.start(self._listener.open())
        self.client = RunnerClient(self.path)

    def ask(self, method: str, target: str, body: object = None, *, raw: bytes | None = None) -> tuple[int, bytes]:
        data = raw if raw is not None else (None if body is None else json.dumps(body).encode())
        return self.client.ask(method, target, data)

    def close(self) -> None:
        self.service.shutdown()
        self._server.stop()
        self._listener.close()


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    made = Runner(tmp_path)
    yield made
    made.close()


def until(condition: object, seconds: float = 10.0) -> None:
    assert callable(condition)
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.02)


class TestReferenceRoutes:
    def test_healthz(self, runner: Runner) -> None:
        status, body = runner.ask("GET", "/v1/healthz")
        assert (status, json.loads(body)) == (200, {"status": "ok", "benchmarks": ["stream", "hpl", "hpcg"]})

    def test_describe_answers_what_a_dispatcher_may_answer(self, runner: Runner) -> None:
        status, body = runner.ask("GET", "/v1/benchmarks/stream")
        told = json.loads(body)
        assert status == 200
        assert told["benchmark"] == "stream"
        for filled in ("timeout_seconds", "configuration_sha256", "script_sha256", "executor"):
            told.pop(filled, None)
        assert read_description(json.dumps(told).encode(), "stream").preflight.message == "ok"

    @pytest.mark.parametrize("name", ["npu_burn", "cpu_sdc", "nothing"])
    def test_other_names_are_unknown(self, runner: Runner, name: str) -> None:
        assert runner.ask("GET", f"/v1/benchmarks/{name}")[0] == 404
        assert runner.ask("POST", "/v1/runs", {"benchmark": name})[0] == 400

    def test_a_description_that_fails_is_422_with_its_text(self, runner: Runner) -> None:
        write_dispatcher(runner.script, describe="echo 'no STREAM here' >&2; exit 3")
        status, body = runner.ask("GET", "/v1/benchmarks/stream")
        assert status == 422
        assert b"no STREAM here" in body

    def test_a_run_answers_its_whole_output_as_text(self, runner: Runner) -> None:
        write_dispatcher(runner.script, run=f"seq 20000; cat <<'END'\n{STREAM_GOOD}\nEND")
        status, body = runner.ask("POST", "/v1/runs", {"benchmark": "stream"})
        assert status == 200
        assert body == b"".join(b"%d\n" % number for number in range(1, 20001)) + STREAM_GOOD.encode() + b"\n"
        report = runner.manager.latest()
        assert report is not None
        assert (report.initiator, report.status) == ("runner", Status.HEALTHY)

    def test_a_run_that_fails_is_422_with_output_and_reason(self, runner: Runner) -> None:
        write_dispatcher(runner.script, run="echo so far; exit 7")
        status, body = runner.ask("POST", "/v1/runs", {"benchmark": "stream"})
        assert status == 422
        assert body.startswith(b"so far\n")
        assert b"7" in body.splitlines()[-1]

    def test_an_item_that_cannot_be_run_is_422(self, runner: Runner) -> None:
        write_dispatcher(runner.script, answers={"preflight": {"status": "fail", "message": "P x Q is not the ranks"}})
        status, body = runner.ask("POST", "/v1/runs", {"benchmark": "hpl"})
        assert status == 422
        assert b"P x Q is not the ranks" in body

    def test_too_much_output_is_502(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(service, "MAX_OUTPUT_BYTES", 100)
        assert runner.ask("POST", "/v1/runs", {"benchmark": "stream"})[0] == 502

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"{}",
            b"[]",
            b'{"benchmark": "stream", "timeout": 1}',
            b'{"benchmark": "stream"} {}',
            b'{"benchmark": ["stream"]}',
        ],
    )
    def test_bodies_that_are_refused(self, runner: Runner, raw: bytes) -> None:
        assert runner.ask("POST", "/v1/runs", raw=raw)[0] == 400

    def test_a_long_body_is_refused(self, runner: Runner) -> None:
        assert runner.ask("POST", "/v1/runs", raw=b'{"benchmark": "stream"}' + b" " * 1024)[0] == 413

    def test_a_second_run_is_409_and_a_caller_that_goes_away_ends_the_first(self, runner: Runner) -> None:
        write_dispatcher(runner.script, run=f"echo $$ > {runner.folder}/pid; {SLOW}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.connect(runner.path)
            caller.sendall(b'POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 23\r\n\r\n{"benchmark": "stream"}')
            until(lambda: (runner.folder / "pid").exists() and (runner.folder / "pid").read_text())
            assert runner.ask("POST", "/v1/runs", {"benchmark": "hpl"})[0] == 409
        pid = int((runner.folder / "pid").read_text())
        until(lambda: not os.path.exists(f"/proc/{pid}"))
        until(lambda: (report := runner.manager.latest()) is not None and report.status is Status.CANCELLED)

    def test_wrong_methods_places_and_kinds(self, runner: Runner) -> None:
        assert runner.ask("POST", "/v1/healthz", {})[0] == 405
        assert runner.ask("GET", "/v1/runs")[0] == 405
        assert runner.ask("GET", "/v1/../etc/passwd")[0] == 404
        assert runner.ask("GET", "/")[0] == 404
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.connect(runner.path)
            caller.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}")
            assert caller.recv(100).startswith(b"HTTP/1.1 415 ")


class TestRoles:
    def test_a_viewer_looks_and_starts_nothing(self, runner: Runner) -> None:
        runner.access.fixed = Role.VIEWER
        assert runner.ask("GET", "/v2/jobs")[0] == 200
        status, body = runner.ask("POST", "/v2/jobs", {})
        assert status == 403
        assert json.loads(body)["code"] == "forbidden"
        assert runner.ask("POST", "/v1/runs", {"benchmark": "stream"})[0] == 403
        assert runner.manager.latest() is None

    def test_others_do_not_even_look(self, runner: Runner) -> None:
        runner.access.fixed = Role.NONE
        assert runner.ask("GET", "/v1/healthz")[0] == 403
        assert runner.ask("GET", "/v2/config")[0] == 403


class TestFacade:
    def test_a_job_as_if_the_manager_were_here(self, runner: Runner) -> None:
        remote = RemoteManager(runner.path)
        assert remote.config == runner.manager.config
        assert remote.availability("stream") == runner.manager.availability("stream")
        assert remote.describe("stream") == runner.manager.describe("stream")
        assert remote.latest() is None
        report = remote.start_with_options(["stream"], RunOptions())
        ended = remote.wait(report.job_id, 20)
        assert ended is not None
        assert ended.status is Status.HEALTHY
        assert ended == remote.latest() == runner.manager.latest()
        assert remote.job(report.job_id) == runner.manager.job(report.job_id)
        assert remote.history() == runner.manager.history()
        stored = remote.inspect(ended.benchmarks[0].run_id)
        assert (stored.record.run_id, stored.problems, stored.files()) == (ended.benchmarks[0].run_id, (), [])
        assert remote.live() is None
        assert remote.history_damage() == ""
        assert remote.shutdown(1.0)

    def test_output_and_live_state_come_while_it_runs(self, runner: Runner) -> None:
        write_dispatcher(runner.script, run="echo first; sleep 1.5; echo second; sleep 60")
        remote = RemoteManager(runner.path)
        report = remote.start_with_options(["stream"], RunOptions())
        status, stream = runner.client.stream("GET", f"/v2/jobs/{report.job_id}/events")
        assert status == 200
        said, seen = "", []
        for line in stream.lines():
            event = json.loads(line)
            said += event.get("output", "")
            seen.append(event)
            if "second" in said:
                break
        stream.close()
        assert said == "first\nsecond\n"
        assert seen[0]["report"]["job_id"] == report.job_id
        assert any(event.get("live", {}).get("item") == "stream" for event in seen)
        until(lambda: remote.live() is not None)
        assert remote.can_cancel(report.job_id)
        remote.cancel(report.job_id, "enough")
        ended = remote.wait(report.job_id, 20)
        assert ended is not None
        assert ended.status is Status.CANCELLED

    def test_a_job_of_a_command_line_ends_with_it(self, runner: Runner) -> None:
        write_dispatcher(runner.script, run=SLOW)
        remote = RemoteManager(runner.path)
        report = remote.start_with_options(["stream"], RunOptions())
        attached = remote._attached
        assert attached is not None
        attached._stream.hang_up()
        until(lambda: runner.manager.job(report.job_id).status is Status.CANCELLED)
        with pytest.raises(RunnerGone):
            remote.wait(report.job_id, 5)

    def test_a_caller_that_dies_while_its_job_is_being_started_takes_it_along(
        self, runner: Runner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_dispatcher(runner.script, run=SLOW)
        start, begun = runner.manager.start_with_options, threading.Event()

        def slow(names: Sequence[str], options: RunOptions) -> Report:
            begun.set()
            time.sleep(0.5)
            return start(names, options)

        monkeypatch.setattr(runner.manager, "start_with_options", slow)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.connect(runner.path)
            caller.sendall(b'POST /v2/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\n\r\n{"attached": true}')
            assert begun.wait(5)
        until(lambda: (report := runner.manager.latest()) is not None and report.status is Status.CANCELLED)

    def test_one_that_ends_begins_no_job_that_is_still_being_planned(self, runner: Runner) -> None:
        assert runner.service.shutdown()
        with pytest.raises(Disabled, match="the runner is ending"):
            RemoteManager(runner.path).start_with_options(["stream"], RunOptions())

    def test_a_job_of_a_page_goes_on_without_its_reader(self, runner: Runner) -> None:
        write_dispatcher(runner.script, run=f"sleep 1; cat <<'END'\n{STREAM_GOOD}\nEND")
        remote = RemoteManager(runner.path)
        report = remote.start_with_options(["stream"], RunOptions(initiator=Initiator.WEB))
        assert remote.wait(report.job_id, 0.1) is None
        ended = remote.wait(report.job_id, 20)
        assert ended is not None
        assert (ended.status, ended.initiator) == (Status.HEALTHY, "web")

    def test_a_kill_has_no_grace(self, runner: Runner) -> None:
        write_dispatcher(runner.script, run="trap '' TERM INT; echo begun; while :; do sleep 0.1; done")
        remote = RemoteManager(runner.path)
        report = remote.start_with_options(["stream"], RunOptions())
        until(lambda: (path := runner.manager.live_output_path()) is not None and Path(path).read_bytes() == b"begun\n")
        remote.kill()
        ended = remote.wait(report.job_id, 10)
        assert ended is not None
        assert ended.status is Status.CANCELLED

    def test_shutdown_ends_what_was_started_here(self, runner: Runner) -> None:
        write_dispatcher(runner.script, run=SLOW)
        remote = RemoteManager(runner.path)
        remote.start_with_options(["stream"], RunOptions())
        assert remote.shutdown(10.0)

    def test_errors_are_the_managers(self, runner: Runner) -> None:
        remote = RemoteManager(runner.path)
        with pytest.raises(SelectionError, match="no stress item"):
            remote.start_with_options(["nothing"], RunOptions())
        with pytest.raises(SelectionError, match="can only be shortened"):
            remote.start_with_options(["stream"], RunOptions(timeout_s=1e6, initiator=Initiator.WEB))
        with pytest.raises(SelectionError):
            remote.availability("../v1")
        with pytest.raises(DescribeError):
            remote.describe("memory_pattern")
        for unknown in ("00", "../../x", "a" * 65):
            with pytest.raises(JobNotFound):
                remote.job(unknown)
            with pytest.raises(JobNotFound):
                remote.cancel(unknown)
        with pytest.raises(RecordError):
            remote.inspect("run-0")
        assert not remote.can_cancel("00")

    def test_busy_brings_the_job_that_is_in_the_way(self, runner: Runner) -> None:
        write_dispatcher(runner.script, run=SLOW)
        first, second = RemoteManager(runner.path), RemoteManager(runner.path)
        report = first.start_with_options(["stream"], RunOptions())
        with pytest.raises(Busy) as caught:
            second.start_with_options(["stream"], RunOptions())
        assert caught.value.report is not None
        assert caught.value.report.job_id == report.job_id
        first.cancel(report.job_id)
        first.wait(report.job_id, 10)

    def test_two_starts_at_the_same_moment(self, runner: Runner) -> None:
        assert runner.service._slot.acquire(blocking=False)
        try:
            with pytest.raises(Busy, match="just being started"):
                RemoteManager(runner.path).start_with_options(["stream"], RunOptions())
        finally:
            runner.service._slot.release()

    def test_what_is_switched_off(self, runner: Runner) -> None:
        runner.manager._settings = msgspec.structs.replace(runner.manager._settings, enabled=False)
        with pytest.raises(Disabled):
            RemoteManager(runner.path).start_with_options(["stream"], RunOptions())

    @pytest.mark.parametrize(
        ("method", "target", "body", "status"),
        [
            ("POST", "/v2/jobs", {"initiator": "somebody"}, 400),
            ("POST", "/v2/jobs", {"plan": "endless"}, 400),
            ("POST", "/v2/jobs", {"command": "id"}, 400),
            ("GET", "/v2/jobs?limit=0", None, 400),
            ("GET", "/v2/jobs?limit=101", None, 400),
            ("GET", "/v2/jobs?limit=x", None, 400),
            ("GET", "/v2/benchmarks/stream?timeout_seconds=nan", None, 400),
            ("GET", "/v2/benchmarks/stream?timeout_seconds=x", None, 400),
            ("GET", "/v2/benchmarks/stream?plan=x", None, 400),
            ("GET", "/v2/jobs/00/events", None, 404),
        ],
    )
    def test_requests_that_are_refused(self, runner: Runner, method: str, target: str, body: object, status: int) -> None:
        assert runner.ask(method, target, body)[0] == status


class TestGone:
    def test_no_runner(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = str(tmp_path / "none.sock")
        with pytest.raises(RunnerGone, match=r"none\.sock: No such file or directory; is nodeproof-runner running"):
            RemoteManager(path).latest()
        monkeypatch.setattr("nodeproof.stress.runner.remote.DEFAULT_SOCKET", path)
        assert runner_socket("") is None
        assert runner_socket("none") is None

    def test_one_that_was_named_must_be_there(self, tmp_path: Path) -> None:
        path = tmp_path / "dead.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
            left.bind(str(path))
        with pytest.raises(RunError):
            runner_socket(str(path))

    def test_a_dead_socket_in_the_default_place_is_no_runner(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "dead.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
            left.bind(str(path))
        monkeypatch.setattr("nodeproof.stress.runner.remote.DEFAULT_SOCKET", str(path))
        assert runner_socket("") is None

    def test_one_that_this_user_may_not_ask_is_no_reason_to_run_jobs_beside_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent_here: list[str]
    ) -> None:
        if os.geteuid() != 0:
            absent_here.append("a runner's socket out of sight: it takes root to become another user for a moment")
            return
        hidden = tmp_path / "hidden"
        hidden.mkdir(mode=0o700)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as live:
            live.bind(str(hidden / "r.sock"))
            live.listen()
            monkeypatch.setattr("nodeproof.stress.runner.remote.DEFAULT_SOCKET", str(hidden / "r.sock"))
            os.seteuid(65534)
            try:
                with pytest.raises(RunError, match="join the group of its socket"):
                    runner_socket("")
            finally:
                os.seteuid(0)

    def test_one_that_answers_is_found(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        assert runner_socket(runner.path) == runner.path
        monkeypatch.setattr("nodeproof.stress.runner.remote.DEFAULT_SOCKET", runner.path)
        assert runner_socket("") == runner.path

    @pytest.mark.parametrize(
        ("said", "message"),
        [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{]}", "cannot be understood"),
            (b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\nwhat", "answered 500: what"),
            (b"rubbish\r\n\r\n", "the runner at"),
            (b"", "the runner at"),
        ],
    )
    def test_answers_that_are_none(self, tmp_path: Path, said: bytes, message: str) -> None:
        path = str(tmp_path / "odd.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as odd:
            odd.bind(path)
            odd.listen()

            def answer() -> None:
                connection, _ = odd.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(said)

            threading.Thread(target=answer, daemon=True).start()
            with pytest.raises(RunnerGone, match=message):
                RemoteManager(path).latest()

    def test_a_stream_that_breaks_off_is_no_end(self, tmp_path: Path) -> None:
        path = str(tmp_path / "odd.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as odd:
            odd.bind(path)
            odd.listen()

            def answer() -> None:
                connection, _ = odd.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nrubbi")

            threading.Thread(target=answer, daemon=True).start()
            with pytest.raises(RunnerGone):
                RemoteManager(path).start_with_options([], RunOptions())


def test_the_table_of_routes_takes_no_path_command_or_environment() -> None:
    fields = {name for kind in (Start, Cancel, V1Run) for name in kind.__struct_fields__}
    assert fields == {"benchmark", "benchmarks", "timeout_seconds", "plan", "seconds", "initiator", "attached", "reason", "kill"}
