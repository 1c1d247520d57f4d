"""Progress judged by what a program brings forth; times and sums by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.process import Progress
from nodeproof.stress.progress import Observation, ProgressWatch, WatchPolicy, WatchState

POLICY = WatchPolicy(silent_after_s=30, hung_after_s=120, blind_after_s=30)
START = 1000.0


def look(
    at_s: float,
    *,
    cpu_s: float = 0.0,
    output: int = 0,
    read: int | None = 0,
    written: int | None = 0,
    states: dict[str, int] | None = None,
) -> Progress:
    return Progress(START + at_s, cpu_s, output, 1, 1, 0, states or {"R": 1}, read, written)


def follow(watch: ProgressWatch, *looks: Progress) -> Observation:
    seen = [watch.see(progress, progress.at_mono_s) for progress in looks]
    return seen[-1]


def spinning(until_s: int, *, output: int = 0, step_s: int = 1) -> list[Progress]:
    """A program that burns a core and does nothing else."""
    return [look(at, cpu_s=float(at), output=output) for at in range(0, until_s + 1, step_s)]


def idle(until_s: int) -> list[Progress]:
    return [look(at, cpu_s=0.5, states={"S": 4, "T": 1}) for at in range(until_s + 1)]


def test_new_program_is_running() -> None:
    assert ProgressWatch(POLICY, START).judge(START + 29) == (WatchState.RUNNING, 29, "nothing came from it in 29 s")


def test_spinning_ranks_are_silent_never_running() -> None:
    """Deadlocked MPI ranks use all the CPU time there is; CPU time alone is no progress."""
    seen = follow(ProgressWatch(POLICY, START), *spinning(600))
    assert seen.state is WatchState.SILENT
    assert seen.quiet_s == 600
    assert seen.reason == "nothing came from it in 600 s, and the CPU time it uses is no proof of progress"


def test_spinning_program_hangs_where_silence_has_a_limit() -> None:
    watch = ProgressWatch(WatchPolicy(mute_limit_s=300.0), START)
    assert follow(watch, *spinning(299)).state is WatchState.SILENT
    seen = follow(watch, look(300, cpu_s=300.0))
    assert (seen.state, seen.reason) == (WatchState.HUNG, "nothing came from it in 300 s, and 300 s are allowed")


def test_standing_still_is_a_hang() -> None:
    watch = ProgressWatch(POLICY, START)
    assert follow(watch, *idle(29)).state is WatchState.RUNNING
    seen = follow(watch, *idle(119)[30:])
    assert (seen.state, seen.reason) == (
        WatchState.SILENT,
        "nothing came from it in 119 s, and it computes nothing (processes by state: 4 in S, 1 in T)",
    )
    seen = follow(watch, look(120, cpu_s=0.5))
    assert seen.state is WatchState.HUNG
    assert seen.reason == "nothing came from it in 120 s, and it has not computed for 120 s (processes by state: 1 in R)"


def test_output_is_progress() -> None:
    watch = ProgressWatch(POLICY, START)
    follow(watch, *spinning(100))
    seen = follow(watch, look(101, cpu_s=101.0, output=1))
    assert (seen.state, seen.quiet_s, seen.reason) == (WatchState.RUNNING, 0, "its last output was 0 s ago")
    assert follow(watch, look(130, cpu_s=130.0, output=1)).state is WatchState.RUNNING
    assert follow(watch, look(131, cpu_s=131.0, output=1)).state is WatchState.SILENT


def test_output_before_the_first_look_is_progress_then() -> None:
    seen = follow(ProgressWatch(POLICY, START), look(20, output=5))
    assert seen == Observation(WatchState.RUNNING, 0, "its last output was 0 s ago")


@pytest.mark.parametrize(("bytes_a_second", "state"), [(4095, WatchState.SILENT), (4096, WatchState.RUNNING)])
@pytest.mark.parametrize("way", ["read", "written"])
def test_reading_and_writing_is_progress_above_a_trickle(way: str, bytes_a_second: int, state: WatchState) -> None:
    """A program that waits for others reads a few bytes again and again."""
    looks = [look(at, cpu_s=float(at), **{way: at * bytes_a_second}) for at in range(100)]  # type: ignore[arg-type]  # read or written
    assert follow(ProgressWatch(POLICY, START), *looks).state is state


def test_counters_that_cannot_be_read_prove_nothing() -> None:
    looks = [look(at, cpu_s=float(at), read=None, written=None if at % 2 else at * 10**6) for at in range(100)]
    assert follow(ProgressWatch(POLICY, START), *looks).state is WatchState.SILENT


def test_promised_heartbeats_are_all_that_counts() -> None:
    watch = ProgressWatch(WatchPolicy(silent_after_s=10, hung_after_s=60, heartbeats=True), START)
    looks = [look(at, cpu_s=float(at), output=at * 100, written=at * 10**6) for at in range(61)]
    watch.beat(START + 1)
    watch.beat(START + 0.5, "late to arrive")
    seen = follow(watch, *looks)
    assert (seen.state, seen.quiet_s) == (WatchState.SILENT, 59)
    assert watch.judge(START + 61) == Observation(
        WatchState.HUNG, 60, "its last heartbeat was 60 s ago, though it had promised heartbeats"
    )
    watch.beat(START + 62)
    assert watch.judge(START + 62).state is WatchState.RUNNING


def test_keeper_that_looks_no_more_is_not_taken_for_a_hang() -> None:
    """The same look again and again says nothing of now."""
    watch = ProgressWatch(POLICY, START)
    last = look(0, cpu_s=1.0)
    seen = [watch.see(last, START + at) for at in range(500)]
    assert seen[29].state is WatchState.RUNNING
    assert {one.state for one in seen[30:]} == {WatchState.UNKNOWN}
    assert seen[-1].reason == "nothing came from it in 499 s, but nobody has looked at it for 499 s"


def test_nobody_has_ever_looked() -> None:
    assert ProgressWatch(POLICY, START).judge(START + 500).state is WatchState.UNKNOWN


def test_stop_of_a_program_that_printed_to_the_end() -> None:
    watch = ProgressWatch(POLICY, START)
    follow(watch, *[look(at, cpu_s=float(at), output=at * 10) for at in range(60)])
    judgement = watch.judge_stop(START + 60)
    assert (judgement.progressed, judgement.hung) == (True, False)
    assert judgement.reason == "it worked until it was stopped: its last output was 1 s ago"


def test_stop_of_a_program_that_shows_nothing_until_its_end() -> None:
    watch = ProgressWatch(POLICY, START)
    follow(watch, *spinning(600))
    judgement = watch.judge_stop(START + 600)
    assert (judgement.progressed, judgement.hung) == (False, False)
    assert judgement.reason == "it showed no progress in 600 s, only its end would have"


def test_stop_of_a_program_that_only_announced_itself() -> None:
    """A header, then a deadlock: the header proves nothing of the last minutes."""
    watch = ProgressWatch(POLICY, START)
    follow(watch, look(0), *[look(at, cpu_s=float(at), output=500) for at in range(1, 61)])
    judgement = watch.judge_stop(START + 60)
    assert (judgement.progressed, judgement.hung) == (False, False)
    assert judgement.reason.endswith("and nothing came in the last 15 s of 60 s")


def test_stop_of_a_hang() -> None:
    watch = ProgressWatch(POLICY, START)
    follow(watch, *idle(200))
    judgement = watch.judge_stop(START + 200)
    assert (judgement.progressed, judgement.hung) == (False, True)
    assert judgement.reason.startswith("it hung: nothing came from it in 200 s, and it has not computed for 200 s")


@pytest.mark.parametrize(
    ("ran_s", "quiet_s", "progressed"), [(8, 2, True), (8, 2.5, False), (1, 0.5, False), (1000, 30, True), (1000, 31, False)]
)
def test_window_at_the_end(ran_s: float, quiet_s: float, *, progressed: bool) -> None:
    """A quarter of the run, at least 2 s, at most the 30 s after which it counts as silent."""
    watch = ProgressWatch(POLICY, START)
    watch.see(look(ran_s - quiet_s, cpu_s=1.0), START + ran_s - quiet_s)
    watch.beat(START + ran_s - quiet_s, "output")
    assert watch.judge_stop(START + ran_s).progressed is progressed


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 50), st.integers(0, 10**9)), max_size=30), st.floats(0, 1000))
def test_cpu_time_alone_never_counts(steps: list[tuple[float, float, int]], wait_s: float) -> None:
    """Whatever a program burns: without output, bytes or heartbeat a stop proves nothing."""
    watch = ProgressWatch(POLICY, START)
    at_s = cpu_s = 0.0
    for step_s, burnt_s, _ in steps:
        at_s, cpu_s = at_s + step_s, cpu_s + burnt_s
        watch.see(look(at_s, cpu_s=cpu_s), START + at_s)
    assert not watch.judge_stop(START + at_s + wait_s).progressed
