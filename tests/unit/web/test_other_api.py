"""Faults as the daemon keeps them, the doctor's answer, and the document of the interface, over HTTP."""

import json
import threading
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import NodeproofError
from nodeproof.model.event import Severity
from nodeproof.model.fault import Change, Fault, FaultClass, FaultEvent, FaultState, KernelPlace, Origin
from nodeproof.stress.facade import StressFacade
from nodeproof.web.backstage import Backstage, Makers
from support.web import Written, get, next_of, reader, serving

AT = "2026-11-30T10:00:00+00:00"
LOST = Fault(
    fault_id="f1", rule="gpu.lost", type="gpu_lost", fault_class=FaultClass.LOST, component="gpu", device="GPU-1",
    severity=Severity.CRITICAL, message="it fell off the bus", action="reset it", since=AT, clears_when="it answers",
    origin=Origin.READING, boot_id="b", event_id="0" * 32,
)  # fmt: skip


def event(number: int) -> FaultEvent:
    return FaultEvent(
        event_id=f"{number:032x}", type="gpu_lost", component="gpu", npu_id="", severity=Severity.CRITICAL, detail={},
        timestamp=AT, recovered=False, sequence=number, change=Change.SET, fault_class=FaultClass.LOST, rule="gpu.lost",
        device="GPU-1", message="it fell off the bus", boot_id="b",
    )  # fmt: skip


def keep(folder: Path, *faults: Fault) -> None:
    folder.mkdir(exist_ok=True)
    state = FaultState(schema=1, sequence=3, timestamp=AT, faults=list(faults), kernel=KernelPlace())
    (folder / "active.json").write_bytes(msgspec.json.encode(state))


def test_faults_that_stand_and_stood(tmp_path: Path) -> None:
    written = Written(tmp_path / "snapshot")
    written.write()
    keep(tmp_path / "faults", LOST)
    log = b"".join(msgspec.json.encode(event(number)) + b"\n" for number in (1, 2, 3))
    (tmp_path / "faults" / "events-000000000001.jsonl").write_bytes(log)
    try:
        with serving(written.folder, makers=Makers(faults_dir=str(tmp_path / "faults"))) as server, reader(server) as stream:
            found = json.loads(get(server, "/api/faults/active").body)
            assert (found["available"], found["reason"], found["timestamp"]) == (True, "", AT)
            (fault,) = found["faults"]
            assert (fault["fault_id"], fault["type"], fault["class"], fault["recovered"]) == ("f1", "gpu_lost", "lost", False)
            history = json.loads(get(server, "/api/faults/history?limit=2").body)
            assert [one["sequence"] for one in history["events"]] == [3, 2]
            assert get(server, "/api/faults/history?limit=0").status == 400
            assert next_of(stream, "stress") is None
            assert [one["fault_id"] for one in next_of(stream, "faults")["faults"]] == ["f1"]
            keep(tmp_path / "faults")
            assert next_of(stream, "faults")["faults"] == []
            (tmp_path / "faults" / "active.json").write_bytes(b"{")
            broken = json.loads(get(server, "/api/faults/active").body)
            assert (broken["available"], broken["faults"]) == (False, [])
            assert "active.json cannot be read" in broken["reason"]
    finally:
        written.close()


@pytest.mark.parametrize(("folder", "reason"), [("", "without a directory of faults"), ("faults", "daemon absent")])
def test_where_nobody_looks_an_empty_list_proves_nothing(tmp_path: Path, folder: str, reason: str) -> None:
    with serving(tmp_path, makers=Makers(faults_dir=str(tmp_path / folder) if folder else "")) as server:
        for path in ("/api/faults/active", "/api/faults/history"):
            found = json.loads(get(server, path).body)
            assert found["available"] is False
            assert reason in found["reason"]


def test_the_doctor_is_called_once_for_many(tmp_path: Path) -> None:
    calls = []

    def doctor() -> bytes:
        calls.append(threading.get_ident())
        return b'{\n "user": "root"\n}'

    with serving(tmp_path, makers=Makers(doctor=doctor)) as server:
        assert [get(server, "/api/doctor").body for _ in range(3)] == [b'{"user":"root"}'] * 3
    assert len(calls) == 1


@pytest.mark.parametrize("answer", [b"no JSON", NodeproofError("it hangs")])
def test_a_doctor_without_an_answer(tmp_path: Path, answer: bytes | NodeproofError) -> None:
    def doctor() -> bytes:
        if isinstance(answer, NodeproofError):
            raise answer
        return answer

    with serving(tmp_path, makers=Makers(doctor=doctor)) as server:
        assert get(server, "/api/doctor").status == 503


def test_the_document_of_the_interface(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        first = get(server, "/api/openapi.json")
        assert json.loads(first.body)["openapi"] == "3.1.0"
        assert get(server, "/api/openapi.json", If_None_Match=first.headers["etag"]).status == 304
        assert get(server, "/api/audit").status == 503


def test_an_error_of_ours_is_told_as_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def manager() -> None:
        raise RuntimeError("a bug")

    with serving(tmp_path, makers=Makers(manager)) as server:  # type: ignore[arg-type] # it makes none
        answer = get(server, "/api/stress/config")
        assert (answer.status, json.loads(answer.body)["detail"]) == (500, "an error of nodeproof itself: RuntimeError")
        assert get(server, "/").status == 200
    assert "GET /api/stress/config failed" in caplog.text


def test_the_audit_log_is_the_pages_own_where_jobs_are_a_runners(tmp_path: Path) -> None:
    """A runner keeps its jobs where no other user writes, so the page's log cannot lie beside them."""

    def manager() -> StressFacade:
        raise AssertionError("the runner is not asked where the page may write")

    backstage = Backstage(Makers(manager=manager, audit_dir=str(tmp_path)))
    assert backstage.audit().path == f"{tmp_path}/web-audit.jsonl"
