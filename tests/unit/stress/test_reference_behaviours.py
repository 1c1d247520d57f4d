"""Behaviours of the reference's manager and adapters that no other test of this folder has (``stress.md`` 9.1 to 9.3)."""

import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeproof.model.job import CheckStatus, Status
from nodeproof.stress.facade import RunOptions
from nodeproof.stress.problems import Busy, SelectionError
from support.stress import make_manager, make_settings, run_job, write_dispatcher

FIELDS = ("event", "job_id", "initiator", "benchmark", "status", "timeout_seconds")


class Records(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record)

    def fields(self) -> list[dict[str, object]]:
        return [{name: value for name in FIELDS if (value := getattr(record, name, None)) is not None} for record in self.kept]


@pytest.fixture
def records() -> Iterator[Records]:
    handler = Records()
    logger = logging.getLogger("nodeproof.stress")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_43_each_step_of_a_job_is_logged_with_its_fields(tmp_path: Path, records: Records) -> None:
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh")))
    report = manager.start_with_options(["stream"], RunOptions(timeout_s=5.0))
    assert manager.wait(report.job_id, 15.0) is not None
    whose = {"job_id": report.job_id, "initiator": "cli"}
    assert records.fields() == [
        {"event": "job_started", **whose, "timeout_seconds": 5},
        {"event": "benchmark_started", **whose, "benchmark": "stream", "timeout_seconds": 5},
        {"event": "benchmark_finished", **whose, "benchmark": "stream", "status": "healthy"},
        {"event": "job_finished", **whose, "status": "healthy"},
    ]
    assert isinstance(records.kept[2].__dict__["duration_ms"], int)
    assert records.kept[3].getMessage() == f"stress job {report.job_id}: ended: healthy"


def test_43_refusals_cancels_and_files_that_cannot_be_written_are_logged_too(tmp_path: Path, records: Records) -> None:
    folder = tmp_path / "reports"
    script = write_dispatcher(tmp_path / "check.sh", run=f"mv {folder} {folder}.away; touch {folder} {tmp_path}/on; sleep 60")
    manager = make_manager(make_settings(tmp_path, script))
    report = manager.start()
    while not (tmp_path / "on").exists():
        time.sleep(0.01)
    with pytest.raises(Busy):
        manager.start()
    manager.cancel(report.job_id)
    assert manager.wait(report.job_id, 15.0) is not None
    events = [record.__dict__["event"] for record in records.kept]
    assert events[:3] == ["job_started", "benchmark_started", "job_rejected_busy"]
    assert {"cancellation_requested", "report_persistence_failed", "history_failed", "job_finished"} <= set(events)
    levels = {record.__dict__["event"]: record.levelname for record in records.kept}
    assert (levels["report_persistence_failed"], levels["job_rejected_busy"], levels["job_finished"]) == (
        "ERROR",
        "INFO",
        "INFO",
    )


def test_49_elsewhere_than_on_linux_nothing_is_described_or_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = write_dispatcher(tmp_path / "check.sh", describe=f"touch {tmp_path}/described; exit 1")
    manager = make_manager(make_settings(tmp_path, script))
    monkeypatch.setattr("sys.platform", "darwin")
    answer = manager.availability("stream")
    assert (answer.available, answer.status, answer.message) == (
        False,
        CheckStatus.UNSUPPORTED,
        "stress jobs run on Linux only",
    )
    with pytest.raises(SelectionError, match="Linux only"):
        manager.start()
    assert not (tmp_path / "described").exists()
    assert manager.latest() is None


def test_50_reads_are_answered_while_a_start_still_asks_its_dispatcher(tmp_path: Path) -> None:
    """The reference's first version answers nobody while it describes."""
    path = tmp_path / "check.sh"
    settings = make_settings(tmp_path, write_dispatcher(path))
    manager = make_manager(settings)
    first = run_job(manager)
    wait = f"touch {tmp_path}/asked; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
    valid = path.read_text().split('if [ "$1" = describe ]; then\n')[1].split("\nexit")[0]
    write_dispatcher(path, describe=f"{wait}\n{valid}")
    started: list[str] = []
    starter = threading.Thread(target=lambda: started.append(manager.start().job_id))
    starter.start()
    while not (tmp_path / "asked").exists():
        time.sleep(0.01)
    newest = manager.latest()
    assert newest is not None
    assert newest.job_id == first.job_id
    assert [one.job_id for one in manager.history()] == [first.job_id]
    assert manager.live() is None
    assert not manager.can_cancel(first.job_id)
    assert started == [], "it still waits for the dispatcher"
    (tmp_path / "go").touch()
    starter.join(20)
    ended = manager.wait(started[0], 20.0)
    assert ended is not None
    assert ended.status is Status.HEALTHY


def test_14_a_description_starts_neither_the_benchmark_nor_anything_else(tmp_path: Path) -> None:
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh", run=f"touch {tmp_path}/ran")))
    manager.describe("stream")
    manager.availability("stream")
    assert not (tmp_path / "ran").exists()
    assert not os.path.exists(manager.config.report_path), "and no report is begun"
