"""Who belongs to a job, found in made-up tables; signals go to a list."""

import signal
from pathlib import Path

import pytest

from nodeproof.host import job_family
from nodeproof.host.cgroups import JobCgroup
from nodeproof.host.job_family import Birthmarks, Family
from nodeproof.host.pidfd import Sent
from nodeproof.host.process_tree import Identity, ProcessTree
from support.process_table import newest, process, remove
from support.tree import write

MARK = (1 << 62) + 77
KEEPER = 50


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Keeper 50; below it 60, 61 (a zombie) and 62; apart from them 70 with the mark and 71 below that; 80 is a stranger."""
    root = str(tmp_path)
    process(root, 1, 0, start=1)
    process(root, 2, 0, start=1)
    process(root, 30, 2, start=2000, mark=MARK)
    process(root, KEEPER, 1, start=900)
    process(root, 60, KEEPER, state="T")
    process(root, 61, 60, state="Z")
    process(root, 62, 60, state="D")
    process(root, 70, 1, mark=MARK)
    process(root, 71, 70)
    process(root, 80, 1)
    process(root, 81, 1, start=899, mark=MARK)
    newest(root, 81)
    return root


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    signals: list[tuple[int, str]] = []

    def send(target: Identity, number: signal.Signals, _: ProcessTree) -> Sent:
        signals.append((target.pid, number.name))
        return Sent.DENIED if target.pid == 62 else Sent.SENT

    monkeypatch.setattr(job_family, "send_signal", send)
    return signals


def family(root: str, *, keeper: int = KEEPER, mark: int = MARK, cgroup: str = "") -> Family:
    marks = Birthmarks("tok", mark, 900)
    return Family(ProcessTree(root), marks, keeper=keeper, cgroup=JobCgroup(cgroup) if cgroup else None)


def pids(found: Family) -> list[int]:
    return sorted(stat.pid for stat in found.members())


def test_by_descent_and_mark(root: str) -> None:
    """Not: the zombie, threads of the kernel, whoever is older than the job."""
    assert pids(family(root)) == [60, 62, 70, 71]
    assert sorted(stat.pid for stat in family(root).below_keeper()) == [60, 61, 62]


def test_without_keeper(root: str) -> None:
    """Only marks are left, and acquaintance; a known number under another start is a stranger."""
    alone = family(root, keeper=0)
    assert pids(alone) == [70, 71]
    alone.known = {Identity(60, 1000), Identity(80, 999)}
    assert pids(alone) == [60, 62, 70, 71]


def test_by_token_where_there_is_no_mark(root: str) -> None:
    process(root, 90, 1, environ=b"NODEPROOF_JOB=tok\0")
    assert pids(family(root, keeper=0, mark=0)) == [90]


def test_by_group(root: str, tmp_path: Path) -> None:
    write(str(tmp_path / "leaf"), "/cgroup.procs", "80\n81\n")
    assert pids(family(root, keeper=0, cgroup=str(tmp_path / "leaf"))) == [70, 71, 80]


def test_telling_wakes_the_stopped(root: str, sent: list[tuple[int, str]]) -> None:
    found = family(root)
    found.tell(signal.SIGTERM, found.members())
    assert sorted(sent) == [(60, "SIGCONT"), (60, "SIGTERM"), (62, "SIGTERM"), (70, "SIGTERM"), (71, "SIGTERM")]


def test_strike_stops_all_before_it_kills(root: str, sent: list[tuple[int, str]], tmp_path: Path) -> None:
    write(str(tmp_path / "leaf"), "/cgroup.kill", "")
    assert family(root, cgroup=str(tmp_path / "leaf")).strike() is True
    assert sorted(sent[:4]) == [(pid, "SIGSTOP") for pid in (60, 62, 70, 71)]
    assert sorted(sent[4:]) == [(pid, "SIGKILL") for pid in (60, 62, 70, 71)]
    assert (tmp_path / "leaf" / "cgroup.kill").read_bytes() == b"1"


def test_strike_follows_what_forks_meanwhile(root: str, sent: list[tuple[int, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Process 70 forks when it is met for the first time, 100 when it is."""

    def send(target: Identity, number: signal.Signals, _: ProcessTree) -> Sent:
        child = {70: 100, 100: 101}.get(target.pid)
        if number is signal.SIGSTOP and child is not None:
            process(root, child, target.pid, mark=MARK)
            newest(root, child)
        sent.append((target.pid, number.name))
        return Sent.SENT

    monkeypatch.setattr(job_family, "send_signal", send)
    assert family(root).strike() is True
    killed = sorted(pid for pid, name in sent if name == "SIGKILL")
    assert killed == [60, 62, 70, 71, 100, 101]


def test_strike_at_a_bomb_that_never_ends_is_bounded(
    root: str, sent: list[tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_family, "_MAX_SWEEPS", 3)
    made = [100]

    def send(target: Identity, number: signal.Signals, _: ProcessTree) -> Sent:
        sent.append((target.pid, number.name))
        if number is signal.SIGSTOP:
            made[0] += 1
            process(root, made[0], 1, mark=MARK)
        return Sent.SENT

    monkeypatch.setattr(job_family, "send_signal", send)
    assert family(root, keeper=0).strike() is True
    assert 70 in {pid for pid, name in sent if name == "SIGKILL"}


def test_strike_at_nobody(root: str, sent: list[tuple[int, str]]) -> None:
    remove(root, 70)
    assert family(root, keeper=0).strike() is False
    assert sent == []


def test_sights_say_why_one_is_still_there(root: str, sent: list[tuple[int, str]]) -> None:
    process(root, 63, 60, state="D")
    found = family(root)
    found.strike()
    notes = {sight["pid"]: (sight["state"], sight["wait"], sight["note"]) for sight in found.sights(found.members())}
    assert notes[62] == ("D", "do_nanosleep", "it belongs to another user, whose processes may not be signalled")
    assert notes[63] == ("D", "do_nanosleep", "it waits in the kernel, where no signal reaches it; it ends when that wait does")
    assert notes[70] == ("S", "do_nanosleep", "")
    assert (62, "SIGKILL") in sent
