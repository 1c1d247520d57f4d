"""A source that fails for hours is asked each second: what it answers must hold on to nobody who asked.

An exception remembers each frame that it passes through, each time it is raised. One that is kept and raised again would keep
alive, cycle after cycle, everything that its catchers held; whoever keeps an absence, keeps and raises a copy
(:meth:`nodeproof.errors.NoData.again`).
"""

import contextlib
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeproof.collectors.network.bonds import Bonds
from nodeproof.collectors.services.ipmi import Ipmi
from nodeproof.collectors.services.kernel_log import KernelLog
from nodeproof.collectors.services.smart import Smart
from nodeproof.errors import Absence, CommandError, CommandFailure, NoData
from nodeproof.host.background import Background
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.sources.smartctl import Asleep
from support.hosts_grown import Size, write_grown_host

SIZE = Size(2, 2, 1)


class Held:
    """What somebody who asks holds meanwhile."""


def frames(error: BaseException) -> int:
    count, trace = 0, error.__traceback__
    while trace is not None:
        count, trace = count + 1, trace.tb_next
    return count


def test_a_copy_is_the_same_absence_without_a_past() -> None:
    def caught() -> NoData:
        try:
            try:
                Path("/nothing/here").read_bytes()
            except OSError:
                raise NoData(Absence.READ_ERROR, "broken", remedy="mend it") from None
        except NoData as absence:
            return absence
        raise AssertionError("the file is there")

    original = caught()
    copy = original.again()
    assert (copy.state, copy.reason, copy.remedy, str(copy)) == (Absence.READ_ERROR, "broken", "mend it", str(original))
    assert (copy.__traceback__, copy.__context__, copy.__cause__) == (None, None, None)
    assert original.__context__ is not None


def test_a_copy_of_a_special_absence_is_as_special() -> None:
    copy = Asleep().again()
    assert isinstance(copy, Asleep)
    assert (copy.state, copy.reason) == (Absence.UNKNOWN, "the disk sleeps (standby) and was not woken")


def failing() -> int:
    raise NoData(Absence.READ_ERROR, "it broke")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A host with a BMC and disks whose tools give up, and a kernel log that nobody may read."""
    write_grown_host(str(tmp_path), SIZE)
    (tmp_path / "dev/kmsg").unlink()
    (tmp_path / "dev/kmsg").mkdir()
    gave_up = {
        f"{tool} {options}": CommandError(tool, CommandFailure.TIMED_OUT, "gave no answer in 5 s and was ended")
        for tool, options in (("ipmitool", "sensor"), ("smartctl", "--json=c -n standby -x /dev/sda"))
    }
    return recorded_machine(str(tmp_path), dict(gave_up))


def ask_background(machine: Machine) -> Callable[[], object]:
    return machine.background("tool", failing, interval_s=10.0, deadline_s=5.0).latest


SOURCES: dict[str, Callable[[Machine], Callable[[], object]]] = {
    "a slow source": ask_background,
    "the BMC": lambda machine: machine.shared(Ipmi).sensors,
    "the kernel log": lambda machine: machine.shared(KernelLog).counts,
}


@pytest.mark.parametrize("name", SOURCES)
def test_an_absence_that_is_told_again_and_again_holds_on_to_nobody(machine: Machine, name: str) -> None:
    ask = SOURCES[name](machine)
    with contextlib.suppress(NoData):
        ask()
    machine.settle(10.0)
    asked: list[weakref.ref[Held]] = []
    depths: list[int] = []

    def somebody() -> None:
        held = Held()
        asked.append(weakref.ref(held))
        try:
            ask()
        except NoData as absence:
            assert absence.state in {Absence.READ_ERROR, Absence.STALE}, absence
            depths.append(frames(absence))

    for _ in range(5):
        somebody()
    assert len(depths) == 5
    assert len(set(depths)) == 1
    assert [reference() for reference in asked] == [None] * 5


def test_absences_in_an_answer_have_no_past(machine: Machine, tmp_path: Path) -> None:
    smart = machine.shared(Smart)
    smart.readings()
    assert smart.wait(10.0)
    answers = smart.readings()
    assert {name: type(answer) for name, answer in answers.items()} == {"sda": NoData, "sdb": NoData}
    assert [answer.__traceback__ for answer in answers.values() if isinstance(answer, NoData)] == [None, None]
    (tmp_path / "proc/net/bonding").mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc/net/bonding/bond0").mkdir()
    bond = Bonds(machine)._bond("bond0")
    assert isinstance(bond, NoData)
    assert bond.__traceback__ is None


def test_a_clock_does_not_bring_the_past_back(machine: Machine) -> None:
    source = Background("tool", failing, interval_s=10.0, deadline_s=5.0, clock=machine.clock)
    clock = machine.clock
    assert isinstance(clock, ManualClock)
    depths = []
    for _ in range(4):
        with contextlib.suppress(NoData):
            source.latest()
        assert source.wait(10.0)
        with pytest.raises(NoData, match="it broke") as caught:
            source.latest()
        depths.append(frames(caught.value))
        clock.advance(11.0)
    assert len(set(depths)) == 1
