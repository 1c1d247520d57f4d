"""The helper that asks NVML, in this process and against the stand-in: what it says, line by line."""

import ctypes
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodeproof.host import nvml_helper
from support.daemon import until
from support.nvml import StubNvml, build_stub

Line = dict[str, Any]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compiled once each: ``new`` and ``old``."""
    folder = tmp_path_factory.mktemp("nvml")
    made: dict[str, Path] = {}

    def library(age: str) -> Path:
        if age not in made:
            made[age] = build_stub(folder / age, old=age == "old")
        return made[age]

    return library


class Output:
    """In the place of the helper's standard output, and of its way to end at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._data = b""
        self.ended: list[int] = []

    def write(self, fd: int, data: bytes) -> int:
        """A few bytes at a time, as a pipe may take them."""
        assert fd == 1
        with self._lock:
            part = bytes(data[:1000])
            self._data += part
            return len(part)

    def _exit(self, status: int) -> None:
        self.ended.append(status)
        raise SystemExit(status)

    getpid = staticmethod(os.getpid)

    def lines(self) -> list[Line]:
        """Whole lines so far."""
        with self._lock:
            return [json.loads(line) for line in self._data.split(b"\n")[:-1]]

    def cards(self) -> list[Line]:
        """What was said of cards."""
        return [line["card"] for line in self.lines() if "card" in line]


class Helper:
    """The helper's own code, told what to do by lines, as over its pipe."""

    def __init__(self, stub: StubNvml, out: Output) -> None:
        self.stub = stub
        self.out = out
        self.asked = self._sent = 0

    def look(self, *, deep: bool, before: Callable[[], None] | None = None) -> tuple[bytes, Callable[[], None] | None]:
        """One request for all cards."""
        self.asked += 1
        line = {"look": self.asked, "cards": self.stub.addresses, "deep": deep}
        return json.dumps(line).encode() + b"\n", before

    def serve(self, *requests: tuple[bytes, Callable[[], None] | None]) -> list[Line]:
        """Have the requests answered, each before the next one is sent; what the last one brought, in the order of the cards."""
        sys.stdin = SimpleNamespace(buffer=self._requests(requests))  # put back by the fixture
        assert nvml_helper.main() == 0
        self.settle()
        return sorted(self.out.cards()[-len(self.stub.addresses) :], key=lambda card: str(card["address"]))

    def _requests(self, requests: tuple[tuple[bytes, Callable[[], None] | None], ...]) -> Iterator[bytes]:
        for line, before in requests:
            if before is not None:
                before()
            self._sent += 1
            yield line
            self.settle()

    def settle(self) -> None:
        """Wait until every request was answered for each card: a thread that asks on would ask the next test's library."""
        until(lambda: len(self.out.cards()) >= self._sent * len(self.stub.addresses), "all cards have answered", 15.0)


@pytest.fixture
def out(monkeypatch: pytest.MonkeyPatch) -> Output:
    found = Output()
    monkeypatch.setattr(nvml_helper, "os", found)
    return found


@pytest.fixture
def helper(
    libraries: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Output, absent_here: list[str]
) -> Iterator[Callable[..., Helper]]:
    if shutil.which("gcc") is None:
        absent_here.append("gcc (Debian packages gcc, libc6-dev): the NVML helper was not run against a library")
        pytest.skip("no gcc")
    pynvml = pytest.importorskip("pynvml")
    monkeypatch.setattr(sys, "stdin", sys.stdin)
    made: list[Helper] = []

    def make(cards: int, age: str = "new") -> Helper:
        stub = StubNvml(libraries(age), tmp_path, cards)
        for name, value in stub.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(libraries(age) / "libnvidia-ml.so.1")))
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        made.append(Helper(stub, out))
        return made[-1]

    yield make
    for one in made:
        one.settle()
        assert one.stub.wrong_calls() == ""


def _values(card: Line) -> dict[tuple[str, ...], float]:
    return {tuple(key): value for key, value in card["values"]}


def test_each_card_is_told_whole_in_a_line(helper: Callable[..., Helper]) -> None:
    asked = helper(8)
    cards = asked.serve(asked.look(deep=True))
    assert [card["address"] for card in cards] == asked.stub.addresses
    assert [card["state"] for card in cards] == [0] * 8
    assert cards[2]["identity"] == {
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": "GPU-00000000-0000-0000-0000-000000000002",
        "vbios": "96.00.A5.00.01",
        "driver": "590.48.01",
    }
    values = _values(cards[2])
    assert (values["temperature",], values["power_draw",], values["memory_detail", "used"]) == (42, 102, 3 * 1024)
    assert (values["throttle_reason", "hw_thermal"], values["throttle_reason", "idle"]) == (1, 0)
    assert (values["nvlink_supported",], values["nvlink_errors", "5", "recovery"], values["fabric_state",]) == (18, 2, 2)
    assert _values(cards[3])["ecc_aggregate_errors", "corrected", "total"] == 105
    assert (_values(cards[7])["mig_instances",], _values(cards[7])["mig_memory", "1", "used"]) == (2, 8 * 1024)
    assert [len(card["processes"]) for card in cards] == [0, 2, 0, 0, 0, 0, 0, 0]
    untold = {tuple(key): (state, reason) for key, state, reason in cards[2]["untold"]}
    assert untold["fan_speed",] == ("unsupported", "this card or driver does not tell it")


def test_a_quick_look_tells_less(helper: Callable[..., Helper]) -> None:
    asked = helper(1)
    (card,) = asked.serve(asked.look(deep=False), asked.look(deep=False))
    assert "temperature" in {key[0] for key in _values(card)}
    assert "nvlink_supported" not in {key[0] for key in _values(card)}
    assert card["index"] == 0


def test_an_older_driver_is_asked_in_the_forms_it_knows(helper: Callable[..., Helper]) -> None:
    asked = helper(2, "old")
    card = asked.serve(asked.look(deep=True), asked.look(deep=True))[1]
    values = _values(card)
    assert (values["temperature",], values["memory_detail", "used"], values["throttle_time", "thermal"]) == (41, 20 * 1024, 1.0)
    assert ("memory_detail", "reserved") not in values
    assert len(card["processes"]) == 2


@pytest.mark.parametrize(
    ("letter", "state", "reason"),
    [
        ("l", 3, "NVML: GPU is lost"),
        ("u", 3, "NVML: Unknown Error"),
        ("r", 2, "NVML: "),
        ("a", 2, "the driver advises a reset"),
    ],
)
def test_a_sick_card_says_so_and_is_asked_for_anew(helper: Callable[..., Helper], letter: str, state: int, reason: str) -> None:
    asked = helper(3)
    cards = asked.serve(asked.look(deep=False), asked.look(deep=True, before=lambda: asked.stub.card(1, letter)))
    assert [card["state"] for card in cards] == [0, state, 0]
    assert cards[1]["reason"].startswith(reason)
    cards = asked.serve(asked.look(deep=False, before=lambda: asked.stub.card(1, "o")))
    assert (cards[1]["index"], cards[1]["state"], _values(cards[1])["temperature",]) == (1, 0, 41)


def test_a_card_of_another_container_is_not_ours(helper: Callable[..., Helper]) -> None:
    asked = helper(3)
    asked.stub.card(1, "n")
    cards = asked.serve(asked.look(deep=False))
    assert [card.get("ours", True) for card in cards] == [True, False, True]
    assert cards[1]["reason"].startswith("NVML: ")


def test_a_driver_that_does_not_open_ends_the_helper_with_its_code(helper: Callable[..., Helper], out: Output) -> None:
    helper(1).stub.driver("d")
    with pytest.raises(SystemExit):
        nvml_helper.main()
    assert out.ended == [3]
    assert out.lines() == [{"failed": 9, "reason": "Driver Not Loaded"}]


def test_a_binding_that_is_not_installed_ends_the_helper(out: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(out, "_exit", out.ended.append)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.delitem(sys.modules, "nodeproof.host.nvml_readings", raising=False)
    monkeypatch.delattr("nodeproof.host.nvml_readings", raising=False)
    assert nvml_helper.main() == 3
    assert out.ended == [3]
    assert out.lines()[0]["failed"] == nvml_helper._NO_BINDING
