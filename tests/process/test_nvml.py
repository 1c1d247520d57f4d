"""NVML through its helper process, against a library that checks every call and does what a sick driver does."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.host import nvml_readings
from nodeproof.host.nvml import HelperNvml, NvmlCard, Timing
from support.nvml import SOURCE, StubNvml, build_stub

pytestmark = pytest.mark.timeout(60)

_DEADLINE_S = 0.5
_TIMING = Timing(look_s=_DEADLINE_S, first_look_s=5.0, start_s=10.0, alone_s=0.3, rest_s=0.8, retry_s=0.2, missing_s=0.2)
_ROOT = Path(__file__).parents[2]
Make = Callable[..., tuple[StubNvml, HelperNvml]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_stub(tmp_path_factory.mktemp("nvml")) if shutil.which("gcc") else Path()


@pytest.fixture
def library(built: Path, absent_here: list[str]) -> Path:
    if not shutil.which("gcc"):
        absent_here.append("gcc (Debian packages gcc, libc6-dev): the NVML bindings were not run against a library")
        pytest.skip("no gcc")
    return built


@pytest.fixture
def make(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A stub with so many cards, and an asker; no call may have been wrong in the end."""
    made: list[tuple[StubNvml, HelperNvml]] = []

    def start(cards: int = 4, *, at: Path = library) -> tuple[StubNvml, HelperNvml]:
        stub = StubNvml(at, tmp_path, cards)
        for name, value in stub.environment.items():
            monkeypatch.setenv(name, value)
        made.append((stub, HelperNvml(_TIMING)))
        return made[-1]

    yield start
    for stub, nvml in made:
        nvml.close()
        assert stub.wrong_calls() == ""


def _look(nvml: HelperNvml, stub: StubNvml, *, deep: bool = False) -> dict[str, NvmlCard]:
    return {card.address: card for card in nvml.look(stub.addresses, deep=deep)}


def _values(card: NvmlCard) -> dict[tuple[str, ...], float]:
    return dict(card.values)


def test_every_reading_of_a_card_under_its_catalogue_name(make: Make) -> None:
    stub, nvml = make(8)
    cards = _look(nvml, stub, deep=True)
    assert [card.state for card in cards.values()] == [0] * 8
    card = cards["0000:12:00.0"]
    assert card.index == 2
    assert card.identity == {
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": "GPU-00000000-0000-0000-0000-000000000002",
        "vbios": "96.00.A5.00.01",
        "driver": "590.48.01",
    }
    values = _values(card)
    assert values["utilization",] == 20
    assert values["memory_detail", "used"] == 3 * 1024
    assert values["memory_detail", "reserved"] == 512
    assert (values["temperature",], values["memory_temperature",], values["temperature_headroom",]) == (42, 54, 47)
    assert (values["power_draw",], values["power_limit",]) == (102, 700)
    assert values["energy",] == pytest.approx(123456.789)
    assert values["throttle_reason", "sw_power_cap"] == 1
    assert values["throttle_reason", "hw_thermal"] == 1
    assert values["throttle_reason", "idle"] == 0
    assert values["throttle_time", "sw_power_cap"] == pytest.approx(2.5)
    assert values["throttle_time", "hw_thermal"] == pytest.approx(0.007)
    assert ("throttle_time", "thermal") not in values
    assert (values["pcie_generation",], values["pcie_width",], values["pcie_replays",]) == (5, 16, 3)
    assert (values["pcie_throughput", "tx"], values["pcie_throughput", "rx"]) == (2, 4)
    assert values["temperature_limit", "slowdown"] == 89
    assert values["clock_max_frequency", "memory"] == 2619
    assert values["nvlink_supported",] == 18
    assert sum(value for key, value in values.items() if key[0] == "nvlink_state") == 18
    assert values["nvlink_errors", "5", "recovery"] == 2
    assert (values["nvlink_traffic", "tx"], values["nvlink_traffic", "rx"]) == (1024, 2048)
    assert values["fabric_state",] == 2
    assert values["memory_detail", "bar1_total"] == 131072
    assert values["row_remap_banks", "max"] == 2560
    untold = {key: (state, reason) for key, state, reason in card.untold}
    assert untold["fan_speed",] == (Absence.UNSUPPORTED, "this card or driver does not tell it")
    assert untold["retired_pages", "double_bit"][0] is Absence.UNSUPPORTED
    assert nvml.started_total == 1


def test_each_card_has_its_own_values(make: Make) -> None:
    stub, nvml = make(8)
    cards = list(_look(nvml, stub, deep=True).values())
    assert [_values(card)["temperature",] for card in cards] == [40, 41, 42, 43, 44, 45, 46, 47]
    assert _values(cards[3])["ecc_errors",] == 15
    assert _values(cards[3])["ecc_aggregate_errors", "corrected", "total"] == 105
    assert _values(cards[3])["row_remap_pending",] == 1
    assert _values(cards[4])["pcie_width",] == 8
    assert _values(cards[6])["fabric_state",] == 3
    assert (_values(cards[7])["mig_mode",], _values(cards[7])["mig_instances",]) == (1, 2)
    assert _values(cards[7])["mig_memory", "1", "used"] == 8 * 1024
    assert [len(card.processes or ()) for card in cards] == [0, 2, 0, 0, 0, 0, 0, 0]
    assert cards[1].processes == [(os.getpid(), 512.0, False), (4242, None, False)]


def test_a_quick_look_leaves_out_what_changes_seldom(make: Make) -> None:
    stub, nvml = make(1)
    (card,) = _look(nvml, stub).values()
    names = {key[0] for key, _ in card.values}
    assert "temperature" in names
    assert not names & {"nvlink_state", "pcie_throughput", "row_remap_banks", "persistence_mode"}


def test_an_older_driver_is_read_in_the_forms_it_knows(make: Make, tmp_path: Path) -> None:
    stub, nvml = make(2, at=build_stub(tmp_path / "old", old=True))
    for _ in range(2):  # the second time with the forms that were found
        card = _look(nvml, stub, deep=True)["0000:11:00.0"]
        values = _values(card)
        assert values["temperature",] == 41
        assert values["memory_detail", "used"] == 20 * 1024
        assert ("memory_detail", "reserved") not in values
        assert values["throttle_reason", "hw_thermal"] == 1
        assert values["throttle_time", "thermal"] == pytest.approx(1.0)
        assert len(card.processes or ()) == 2
        assert ("throttle_time", "hw_thermal") in {key for key, _, _ in card.untold}


@pytest.mark.parametrize(("letter", "state"), [("l", 3), ("u", 3), ("r", 2), ("a", 2)])
def test_a_card_that_fails_is_told_so_and_its_neighbours_are_read(make: Make, letter: str, state: int) -> None:
    stub, nvml = make()
    stub.card(1, letter)
    cards = list(_look(nvml, stub).values())
    assert [card.state for card in cards] == [0, state, 0, 0]
    assert cards[1].reason
    assert _values(cards[2])["temperature",] == 42
    stub.card(1, "o")
    assert [card.state for card in _look(nvml, stub).values()] == [0, 0, 0, 0]


def test_a_card_that_is_lost_while_in_use_is_asked_for_anew(make: Make) -> None:
    stub, nvml = make()
    _look(nvml, stub)
    stub.card(2, "l")
    assert [card.state for card in _look(nvml, stub).values()] == [0, 0, 3, 0]
    stub.card(2, "o")
    assert [card.state for card in _look(nvml, stub).values()] == [0, 0, 0, 0]
    assert nvml.started_total == 1


def test_cards_that_a_container_was_not_given_are_not_ours(make: Make) -> None:
    stub, nvml = make()
    stub.card(3, "n")
    assert [card.ours for card in _look(nvml, stub).values()] == [True, True, True, False]


def test_a_wedged_card_delays_no_other_is_left_alone_and_comes_back(make: Make) -> None:
    stub, nvml = make(8)
    _look(nvml, stub)
    stub.card(5, "w")
    started = time.monotonic()
    cards = _look(nvml, stub)
    took_s = time.monotonic() - started
    assert took_s < 1.1 * _DEADLINE_S + 0.25, "deadline and a tenth; the rest is this test's machine, which others use"
    assert sorted(address for address, card in cards.items() if card.state) == ["0000:15:00.0"]
    assert "did not answer" in cards["0000:15:00.0"].reason
    assert sum(("temperature",) in _values(card) for card in cards.values()) == 7
    started = time.monotonic()
    cards = _look(nvml, stub)  # by a new helper, which does not touch the wedged card
    assert [card.state for card in cards.values()] == [0, 0, 0, 0, 0, 1, 0, 0]
    assert nvml.started_total == 2
    stub.card(5, "o")
    time.sleep(_TIMING.rest_s)
    assert [card.state for card in _look(nvml, stub).values()] == [0] * 8


def test_one_card_that_holds_up_all_others_inside_the_driver_is_found_and_left_out(make: Make) -> None:
    stub, nvml = make()
    _look(nvml, stub)
    stub.card(2, "g")
    states = []
    for _ in range(3):
        states.append([card.state for card in _look(nvml, stub).values()])
        if states[-1].count(1) == 1:
            break
    assert states[-1] == [0, 0, 1, 0], states


def test_a_driver_upgraded_under_a_running_kernel_module_is_seen_and_heals(make: Make) -> None:
    stub, nvml = make()
    _look(nvml, stub)
    stub.driver("m")
    with pytest.raises(NoData) as raised:
        _look(nvml, stub)
    assert raised.value.state is Absence.UNKNOWN
    assert "different versions" in raised.value.reason
    assert "modprobe" in raised.value.remedy
    with pytest.raises(NoData, match="different versions"):
        _look(nvml, stub)
    assert nvml.started_total == 1, "not tried again at once"
    time.sleep(_TIMING.retry_s)
    with pytest.raises(NoData, match="different versions"):
        _look(nvml, stub)
    stub.driver("o")
    time.sleep(_TIMING.retry_s)
    assert [card.state for card in _look(nvml, stub).values()] == [0, 0, 0, 0]
    assert nvml.started_total == 3


def test_a_driver_that_is_not_loaded(make: Make) -> None:
    stub, nvml = make()
    stub.driver("d")
    with pytest.raises(NoData, match="not loaded") as raised:
        _look(nvml, stub)
    assert raised.value.state is Absence.READ_ERROR


def test_a_library_that_is_not_installed(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stub, nvml = make()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    with pytest.raises(NoData, match=r"libnvidia-ml\.so\.1 is not installed") as raised:
        _look(nvml, stub)
    assert raised.value.state is Absence.UNSUPPORTED


def test_a_binding_that_is_not_installed(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stub, nvml = make()
    (tmp_path / "pynvml.py").write_text("raise ImportError('no such thing')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(NoData, match="nvidia-ml-py is not installed") as raised:
        _look(nvml, stub)
    assert raised.value.remedy == "pip install 'nodeproof[nvidia]'"


def test_a_driver_that_takes_long_to_open_keeps_nobody_waiting(make: Make) -> None:
    stub, nvml = make()
    nvml._timing = _TIMING._replace(start_s=0.2, give_up_start_s=1.0)
    stub.driver("s")
    for _ in range(2):
        started = time.monotonic()
        with pytest.raises(NoData, match="has not answered yet"):
            _look(nvml, stub)
        assert time.monotonic() - started < 1.0
    assert nvml.started_total == 1
    stub.driver("o")
    nvml._timing = _TIMING
    assert len(_look(nvml, stub)) == 4
    stub.driver("s")
    nvml.close()
    nvml._timing = _TIMING._replace(start_s=0.1, give_up_start_s=0.0)
    with pytest.raises(NoData, match="has not answered yet"):
        _look(nvml, stub)
    assert nvml._helper is None, "one that does not open the driver in a minute is given up"


def test_a_helper_that_is_killed_is_replaced(make: Make) -> None:
    stub, nvml = make()
    _look(nvml, stub)
    assert nvml._helper is not None
    nvml._helper.child.kill()
    nvml._helper.child.wait(5)
    with pytest.raises(NoData, match="has died"):
        _look(nvml, stub)
    time.sleep(_TIMING.retry_s)
    assert len(_look(nvml, stub)) == 4


def test_a_helper_that_talks_rubbish_is_replaced(make: Make) -> None:
    stub, nvml = make()
    _look(nvml, stub)
    assert nvml._helper is not None
    nvml._helper._buffer += b"}{\n"
    with pytest.raises(NoData, match="has died"):
        _look(nvml, stub)


def test_the_helper_ends_when_its_owner_is_killed(make: Make) -> None:
    stub, _ = make()
    program = (
        "import time\n"
        "from nodeproof.host.nvml import HelperNvml\n"
        "nvml = HelperNvml()\n"
        f"nvml.look({stub.addresses!r}, deep=False)\n"
        "print(nvml._helper.child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    helper = int(owner.stdout.readline())
    owner.kill()
    owner.wait(5)
    owner.stdout.close()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{helper}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{helper}").exists()


def test_stuck_helpers_are_counted_and_the_driver_left_alone(make: Make) -> None:
    stub, nvml = make()
    sleepers = [subprocess.Popen(["/bin/sleep", "60"]) for _ in range(4)]
    nvml._stuck = list(sleepers)
    with pytest.raises(NoData, match="4 processes that asked NVML hang in the kernel"):
        _look(nvml, stub)
    for sleeper in sleepers:
        sleeper.kill()
        sleeper.wait(5)
    assert len(_look(nvml, stub)) == 4


def test_the_stub_exports_what_is_called_and_a_real_driver_does_too(library: Path) -> None:
    sources = [Path(nvml_readings.__file__).read_text(), Path(nvml_readings.__file__).with_name("nvml_helper.py").read_text()]
    called = set(re.findall(r"\bnv\.(nvml(?:System|Device)\w+)", "".join(sources)))
    binding = Path(nvml_readings.nv.__file__).read_text()
    symbols = {symbol for name in called for symbol in re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', _body(binding, name))}
    assert len(symbols) > 40
    table = subprocess.run(
        ["/usr/bin/nm", "-D", str(library / "libnvidia-ml.so.1")], capture_output=True, text=True, check=True
    ).stdout
    exported = {line.split()[-1] for line in table.splitlines() if " T " in line}
    older = {"nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetComputeRunningProcesses_v2"}
    assert symbols - exported == older, "and these two come from the library that is compiled as an older driver"
    real = set((SOURCE.parent / "driver-590.48.01.symbols").read_text().split())
    assert symbols <= real


def _body(source: str, name: str) -> str:
    found = re.search(rf"^def {name}\(.*?(?=^def |\Z)", source, re.MULTILINE | re.DOTALL)
    body = found[0] if found else ""
    inner = re.search(r"return (nvml\w+)\(", body)
    return body + (_body(source, inner[1]) if inner and inner[1] != name else "")
