"""Tables, words and files of ``nodeproof stress`` (stress.md 5.4, 9.5)."""

import json
from pathlib import Path

import msgspec
import pytest

from nodeproof.cli.main import main
from nodeproof.cli.stress_progress import QuietProgress, box_text, live_text, make_progress, progress_text
from nodeproof.cli.stress_report import duration_text, label, print_report, value_text
from nodeproof.model.hardware import LiveSample
from nodeproof.model.job import Report, Status
from nodeproof.model.live_job import LiveJob, LivePhase
from support.stress import make_manager, make_settings, run_job, write_dispatcher


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status.HEALTHY, "OK"),
        (Status.TIME_LIMIT_REACHED, "OK (time limit)"),
        (Status.UNHEALTHY, "FAILED"),
        (Status.UNAVAILABLE, "UNAVAILABLE"),
        (Status.CANCELLED, "CANCELLED"),
    ],
)
def test_labels(status: Status, text: str) -> None:
    assert label(status) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0s"), (850, "850ms"), (4800, "4.8s"), (62_500, "1m2.5s"), (3_603_000, "1h0m3s"), (60_000, "1m0s")],
)
def test_durations_are_written_as_go_writes_them(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text


@pytest.mark.parametrize(("value", "text"), [(2, "2"), (50000.0, "50000"), (101.1, "101.10"), (0.006, "0.01")])
def test_values_have_two_decimals_or_none(value: float, text: str) -> None:
    assert value_text(value) == text


def phase(**changes: object) -> LivePhase:
    plain = {"name": "factor", "done": 7.0, "total": 62.0, "unit": "panels"}
    return msgspec.convert(plain | changes, LivePhase)


def live(word: LivePhase | None, box: LiveSample | None = None) -> LiveJob:
    return LiveJob(job_id="aa", at=1.0, item="hpl", number=1, items=2, elapsed_s=4.0, timeout_s=60.0, phase=word, box=box)


def test_who_looks_once_gets_a_line() -> None:
    assert live_text(live(None)) == "hpl (1 of 2), 4 s of at most 60 s: starting"
    hot = LiveSample(at=1.0, mono_s=1.0, cpu_temp_c=61.0)
    word = phase(rate=88.31, rate_unit="GFLOP/s", eta_s=31.4)
    assert live_text(live(word, hot)) == (
        "hpl (1 of 2), 4 s of at most 60 s: factor 88.31 GFLOP/s, 7 of 62 panels, about 31 s to go; 61 °C"
    )


def test_progress_tells_phase_and_rate() -> None:
    assert progress_text(live(None)) == "starting"
    assert progress_text(live(phase())) == "factor"
    assert progress_text(live(phase(rate=88.31, rate_unit="GFLOP/s"))) == "factor 88.31 GFLOP/s"
    assert progress_text(live(phase(rate=1.4381e10, rate_unit="FLOP/s"))) == "factor 14.38 GFLOP/s"
    assert progress_text(live(phase(rate=12.0, rate_unit="B/s"))) == "factor 12 B/s"


def test_the_box_tells_what_can_be_read_and_nothing_else() -> None:
    assert box_text(None) == ""
    assert box_text(LiveSample(at=1.0, mono_s=1.0)) == ""
    hot = LiveSample(at=1.0, mono_s=1.0, cpu_temp_c=88.4, busy_mhz=2799.6, throttle_share=0.2, foreign_share=0.5, steal_share=0.1)
    assert box_text(hot) == "88 °C, 2800 MHz, throttled 20%, others use 50%, stolen 10%"
    assert box_text(LiveSample(at=1.0, mono_s=1.0, throttle_events=3)) == "3 slow-downs"


class _Terminal:
    """Says that it is one, and keeps what is written."""

    def __init__(self) -> None:
        self.text = ""
        self.encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        """Nothing to do."""


def test_a_bar_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(make_progress(), QuietProgress)
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    with make_progress() as progress:
        progress.show(None)
        progress.show(live(None))
        progress.show(live(phase(rate=88.31, rate_unit="GFLOP/s"), LiveSample(at=1.0, mono_s=1.0, cpu_temp_c=70.0)))
    assert "hpl (1 of 2)" in terminal.text
    assert "factor 88.31 GFLOP/s" in terminal.text
    assert "70 °C" in terminal.text


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return run_job(make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh"))))


def test_the_table_has_the_references_columns_with_a_line_a_value(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    odd = msgspec.structs.replace(
        report,
        report_error="the disk is full",
        benchmarks=[
            msgspec.structs.replace(report.benchmarks[0], message="m" * 300),
            msgspec.structs.replace(report.benchmarks[0], name="hpl", values={}, outcome=None, finished_at="", message="x"),
        ],
    )
    print_report(odd)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == ""
    assert lines[1].startswith(f"Stress job {report.job_id}: OK")
    assert lines[2].split() == ["Benchmark", "Status", "Duration", "Metric", "Value", "Message"]
    assert [line.split()[:2] for line in lines[4:7]] == [
        ["copy_mb_s", "9000.50"],
        ["scale_mb_s", "8000.10"],
        ["triad_mb_s", "10000"],
    ]
    assert lines[7].split() == ["hpl", "OK", "-", "-", "-", "x"]
    assert "  process tree: ended, nothing is left" in lines
    assert lines[-1] == "Report: the disk is full"


def environment(folder: Path) -> dict[str, str]:
    return {"NODEPROOF_DATA_DIR": str(folder / "data"), "NODEPROOF_CONFIG": str(config(folder)), "PATH": "/usr/bin:/bin"}


def config(folder: Path) -> Path:
    path = folder / "nodeproof.yaml"
    path.write_text(
        f"stress:\n  enabled: true\n  script_path: {folder}/check.sh\n  report_path: {folder}/reports/stress-latest.json\n"
        "  default_benchmarks: [stream]\n  benchmarks:\n    stream: {enabled: true, timeout: 1m}\n    hpl: {enabled: false}\n",
        encoding="utf-8",
    )
    return path


def test_every_reading_action_over_one_job(tmp_path: Path, report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    environ = environment(tmp_path)

    def said(*arguments: str, code: int = 0) -> str:
        assert main(["stress", *arguments], environ) == code
        return capsys.readouterr().out

    assert json.loads(said("status"))["job_id"] == report.job_id
    assert json.loads(said("status", "--job", report.job_id))["status"] == "healthy"
    assert f"Stress job {report.job_id}: OK" in said("show", report.job_id, "-o", "table")
    assert "stream OK 10000 MB/s" in said("history", "-o", "table")
    assert json.loads(said("compare", report.job_id, report.job_id))["rows"][0]["change"] == 0
    path = str(tmp_path / "reports" / "stress-latest.json")
    assert "+0.0%" in said("compare", path, report.job_id, "-o", "table")
    assert json.loads(said("describe", "stream"))["preflight"]["status"] == "pass"
    assert "Identity:" in said("describe", "stream", "-o", "table")
    table = said("doctor", "-o", "table")
    assert "nodeproof Stress Doctor  PASS" in table
    assert [line.split()[:4] for line in table.splitlines() if line.startswith(("hpl", "stream"))] == [
        ["hpl", "false", "false", "UNSUPPORTED"],
        ["stream", "true", "true", "PASS"],
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["compare", "none.json", "x"], 1, "stress compare: none.json: No such file"),
        (["describe", "hpl"], 1, "stress describe: hpl is not enabled here"),
        (["bogus"], 2, "'bogus' is no stress item; there are stream, hpl, hpcg"),
        (["--bench", "stream,bogus"], 2, "'bogus' is no stress item"),
        (["hpl"], 1, "stress: hpl is disabled"),
        (["describe", "bogus"], 2, "'bogus' is no stress item"),
        (["size", "npu_burn"], 2, "has no size"),
        (["size", "-o", "dat"], 2, "name hpl or hpcg"),
        (["--seconds", "-1"], 2, "--seconds -1"),
        (["status"], 1, "no stress job was ever run here"),
        (["cancel"], 1, "no stress job runs"),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    write_dispatcher(tmp_path / "check.sh")
    assert main(["stress", *arguments], environment(tmp_path)) == code
    assert said in capsys.readouterr().err


def test_a_file_that_is_no_report_does_not_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_text("[]")
    assert main(["stress", "compare", str(path), str(path)], environment(tmp_path)) == 1
    assert "is no stress report" in capsys.readouterr().err


def test_sizes_are_proposed_and_printed_as_input_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = environment(tmp_path)
    assert main(["stress", "size", "--plan", "quick"], environ) == 0
    sizes = json.loads(capsys.readouterr().out)
    assert list(sizes) == ["stream", "hpl", "hpcg"]
    assert main(["stress", "size", "hpl", "--plan", "quick", "--ranks", "4", "-o", "dat"], environ) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[10:12]] == ["2", "2"]
    assert main(["stress", "size", "hpcg", "-o", "dat"], environ) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert main(["stress", "size", "-o", "table"], environ) == 0
    assert "elements an array" in capsys.readouterr().out


def test_a_damaged_history_is_named_and_ends_with_1(tmp_path: Path, report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.status is Status.HEALTHY
    (tmp_path / "reports" / "stress-history.json").write_text("[")
    assert main(["stress", "history"], environment(tmp_path)) == 1
    shown = capsys.readouterr()
    assert shown.out == "[]\n"
    assert "stress-history.json" in shown.err


def test_the_record_of_an_item_is_shown_with_what_ran(tmp_path: Path, report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {**environment(tmp_path), "NODEPROOF_DATA_DIR": str(tmp_path / "data")}
    # The test's manager keeps its records below "state"; the command line looks below its own state directory.
    (tmp_path / "data").symlink_to(tmp_path / "state")
    run_id = report.benchmarks[0].run_id
    assert main(["stress", "show", run_id, "-o", "table"], environ) == 0
    shown = capsys.readouterr().out
    assert f"STREAM {run_id}: completed, verdict pass" in shown
    assert "triad_mb_s" in shown
    assert "dispatcher" in shown
    assert "output.log" in shown
    assert main(["stress", "show", "run-0", "-o", "table"], environ) == 1
