"""The helper for libdcmi.so against a compiled stand-in: types and sizes, deadlines, a wedged chip, a driver that is gone."""

import ctypes
import io
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.host import dcmi_helper, dcmi_library
from nodeproof.host.dcmi import Chip, DcmiTiming, HelperDcmi
from support.dcmi import plan, stub_library

_QUICK = DcmiTiming(start_s=10.0, look_s=0.4, list_s=0.4, rest_s=0.3, most_rest_s=1.0, retry_s=0.2, missing_s=0.2)
_EIGHT = [(card, 0) for card in range(8)]


@pytest.fixture(autouse=True)
def _compiler(absent_here: list[str]) -> None:
    if shutil.which("gcc") is None:
        absent_here.append("gcc (Debian packages gcc, libc6-dev): the DCMI bindings were not run against a library")


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "plan"
    plan(path, "cards=8")
    monkeypatch.setenv("DCMI_STUB_PLAN", str(path))
    return path


@pytest.fixture
def library(words: Path) -> Iterator[HelperDcmi]:
    """A helper whose first look, which starts it, is over."""
    found = HelperDcmi(_QUICK, stub_library())
    found.listing()
    yield found
    found.close()


def _numbers(answer: object) -> dict[str, Any]:
    assert isinstance(answer, dict)
    return answer


def test_every_structure_has_the_size_and_places_that_a_compiler_gives_it() -> None:
    stub = ctypes.CDLL(stub_library())
    for name, kind in dcmi_library.STRUCTURES.items():
        last = kind._fields_[-1][0]
        assert ctypes.sizeof(kind) == getattr(stub, f"stub_size_{name}")(), name
        assert getattr(kind, last).offset == getattr(stub, f"stub_last_{name}")(), name
    assert ctypes.sizeof(dcmi_library.PcieInfoAll) == 64


def test_the_stand_in_exports_every_function_that_is_called() -> None:
    stub = ctypes.CDLL(stub_library())
    assert [name for name in dcmi_library.CALLS if not hasattr(stub, name)] == []


def test_chips_are_listed_with_their_other_ids(library: HelperDcmi) -> None:
    listing = library.listing()
    assert listing.chips[3] == (3, 0, {"name": "910B3-v2", "bus": "0000:83:00.0", "logic": 3, "phy": 12})
    assert (len(listing.chips), listing.driver, listing.whole) == (8, "24.1.rc3", True)


def test_older_functions_are_used_where_the_driver_refuses_the_newer(words: Path, library: HelperDcmi) -> None:
    plan(words, "cards=2 v1")
    assert library.listing().chips[1] == (1, 0, {"name": "910B3", "bus": "0000:81:00.0", "logic": 1, "phy": 14})


def test_a_card_that_does_not_tell_its_devices_and_controllers(words: Path, library: HelperDcmi) -> None:
    plan(words, "cards=3 devices=2 kinds dumb=1")
    listing = library.listing()
    assert [chip[:2] for chip in listing.chips] == [(0, 0), (2, 0)], "device 1 of each card is its controller"
    assert not listing.whole


def test_values_come_through_whole(library: HelperDcmi) -> None:
    values = _numbers(library.look(_EIGHT, deep=True)[3, 0])
    assert values["power"] == [0, 945]
    assert values["hbm"] == [
        0,
        {"memory_size": 65536, "freq": 1600, "memory_usage": 22938, "temp": 48, "bandwith_util_rate": 7},
    ]
    assert values["freq.1"] == [-8255, None]
    assert values["ntc"] == [0, [21, 22, 23, 24]]
    assert values["acg"] == [0, 12345]
    assert values["ecc.0"][0] == -8255
    first = _numbers(library.look([(0, 0)], deep=True)[0, 0])
    assert first["processes"] == [0, [[1234, 2**33], [5678, 4096]]]
    assert "ntc" not in _numbers(library.look([(0, 0)], deep=False)[0, 0])


def test_a_wedged_chip_delays_no_other_beyond_the_deadline(words: Path, library: HelperDcmi) -> None:
    library.look(_EIGHT, deep=False)
    plan(words, "cards=8 wedge=3:0")
    began_s = time.monotonic()
    answers = library.look(_EIGHT, deep=False)
    took_s = time.monotonic() - began_s
    absence = answers[3, 0]
    assert isinstance(absence, NoData)
    assert absence.state is Absence.STALE
    assert sorted(chip for chip, said in answers.items() if not isinstance(said, NoData)) == [c for c in _EIGHT if c != (3, 0)]
    assert took_s < _QUICK.look_s * 1.1 + 0.2, "the deadline, a tenth of it, and the helper's end"
    helpers = library.started_total
    again = library.look(_EIGHT, deep=False)
    assert library.started_total == helpers + 1
    assert "asked again after 0.3 s" in str(again[3, 0]), "it is left alone"
    plan(words, "cards=8")
    time.sleep(0.35)
    assert not isinstance(library.look(_EIGHT, deep=False)[3, 0], NoData), "and is well again by itself"


def test_a_chip_that_holds_up_all_others_is_found(words: Path) -> None:
    """In time enough for eight sound chips to answer on a busy machine: it is not their speed that is tried here."""
    library = HelperDcmi(_QUICK._replace(look_s=1.0), stub_library())
    try:
        library.look(_EIGHT, deep=False)
        plan(words, "cards=8 wedge=2:0 lock")
        silent: list[Chip] = []
        give_up_s = time.monotonic() + 15
        while silent != [(2, 0)] and time.monotonic() < give_up_s:
            silent = _silent(library)
        assert silent == [(2, 0)]
    finally:
        library.close()


def _silent(library: HelperDcmi) -> list[Chip]:
    return [chip for chip, said in library.look(_EIGHT, deep=False).items() if isinstance(said, NoData)]


class _Locked(HelperDcmi):
    """A driver whose chip 2:0 holds up whoever asks beside it or after it; ``early`` get their answers before it takes hold."""

    def __init__(self, early: set[Chip], clock: Callable[[], float]) -> None:
        super().__init__(_QUICK, "", clock)
        self.asked: list[list[Chip]] = []
        self._early = early

    def _ask(self, request: dict[str, Any], expected: int, limit_s: float) -> list[dict[str, Any]]:
        del expected, limit_s
        chips = request["chips"]
        self.asked.append(chips)
        return [{"chip": chip, "values": {}} for chip in chips if (2, 0) not in chips or chip in self._early]


@pytest.mark.parametrize("early", [set(), {(0, 0)}, {(0, 0), (5, 0), (7, 0)}])
def test_chips_that_answered_before_the_culprit_took_hold_do_not_hide_it(early: set[Chip]) -> None:
    """The others were left alone with it, for twice as long each time, when only one of eight had answered."""
    library = _Locked(early, lambda: 1000.0)
    assert _silent(library) == [chip for chip in _EIGHT if chip not in early]
    assert _silent(library) == [chip for chip in _EIGHT if chip[0] >= 2]
    assert library.asked[1:] == [[(0, 0)], [(1, 0)], [(2, 0)]]
    assert _silent(library) == [(2, 0)]


def test_a_lost_chip_says_so_itself(words: Path, library: HelperDcmi) -> None:
    plan(words, "cards=8 lost=5:0")
    assert _numbers(library.look(_EIGHT, deep=False)[5, 0])["health"] == [-8012, None]


def test_a_listing_that_hangs_is_told_and_ended(words: Path, library: HelperDcmi) -> None:
    plan(words, "cards=8 listwedge")
    with pytest.raises(NoData, match=r"did not list its cards within 0.4 s"):
        library.listing()
    plan(words, "cards=8")
    assert len(library.listing().chips) == 8


def test_a_driver_that_refuses_is_asked_again_later(words: Path) -> None:
    plan(words, "cards=8 init=-8005")
    library = HelperDcmi(_QUICK, stub_library())
    for _ in range(3):
        with pytest.raises(NoData, match=r"dcmi_init of libdcmi\.so failed with -8005"):
            library.listing()
    assert library.started_total == 1
    plan(words, "cards=8")
    time.sleep(0.25)
    assert len(library.listing().chips) == 8
    library.close()
    with pytest.raises(NoData, match="the program is ending"):
        library.listing()


def test_without_the_library_the_remedy_is_named(tmp_path: Path) -> None:
    library = HelperDcmi(_QUICK, str(tmp_path / "none.so"))
    with pytest.raises(NoData, match=r"no libdcmi\.so was found") as found:
        library.listing()
    assert (found.value.state, found.value.remedy) == (
        Absence.UNSUPPORTED,
        "install the Ascend driver; npu-smi is asked meanwhile",
    )
    broken = tmp_path / "libdcmi.so"
    broken.write_bytes(b"no library")
    with pytest.raises(NoData, match=r"invalid ELF header|too short"):
        HelperDcmi(_QUICK, str(broken)).listing()


def test_a_helper_that_dies_is_replaced(library: HelperDcmi) -> None:
    pipe = library._pipe
    assert pipe is not None
    os.kill(pipe.child.pid, 9)
    pipe.child.wait(5)
    with pytest.raises(NoData, match="has died"):
        library.look(_EIGHT, deep=False)
    time.sleep(0.25)
    assert len(library.look(_EIGHT, deep=False)) == 8


def test_the_helper_asks_all_that_it_can_and_says_it_in_lines(words: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = dcmi_library.Library(stub_library())
    plan(words, "cards=2 fans=2")
    assert dcmi_helper.listing(found)["chips"][1][:2] == [1, 0]
    assert dcmi_helper.deep(found, 1, 0)["fans"] == [0, [[0, 60], [0, 61]]]
    assert dcmi_helper.quick(found, 9, 0)["temperature"] == [-8007, None], "there is no card 9"
    assert dcmi_helper.deep(found, 9, 0)["fans"] == [-8007, None]
    assert found.call("dcmi_get_nothing") == -8254
    dcmi_helper.say({"ready": 1})
    assert capfd.readouterr().out == '{"ready":1}\n'


def test_the_helper_serves_its_input_until_that_ends(
    words: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    requests = '{"look":1,"list":true}\n{"look":2,"chips":[[0,0]],"deep":true}\n'
    monkeypatch.setattr(sys, "stdin", io.StringIO(requests))
    assert dcmi_helper.main([stub_library()]) == 0
    out = ""
    for _ in range(100):
        out += capfd.readouterr().out
        if out.count("\n") == 3:
            break
        time.sleep(0.02)
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines[0] == {"ready": 1}
    assert {line["look"] for line in lines[1:]} == {1, 2}
    plan(words, "cards=8 init=-8020")
    assert dcmi_helper.main([stub_library()]) == 1
    assert capfd.readouterr().out == '{"failed":-8020,"reason":"dcmi_init"}\n'
    assert dcmi_helper.main(["/nowhere/libdcmi.so"]) == 1
    assert capfd.readouterr().out == '{"failed":1,"reason":"no libdcmi.so was found"}\n'


def test_rubbish_from_the_helper_is_no_answer(library: HelperDcmi) -> None:
    assert library._pipe is not None
    library._pipe._waiting += b"\xff\xfe no json\n"
    with pytest.raises(NoData, match="has died"):
        library.look(_EIGHT, deep=False)


def test_the_helper_ends_when_nobody_asks_any_more(library: HelperDcmi) -> None:
    pipe = library._pipe
    assert pipe is not None
    pipe._to.close()
    assert pipe.child.wait(5) == 0


def test_a_library_that_takes_too_long_to_open_is_told_so(words: Path) -> None:
    assert words
    library = HelperDcmi(_QUICK._replace(start_s=0.0), stub_library())
    with pytest.raises(NoData, match="could not be opened in time"):
        library.listing()
    library.close()


def test_a_helper_that_cannot_be_started_costs_only_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(NoData, match="cannot be started") as raised:
        HelperDcmi(_QUICK).look(_EIGHT, deep=False)
    assert raised.value.state is Absence.READ_ERROR


def test_helpers_that_cannot_be_ended_are_not_followed_by_more(words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert words
    monkeypatch.setattr("nodeproof.host.dcmi._MOST_STUCK", 0)
    library = HelperDcmi(_QUICK, stub_library())
    with pytest.raises(NoData, match="hang in the kernel") as raised:
        library.listing()
    assert (raised.value.state, library.started_total) == (Absence.STALE, 0)
