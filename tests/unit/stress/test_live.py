"""What is told of a running job, and who may believe it."""

from pathlib import Path

import msgspec
import pytest

from nodeproof.clock import Instant
from nodeproof.model.hardware import LiveSample
from nodeproof.model.live_job import LiveJob
from nodeproof.stress.live import LiveTeller, live_path, read_live
from nodeproof.stress.workloads.heartbeat import Heartbeat
from support.stress import make_manager, make_settings, write_dispatcher


def instant(mono_s: float) -> Instant:
    return Instant(wall_s=1000.0 + mono_s, mono_s=mono_s)


def beat(done: float, phase: str = "factor", total: float | None = 60.0) -> Heartbeat:
    return Heartbeat(
        workload="hpl", phase=phase, done=done, total=total, unit="panels", rate=9e9, rate_unit="FLOP/s", elapsed_s=1
    )


def teller(path: str = "") -> LiveTeller:
    first = LiveJob(job_id="ab", at=1000.0, item="hpl", number=1, items=1, elapsed_s=0.0, timeout_s=60.0)
    return LiveTeller(first, instant(0.0), path)


def test_time_to_go_is_that_of_the_phase_at_its_own_pace() -> None:
    made = teller()
    made.tell(instant(1.0), beat(1, "compile", total=1.0), None)
    assert made.now.phase is not None
    assert made.now.phase.eta_s is None, "no pace yet"
    made.tell(instant(10.0), beat(0), None)
    made.tell(instant(14.0), beat(20), None)
    assert made.now.phase.eta_s == pytest.approx(8.0)
    made.tell(instant(15.0), beat(25, total=None), None)
    assert made.now.phase.eta_s is None, "only time ends it"
    assert (made.now.elapsed_s, made.now.at) == (15.0, 1015.0)


def test_the_strip_has_a_point_a_second_and_two_minutes_of_them() -> None:
    made = teller()
    for quarter in range(4 * 200):
        box = LiveSample(at=1.0, mono_s=1.0, busy_share=0.5, cpu_temp_c=40.0 + quarter / 4)
        made.tell(instant(quarter / 4), beat(quarter), box)
    strip = made.now.strip
    assert len(strip) == 120
    assert [point.at for point in strip[-2:]] == [1198.0, 1199.0]
    assert (strip[-1].busy_share, strip[-1].cpu_temp_c, strip[-1].rate) == (0.5, 239.0, 9e9)
    assert strip[-1].steal_share is None, "what could not be read is not 0"


def test_the_file_is_there_while_it_runs_and_only_for_its_job(tmp_path: Path) -> None:
    path = live_path(str(tmp_path / "stress-latest.json"))
    assert path == str(tmp_path / "stress-live.json")
    made = teller(path)
    made.tell(instant(0.0), beat(3), None)
    told = read_live(path, "ab")
    assert told == made.now
    assert msgspec.json.decode(Path(path).read_bytes())["schema"] == 1
    assert read_live(path, "cd") is None
    Path(path).write_bytes(b'{"job_id"')
    assert read_live(path, "ab") is None
    made.forget()
    assert list(tmp_path.iterdir()) == []
    assert read_live(path, "ab") is None


def test_a_directory_that_cannot_be_written_costs_nobody_the_job(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = teller(str(tmp_path / "file" / "stress-live.json"))
    made.tell(instant(0.0), beat(3), None)
    assert made.now.phase is not None


def test_another_process_sees_how_a_job_gets_on_until_it_ends(tmp_path: Path) -> None:
    script = write_dispatcher(tmp_path / "check.sh", run=f"touch {tmp_path}/begun; sleep 60")
    settings = make_settings(tmp_path, script)
    owner, observer = make_manager(settings), make_manager(settings)
    assert observer.live() is None
    report = owner.start()
    seen = None
    while seen is None or seen.elapsed_s == 0:
        seen = observer.live()
    assert (seen.job_id, seen.item, seen.number, seen.items, seen.timeout_s) == (report.job_id, "stream", 1, 1, 20.0)
    assert seen.strip
    owner.kill()
    assert owner.wait(report.job_id, 10.0) is not None
    assert observer.live() is None
    assert not Path(live_path(settings.report_path)).exists()
