"""``nodeproof stress`` as a process: how it ends, is cancelled, interrupted and killed, and what is left then (nothing)."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.stress import write_dispatcher

pytestmark = pytest.mark.timeout(60)
BLOCK = "echo $$ > {mark}; setsid bash -c 'trap \"\" TERM INT; echo $$ > {mark}.child; sleep 300' & echo begun; sleep 300"


class Bench:
    """A folder with configuration and dispatcher, and the command on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = folder / "started"
        self.report = folder / "reports" / "stress-latest.json"
        self.config = folder / "nodeproof.yaml"
        self.config.write_text(
            "stress:\n"
            "  enabled: true\n"
            f"  script_path: {folder}/check.sh\n"
            f"  report_path: {self.report}\n"
            "  default_benchmarks: [stream]\n"
            "  benchmarks:\n"
            "    stream: {enabled: true, timeout: 1m}\n",
            encoding="utf-8",
        )
        self.started: list[subprocess.Popen[str]] = []

    def dispatcher(self, run: str | None = None) -> None:
        if run is None:
            write_dispatcher(self.folder / "check.sh")
        else:
            write_dispatcher(self.folder / "check.sh", run=run.format(mark=self.mark))

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, "XDG_STATE_HOME": str(self.folder / "state"), "NODEPROOF_CONFIG": str(self.config)}
        environment.pop("NODEPROOF_DATA_DIR", None)
        argv = [sys.executable, "-m", "nodeproof", "stress", *arguments]
        child = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(child)
        return child

    def run(self, *arguments: str) -> tuple[int, str, str]:
        child = self.start(*arguments)
        out, err = child.communicate(timeout=40)
        return child.returncode, out, err

    def pids(self) -> list[int]:
        """Of the program and of its child, once both run."""
        names = [self.mark, Path(f"{self.mark}.child")]
        ends = time.monotonic() + 20
        while not all(name.exists() and name.read_text().strip() for name in names):
            assert time.monotonic() < ends, "the program did not start"
            time.sleep(0.02)
        return [int(name.read_text()) for name in names]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for child in made.started:
        if child.poll() is None:
            child.kill()
        child.communicate()


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def await_gone(pids: list[int], seconds: float = 15.0) -> None:
    ends = time.monotonic() + seconds
    while not all(map(gone, pids)):
        assert time.monotonic() < ends, f"still there: {[pid for pid in pids if not gone(pid)]}"
        time.sleep(0.02)


def test_a_healthy_job_prints_its_report_as_json_in_a_pipe_and_ends_with_0(bench: Bench) -> None:
    bench.dispatcher()
    code, out, err = bench.run()
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert report["status"] == "healthy"
    assert report["benchmarks"][0]["values"]["triad_mb_s"] == 10000
    code, out, _ = bench.run("status", "-o", "table")
    assert code == 0
    assert "stream     OK" in out
    code, out, _ = bench.run("history")
    assert [entry["job_id"] for entry in json.loads(out)] == [report["job_id"]]
    code, out, _ = bench.run("show", report["benchmarks"][0]["run_id"])
    assert (code, json.loads(out)["status"]) == (0, "completed")


def test_a_changed_record_is_named_and_show_ends_with_1(bench: Bench) -> None:
    bench.dispatcher()
    report = json.loads(bench.run()[1])
    run_id = report["benchmarks"][0]["run_id"]
    (log,) = (bench.folder / "state").rglob("output.log")
    log.chmod(0o600)
    log.write_bytes(log.read_bytes().replace(b"9000.5", b"9900.5"))
    code, _, err = bench.run("show", run_id)
    assert code == 1
    assert "output.log" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_cancels_cleanly_and_ends_with_1(bench: Bench, number: signal.Signals) -> None:
    """F9: Ctrl-C on the reference leaves the benchmark running."""
    bench.dispatcher(BLOCK)
    child = bench.start("stream")
    pids = bench.pids()
    child.send_signal(number)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 1
    assert "cancelling" in err
    assert json.loads(out)["status"] == "cancelled"
    assert all(map(gone, pids))
    assert json.loads(bench.report.read_text())["status"] == "cancelled"


def test_a_second_interrupt_kills_and_ends_with_130(bench: Bench) -> None:
    bench.dispatcher(BLOCK.replace("echo begun", "trap '' TERM; echo begun"))
    child = bench.start("stream")
    pids = bench.pids()
    child.send_signal(signal.SIGINT)
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=30)
    assert child.returncode in {1, 130}  # 1 when all was over before the second came
    assert all(map(gone, pids))


def test_another_process_cancels_the_job(bench: Bench) -> None:
    bench.dispatcher(BLOCK)
    child = bench.start("stream")
    pids = bench.pids()
    code, out, _ = bench.run("cancel")
    assert code == 0
    assert "cancellation requested" in out
    out, _ = child.communicate(timeout=30)
    assert child.returncode == 1
    report = json.loads(out)
    assert report["status"] == "cancelled"
    assert report["benchmarks"][0]["message"] == "cancelled by nodeproof stress cancel"
    assert all(map(gone, pids))


def test_a_second_job_is_refused_while_one_runs(bench: Bench) -> None:
    bench.dispatcher(BLOCK)
    child = bench.start("stream")
    bench.pids()
    job_id = json.loads(bench.report.read_text())["job_id"]
    code, out, err = bench.run("stream")
    assert (code, out) == (1, "")
    assert job_id in err
    assert err.startswith("stress: another job runs")
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=30)


def test_a_killed_owner_leaves_nothing_and_the_next_start_tells_of_it(bench: Bench) -> None:
    bench.dispatcher(BLOCK)
    child = bench.start("stream")
    pids = bench.pids()
    interrupted = json.loads(bench.report.read_text())["job_id"]
    child.kill()
    child.communicate(timeout=30)
    await_gone(pids)
    code, out, _ = bench.run("status")
    while json.loads(out)["status"] == "running":  # its keeper still holds the lock
        time.sleep(0.1)
        code, out, _ = bench.run("status")
    told = json.loads(out)
    assert (code, told["job_id"], told["status"]) == (0, interrupted, "unhealthy")
    assert told["benchmarks"][0]["outcome"]["execution"] == "interrupted"
    bench.dispatcher()
    code, out, _ = bench.run("stream")
    assert code == 0
    history = json.loads(bench.run("history")[1])
    assert [entry["status"] for entry in history] == ["healthy", "unhealthy"]
    assert history[1]["job_id"] == interrupted


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-b", "stream,"], 2),
        (["-o", "yaml"], 2),
        (["--timeout", "soon"], 2),
        (["--timeout", "10ms"], 2),
        (["--timeout", "2m"], 1),
        (["history", "--limit", "101"], 2),
        (["osu"], 2),
        (["hpl"], 1),
        (["status", "--job", "ffff"], 1),
        (["cancel"], 1),
        (["show", "run-1"], 1),
        (["--help"], 0),
        (["doctor", "--help"], 0),
    ],
)
def test_exit_codes(bench: Bench, arguments: list[str], code: int) -> None:
    bench.dispatcher()
    got, _, err = bench.run(*arguments)
    assert got == code
    assert bool(err) == (code != 0)


def test_doctor_says_that_the_feature_is_off_and_ends_with_1(bench: Bench) -> None:
    bench.dispatcher()
    bench.config.write_text("stress:\n  enabled: false\n", encoding="utf-8")
    code, out, _ = bench.run("doctor")
    view = json.loads(out)
    assert code == 1
    assert (view["status"], view["feature_enabled"]) == ("fail", False)
    assert {item["status"] for item in view["benchmarks"]} == {"unsupported"}


def stage_reached(bench: Bench, stage: str) -> bool:
    return any(f'"stage":"{stage}"' in log.read_text() for log in (bench.folder / "state").rglob("log.jsonl"))


def job_is_over(bench: Bench) -> dict[str, object]:
    """The newest job, once nobody says any more that it runs."""
    ends = time.monotonic() + 25
    while True:
        report: dict[str, object] = json.loads(bench.run("status")[1])
        if report["status"] != "running":
            return report
        assert time.monotonic() < ends, "it runs for ever"
        time.sleep(0.1)


@pytest.mark.parametrize("stage", ["hardware", "load", "run", "after", "cleanup", "save"])
def test_an_owner_killed_in_any_stage_leaves_nothing_and_blocks_nobody(bench: Bench, stage: str) -> None:
    bench.dispatcher(BLOCK if stage == "run" else "echo $$ > {mark}; setsid sleep 300 & echo $! > {mark}.child")
    child = bench.start("stream")
    ends = time.monotonic() + 25
    while not stage_reached(bench, stage):
        assert time.monotonic() < ends, f"stage {stage} never came"
        assert child.poll() is None
        time.sleep(0.002)
    if stage == "run":
        bench.pids()
    child.kill()
    child.communicate(timeout=30)
    report = job_is_over(bench)
    assert report["status"] in {"unhealthy", "cancelled"}
    names = [bench.mark, Path(f"{bench.mark}.child")]
    await_gone([int(name.read_text()) for name in names if name.exists() and name.read_text().strip()])
    bench.dispatcher()
    code, out, _ = bench.run("stream")
    assert code == 0
    assert json.loads(out)["job_id"] != report["job_id"]
    records = [json.loads(path.read_text()) for path in (bench.folder / "state").rglob("record.json")]
    assert sorted(record["status"] for record in records) in [["completed", "completed"], ["completed", "crashed"]]
    assert not list((bench.folder / "state").glob("nodeproof/runs/.open/*"))


def test_a_killed_program_is_a_crash_with_its_signal(bench: Bench) -> None:
    bench.dispatcher(BLOCK)
    child = bench.start("stream")
    pids = bench.pids()
    os.kill(pids[0], signal.SIGKILL)
    out, _ = child.communicate(timeout=30)
    (item,) = json.loads(out)["benchmarks"]
    assert child.returncode == 1
    assert (item["outcome"]["execution"], item["outcome"]["cause"]) == ("crashed", "signal")
    assert all(map(gone, pids))


def test_a_killed_keeper_takes_the_program_along(bench: Bench) -> None:
    bench.dispatcher(BLOCK)
    child = bench.start("stream")
    pids = bench.pids()
    parent = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)
    out, _ = child.communicate(timeout=30)
    (item,) = json.loads(out)["benchmarks"]
    assert item["outcome"]["cause"] == "keeper_lost"
    assert item["details"]["process_tree"]["empty"] is True
    await_gone(pids)
