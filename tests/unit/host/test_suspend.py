"""Time spent suspended."""

from nodeproof.host.own_process import thread_cpu_s
from nodeproof.host.suspend import suspended_s


def test_it_never_falls_and_is_never_negative() -> None:
    first = suspended_s()
    assert 0.0 <= first <= suspended_s() + 1e-3


def test_a_threads_own_time_grows_with_work() -> None:
    before = thread_cpu_s()
    assert sum(range(200_000)) == 19_999_900_000
    assert thread_cpu_s() > before
