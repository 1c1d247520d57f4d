"""Component gpu where NVML can be asked: what its cards become, and that nothing else is started."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeproof.collectors.gpu.judgement import Judge
from nodeproof.errors import Absence, NoData
from nodeproof.host.nvml import NvmlCard
from nodeproof.model.gpu import CardReading, Untold
from support.gpu import nvidia_smi_answers, smi_table, smi_uuid, write_gpu
from support.gpu_host import GpuHost, value
from support.network import missing_of, readings
from support.tree import write

_ADDRESSES = ("0000:17:00.0", "0000:65:00.0")
_VALUES: dict[tuple[str, ...], float] = {
    ("utilization",): 90,
    ("memory_detail", "total"): 81920,
    ("memory_detail", "used"): 20480,
    ("temperature",): 60,
    ("ecc_mode",): 1,
    ("ecc_errors",): 0,
    ("mig_mode",): 0,
    ("performance_state",): 0,
    ("pcie_generation",): 5,
    ("pcie_generation_max",): 5,
    ("pcie_width",): 16,
    ("pcie_width_max",): 16,
}


class _Nvml:
    """Cards that tests make."""

    def __init__(self, cards: Sequence[NvmlCard] | NoData) -> None:
        self.cards = cards
        self.looks: list[bool] = []

    def look(self, addresses: Sequence[str], *, deep: bool) -> list[NvmlCard]:
        self.looks.append(deep)
        if isinstance(self.cards, NoData):
            raise self.cards
        return [card for card in self.cards if card.address in addresses]

    def close(self) -> None:
        pass


def _card(number: int, more: dict[tuple[str, ...], float] | None = None, **fields: object) -> NvmlCard:
    values = list((_VALUES | (more or {})).items())
    identity = {"name": "NVIDIA H100 80GB HBM3", "uuid": smi_uuid(number), "driver": "590.48.01"}
    plain: dict[str, object] = {"index": number, "identity": identity, "values": values}
    return NvmlCard(_ADDRESSES[number], **{"state": 0, **plain, **fields})  # type: ignore[arg-type]  # fields of the struct


def _host(root: Path, cards: Sequence[NvmlCard] | NoData) -> tuple[GpuHost, _Nvml]:
    for address in _ADDRESSES:
        write_gpu(str(root), address)
    host = GpuHost(root, nvidia_smi_answers(smi_table([])))
    nvml = _Nvml(cards)
    host.machine._nvml = nvml
    return host, nvml


def test_no_program_is_started_while_nvml_answers(tmp_path: Path) -> None:
    host, nvml = _host(tmp_path, [_card(0), _card(1)])
    for _ in range(20):
        batch = host.collect(5.0)
    assert host.commands.asked == []
    assert readings(batch, "temperature") == {("0",): 60, ("1",): 60}
    assert readings(batch, "memory_usage") == {("0",): 25, ("1",): 25}
    assert nvml.looks.count(False) == 40
    assert 3 <= nvml.looks.count(True) <= 11, "what changes seldom is asked every half minute, and a few times at the start"


def test_what_a_card_is_not_divided_into_is_no_blind_spot(tmp_path: Path) -> None:
    host, nvml = _host(tmp_path, [_card(0), _card(1)])
    batch = host.collect()
    for name in ("mig_instances", "mig_memory", "partition_info"):
        assert {entry.state for entry in missing_of(batch, name)} == {Absence.NOT_APPLICABLE}, name
    cut = {("mig_mode",): 1.0, ("mig_instances",): 2.0, ("mig_memory", "0", "total"): 40960.0}
    nvml.cards = [_card(0, cut), _card(1)]
    batch = host.collect(40)
    assert readings(batch, "mig_instances") == {("0",): 2}
    assert value(batch, "mig_memory", "0", "0", "total") == 40960


def test_a_silent_card_is_told_and_hides_no_other(tmp_path: Path) -> None:
    host, _ = _host(tmp_path, [_card(0), NvmlCard(_ADDRESSES[1], 1, "it hangs")])
    batch = host.collect()
    assert readings(batch, "card_state") == {("0",): 0, ("1",): 1}
    (absence,) = missing_of(batch, "temperature")
    assert (absence.labels, absence.state, absence.reason) == (
        {"gpu_id": "1"},
        Absence.STALE,
        "its driver does not answer: it hangs",
    )


def test_processes_bear_the_kernels_name_of_them(tmp_path: Path) -> None:
    write(str(tmp_path), "/proc/4242/comm", "python3")
    host, _ = _host(tmp_path, [_card(0, processes=[(4242, 512.0, False), (4243, None, False), (99, 8.0, True)]), _card(1)])
    batch = host.collect()
    assert readings(batch, "processes") == {("0",): 2}
    assert value(batch, "process_memory", "0", "4242", "python3") == 512
    assert [entry.labels for entry in missing_of(batch, "processes")] == [{"gpu_id": "1"}]


def _links(up: int, total: int = 4) -> dict[tuple[str, ...], float]:
    states: dict[tuple[str, ...], float] = {("nvlink_state", str(link)): float(link < up) for link in range(total)}
    return states | {("nvlink_supported",): float(total)}


def test_links_against_the_expected_count(tmp_path: Path) -> None:
    switched: dict[tuple[str, ...], float] = {("fabric_state",): 2.0}
    host, nvml = _host(tmp_path, [_card(0, _links(4) | switched), _card(1, _links(0) | switched)])
    batch = host.collect()
    assert readings(batch, "nvlink_active_share") == {("0",): 100, ("1",): 0}
    assert value(batch, "nvlink_links", "1", "expected") == 4
    assert value(batch, "nvlink_links", "1", "active") == 0
    nvml.cards = [_card(0, _links(3) | switched), _card(1, _links(4) | switched)]
    assert readings(host.collect(40), "nvlink_active_share") == {("0",): 75, ("1",): 100}


def test_links_that_nothing_is_plugged_into_are_no_fault_until_one_was_up(tmp_path: Path) -> None:
    host, nvml = _host(tmp_path, [_card(0, _links(0)), _card(1, _links(0))])
    batch = host.collect()
    assert readings(batch, "nvlink_active_share") == {}
    assert {entry.state for entry in missing_of(batch, "nvlink_active_share")} == {Absence.NOT_APPLICABLE}
    nvml.cards = [_card(0, _links(2)), _card(1, _links(0))]
    assert readings(host.collect(40), "nvlink_active_share") == {("0",): 100, ("1",): 0}


def test_links_whose_state_cannot_be_read_are_neither_none_nor_down() -> None:
    silent = Untold(Absence.READ_ERROR, "unknown error")
    unread = CardReading(
        address="0000:17:00.0",
        vendor="nvidia",
        values={("nvlink_supported",): 2.0},
        untold={("nvlink_state", "0"): silent, ("nvlink_state", "1"): silent},
    )
    values, untold = Judge().judge(unread)
    assert [key for key in values if key[0].startswith("nvlink")] == []
    for key in (("nvlink_links", "active"), ("nvlink_links", "expected"), ("nvlink_active_share",)):
        assert untold[key].state is Absence.READ_ERROR


def test_a_card_without_links_has_none_to_lose(tmp_path: Path) -> None:
    host, _ = _host(tmp_path, [_card(0, _links(0, 0)), _card(1, _links(0, 0))])
    batch = host.collect()
    for name in ("nvlink_links", "nvlink_state", "nvlink_errors", "nvlink_traffic", "nvlink_active_share"):
        assert [(entry.labels, entry.state) for entry in missing_of(batch, name)] == [(None, Absence.NOT_APPLICABLE)], name


def test_when_nvml_fails_nvidia_smi_is_asked(tmp_path: Path) -> None:
    host, nvml = _host(tmp_path, NoData(Absence.READ_ERROR, "NVML: broken"))
    rows = [{"index": str(n), "pci.bus_id": f"0000{address}", "uuid": smi_uuid(n)} for n, address in enumerate(_ADDRESSES)]
    host.commands.answers.update(nvidia_smi_answers(smi_table(rows)))
    assert readings(host.collect(), "temperature") == {("0",): 59, ("1",): 59}
    nvml.cards = [_card(0), _card(1)]
    assert readings(host.collect(), "temperature") == {("0",): 60, ("1",): 60}


def test_when_both_fail_the_reason_is_nvmls(tmp_path: Path) -> None:
    host, _ = _host(tmp_path, NoData(Absence.READ_ERROR, "NVML: broken", remedy="mend it"))
    batch = host.collect()
    (absence,) = missing_of(batch, "temperature")
    assert (absence.state, absence.reason, absence.remedy) == (Absence.UNKNOWN, "NVML: broken", "mend it")
    assert readings(batch, "driver_up") == {("nvidia",): 0}


def test_cards_that_a_container_was_not_given_are_not_told_of(tmp_path: Path) -> None:
    (tmp_path / ".dockerenv").write_text("")
    host, nvml = _host(tmp_path, [_card(0), NvmlCard(_ADDRESSES[1], 0, ours=False)])
    assert readings(host.collect(), "cards") == {("nvidia", "expected"): 1, ("nvidia", "answering"): 1}
    nvml.cards = [NvmlCard(address, 0, ours=False) for address in _ADDRESSES]
    host.commands.answers.clear()
    assert readings(host.collect(), "driver_up") == {}


@pytest.mark.parametrize(
    ("mode", "state"), [(None, Absence.NOT_APPLICABLE), (0.0, Absence.UNSUPPORTED), (1.0, Absence.UNSUPPORTED)]
)
def test_error_counts_that_are_not_told(tmp_path: Path, mode: float | None, state: Absence) -> None:
    values = {key: value for key, value in _VALUES.items() if key not in {("ecc_errors",), ("ecc_mode",)}}
    if mode is not None:
        values["ecc_mode",] = mode
    untold = [(("ecc_errors",), Absence.UNSUPPORTED, "not told")]
    host, _ = _host(tmp_path, [_card(number, values=list(values.items()), untold=untold) for number in range(2)])
    assert [entry.state for entry in missing_of(host.collect(), "ecc_errors")] == [state]
