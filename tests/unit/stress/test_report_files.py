"""Report and history files, requests to cancel, baselines: what is kept, and what a changed byte does."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import RecordError, WriteError
from nodeproof.host.node_key import NodeKey
from nodeproof.model.job import BenchmarkResult, Report, Status
from nodeproof.stress.baselines import BaselineStore, Sample
from nodeproof.stress.report_files import ReportFiles, history_path
from nodeproof.stress.requests import CancelRequests


def report(number: int, output: str = "printed") -> Report:
    item = BenchmarkResult(
        name="stream", status=Status.HEALTHY, message="ok", duration_ms=1, values={"triad_mb_s": 1.5}, output=output
    )
    return Report(job_id=f"{number:016x}", platform="linux", status=Status.HEALTHY, benchmarks=[item], cancellable=True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/a/stress-latest.json", "/a/stress-history.json"),
        ("/a/mine.json", "/a/mine-history.json"),
        ("/a/report", "/a/report-history.json"),
        ("/a/-latest.json", "/a/stress-history.json"),
        ("/a/.json", "/a/stress-history.json"),
        ("/a/x-latest.txt", "/a/x-history.txt"),
    ],
)
def test_name_of_the_history(given: str, expected: str) -> None:
    assert history_path(given) == expected


def test_the_history_holds_the_100_newest_without_outputs(tmp_path: Path) -> None:
    files = ReportFiles(str(tmp_path / "stress-latest.json"))
    for number in range(103):
        assert files.archive(report(number)) == ""
    kept = files.history(1000)
    assert len(kept) == 100
    assert [entry.job_id for entry in kept[:2]] == [f"{102:016x}", f"{101:016x}"]
    assert kept[0].benchmarks[0].output == ""
    assert kept[0].benchmarks[0].values == {"triad_mb_s": 1.5}
    assert len(files.history(7)) == 7
    files.archive(report(50))
    assert [entry.job_id for entry in files.history(1000)].count(f"{50:016x}") == 1


def test_files_are_readable_json_for_the_group_and_say_nothing_of_who_may_cancel(tmp_path: Path) -> None:
    """F18: the reference's files can be read by their writer alone."""
    files = ReportFiles(str(tmp_path / "deep" / "stress-latest.json"))
    files.store(report(1))
    path = tmp_path / "deep" / "stress-latest.json"
    assert path.stat().st_mode & 0o777 == 0o640
    assert "cancellable" not in json.loads(path.read_text())
    assert path.read_text().startswith('{\n  "job_id"')
    assert files.latest() == msgspec.structs.replace(report(1), cancellable=False)


def test_one_damaged_entry_hides_no_other(tmp_path: Path) -> None:
    files = ReportFiles(str(tmp_path / "stress-latest.json"))
    files.archive(report(1))
    files.archive(report(2))
    path = tmp_path / "stress-history.json"
    entries = json.loads(path.read_text())
    entries[0]["status"] = "fine"
    path.write_text(json.dumps(entries))
    assert [entry.job_id for entry in files.history(10)] == [f"{1:016x}"]
    assert "entry 0" in files.damage()
    assert "set aside" in files.archive(report(3))
    assert [entry.job_id for entry in files.history(10)] == [f"{3:016x}", f"{1:016x}"]
    assert files.damage() == ""


def test_a_directory_in_the_place_of_a_file_is_told(tmp_path: Path) -> None:
    files = ReportFiles(str(tmp_path / "stress-latest.json"))
    (tmp_path / "stress-latest.json").mkdir()
    (tmp_path / "stress-history.json").mkdir()
    with pytest.raises(RecordError, match="Is a directory"):
        files.latest()
    assert "Is a directory" in files.damage()
    assert files.history(5) == []


def test_what_a_crash_left_half_written_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ".stress-latest.json.999999999-1.np-tmp"
    left.write_text("{")
    os.utime(left, (0, 0))
    ReportFiles(str(tmp_path / "stress-latest.json")).tidy()
    assert not left.exists()
    ReportFiles(str(tmp_path / "none" / "stress-latest.json")).tidy()


def test_a_request_is_seen_by_its_job_alone_and_is_forgotten_with_it(tmp_path: Path) -> None:
    requests = CancelRequests(str(tmp_path))
    assert not requests.may_ask()
    requests.prepare()
    assert requests.may_ask()
    requests.ask("aa11", "enough")
    requests.ask("../evil", "no")
    assert requests.asked("aa11") == "enough"
    assert requests.asked("bb22") is None
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["aa11"]
    requests.forget("bb22")
    assert requests.asked("aa11") is None


def test_a_request_that_cannot_be_left_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "stress-cancel").write_text("in the way")
    with pytest.raises(WriteError):
        CancelRequests(str(tmp_path)).ask("aa11", "x")


def sample(value: float) -> Sample:
    return Sample(value=value, at=1.0, run_id="run-1", environment="e")


def test_a_baseline_keeps_the_200_newest_samples_and_names_a_changed_byte(tmp_path: Path) -> None:
    store = BaselineStore(str(tmp_path / "baselines"), NodeKey(str(tmp_path)))
    assert store.read("stream", "ab" * 32) is None
    for number in range(203):
        store.add("stream", "ab" * 32, "triad_mb_s", sample(float(number)))
    found = store.read("stream", "ab" * 32)
    assert found is not None
    assert (len(found.samples), found.samples[0].value) == (200, 3.0)
    path = Path(store.path("stream", "ab" * 32))
    path.write_bytes(path.read_bytes().replace(b'"value":7.0', b'"value":9.0'))
    with pytest.raises(RecordError, match="was changed: its content is not what was signed"):
        store.read("stream", "ab" * 32)
    store.add("stream", "ab" * 32, "triad_mb_s", sample(1.0))
    again = store.read("stream", "ab" * 32)
    assert again is not None
    assert len(again.samples) == 1
    assert len([entry for entry in path.parent.iterdir() if ".damaged-" in entry.name]) == 1


def test_every_changed_byte_of_a_baseline_is_noticed(tmp_path: Path) -> None:
    store = BaselineStore(str(tmp_path / "baselines"), NodeKey(str(tmp_path)))
    store.add("stream", "ab" * 32, "triad_mb_s", sample(1.0))
    path = Path(store.path("stream", "ab" * 32))
    written = path.read_bytes().rstrip()
    for place in range(len(written)):
        path.write_bytes(written[:place] + bytes([written[place] ^ 1]) + written[place + 1 :])
        with pytest.raises(RecordError, match=str(path)):
            store.read("stream", "ab" * 32)


def test_a_baseline_with_a_checksum_of_its_own_making_or_of_another_node_is_refused(tmp_path: Path) -> None:
    """A checksum would have let both through."""
    ours = BaselineStore(str(tmp_path / "baselines"), NodeKey(str(tmp_path)))
    theirs = BaselineStore(str(tmp_path / "baselines"), NodeKey(str(tmp_path / "elsewhere")))
    theirs.add("stream", "ab" * 32, "triad_mb_s", sample(1.0))
    with pytest.raises(
        RecordError, match=f"was signed with key {NodeKey(str(tmp_path / 'elsewhere')).key_id}, that of this node"
    ):
        ours.read("stream", "ab" * 32)
    ours.add("stream", "ab" * 32, "triad_mb_s", sample(2.0))
    found = ours.read("stream", "ab" * 32)
    assert found is not None
    assert [one.value for one in found.samples] == [2.0]


def test_a_key_of_no_use_is_not_the_baselines_fault(tmp_path: Path) -> None:
    store = BaselineStore(str(tmp_path / "baselines"), NodeKey(str(tmp_path)))
    store.add("stream", "ab" * 32, "triad_mb_s", sample(1.0))
    key = tmp_path / "identity" / "node.key"
    key.chmod(0o640)
    later = BaselineStore(str(tmp_path / "baselines"), NodeKey(str(tmp_path)))
    with pytest.raises(RecordError, match="may be read or changed by others: chmod 600"):
        later.add("stream", "ab" * 32, "triad_mb_s", sample(2.0))
    key.chmod(0o600)
    assert store.read("stream", "ab" * 32) == later.read("stream", "ab" * 32)


def test_a_baseline_of_another_identity_or_without_sense_is_refused(tmp_path: Path) -> None:
    store = BaselineStore(str(tmp_path / "baselines"), NodeKey(str(tmp_path)))
    store.add("stream", "ab" * 32, "triad_mb_s", sample(1.0))
    with pytest.raises(RecordError, match="it is the baseline of"):
        store.read("stream", "ab" * 8 + "cd" * 24)
    Path(store.path("hpl", "ee" * 32)).write_text("{")
    with pytest.raises(RecordError, match="changed or damaged"):
        store.read("hpl", "ee" * 32)
    Path(store.path("hpcg", "ee" * 32)).mkdir()
    with pytest.raises(RecordError, match="Is a directory"):
        store.read("hpcg", "ee" * 32)
