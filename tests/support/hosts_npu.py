"""Nodes with Ascend NPUs, made up after public outputs of ``npu-smi``: cards on the bus, device nodes, and the tool's answers.

The layouts are those of vllm-project/vllm-ascend #1130 (910B3, no physical id), #2658 (Ascend910 with two chips, npu-smi 24.1)
and #12980 (the wider table of 26.0), and that of a 950 (SwanHubX/SwanLab #1719); the values are constructed.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nodeproof.errors import CommandError, CommandFailure
from nodeproof.host.commands import CommandResult
from nodeproof.sources.hccn_tool import STATISTICS
from support.tree import write, write_all

__all__ = [
    "A2",
    "A2_DROPPED",
    "A3",
    "Chip",
    "answers_of",
    "details",
    "ids_map",
    "network_answers",
    "table",
    "table_950",
    "write_npu_a2",
    "write_npu_a2_dropped",
    "write_npu_a2_hung",
    "write_npu_a3",
    "write_npus",
]

Answers = Mapping[str, bytes | CommandResult | CommandError]


class Chip(NamedTuple):
    """One chip and what the tools say of it."""

    npu: int
    chip: int
    bus: str
    name: str = "910B3"
    health: str = "OK"
    power: str = "93.9"
    temperature: str = "41"
    aicore: str = "0"
    hbm: str = "3385 / 65536"
    memory: str = "0    / 0"
    phy: int | None = None
    pids: tuple[int, ...] = ()


_A2_BUS = ("C1", "C2", "81", "82", "01", "02", "41", "42")

A2 = tuple(
    Chip(
        card,
        0,
        f"0000:{bus}:00.0",
        power=f"{91.5 + card}",
        temperature=str(38 + card),
        aicore=str(10 * card),
        hbm=f"{3276 + 6554 * card} / 65536",
        pids=(4100 + card,) if card < 2 else (),
    )
    for card, bus in enumerate(_A2_BUS)
)
"""Eight cards of one chip each; card n has 91.5 + n W, 38 + n °C, 10 n % AI core, 3276 + 6554 n MB of HBM in use."""

A2_DROPPED = tuple(chip for chip in A2 if chip.npu != 5)

_A3_BUS = ("9D", "9F", "99", "9B", "95", "97", "91", "93", "8D", "8F", "89", "8B", "85", "87", "81", "83")

A3 = tuple(
    Chip(
        phy // 2,
        phy % 2,
        f"0000:{bus}:00.0",
        name="Ascend910",
        power=f"{160 + phy}.5" if phy % 2 == 0 else "-",
        temperature=str(34 + phy),
        aicore=str(6 * phy),
        hbm=f"{3000 + 100 * phy} / 65536",
        phy=phy,
        pids=(7000,) if phy == 15 else (),
    )
    for phy, bus in enumerate(_A3_BUS)
)
"""Eight cards of two chips each; the card's power is told with its first chip."""


def table(chips: Sequence[Chip], version: str = "24.1.rc3") -> bytes:
    """``npu-smi info`` up to 25: columns 27, 15 and 52 wide."""
    physical = any(chip.phy is not None for chip in chips)
    ids_head = "Chip  Phy-ID" if physical else "Chip"
    border = f"+{'-' * 27}+{'-' * 15}+{'-' * 52}+"
    double = border.replace("-", "=")
    lines = [
        f"+{'-' * 96}+",
        f"| npu-smi {version:<24} Version: {version:<54}|",
        border,
        f"| {'NPU   Name':<26}| {'Health':<14}| {'Power(W)':<12}{'Temp(C)':<18}{'Hugepages-Usage(page)'}|",
        f"| {ids_head:<26}| {'Bus-Id':<14}| {'AICore(%)':<12}{'Memory-Usage(MB)':<18}{'HBM-Usage(MB)':<21}|",
        double,
    ]
    for chip in chips:
        name = f"{chip.npu:<6}{chip.name}"
        ids = f"{chip.chip:<6}{chip.phy}" if physical else f"{chip.chip}"
        lines.append(f"| {name:<26}| {chip.health:<14}| {chip.power:<12}{chip.temperature:<18}{'0    / 0':<21}|")
        lines.append(f"| {ids:<26}| {chip.bus:<14}| {chip.aicore:<12}{chip.memory:<18}{chip.hbm:<21}|")
        lines.append(double)
    lines += [border, f"| {'NPU     Chip':<26}| {'Process id':<14}| {'Process name':<25}| {'Process memory(MB)':<24}|", double]
    for card in dict.fromkeys(chip.npu for chip in chips):
        rows = [(chip.chip, pid) for chip in chips if chip.npu == card for pid in chip.pids]
        for chip_id, pid in rows:
            lines.append(f"| {f'{card:<8}{chip_id}':<26}| {pid:<14}| {'python3':<25}| {'12417':<24}|")
        if not rows:
            lines.append(f"| {f'No running processes found in NPU {card}':<95}|")
        lines.append(double)
    return ("\n".join(lines) + "\n").encode()


def table_950(chips: Sequence[Chip]) -> bytes:
    """``npu-smi info`` of a 950: the name in a column of its own, no chip numbers, ``NPU Util(%)``."""
    border = f"+{'-' * 10}+{'-' * 14}+{'-' * 10}+{'-' * 62}+"
    lines = [
        border,
        "| npu-smi 25.7.rc1                 Version: 25.7.rc1 |",
        border,
        f"| {'NPU ID':<9}| {'Name':<13}| {'Health':<9}| {'Power(W)':<14}{'Temp(C)':<20}{'Hugepages-Usage(page)':<27}|",
        f"|{'':<10}| {'Bus-Id':<24}| {'NPU Util(%)':<14}{'Memory-Usage(MB)':<20}{'HBM-Usage(MB)':<27}|",
        border.replace("-", "="),
    ]
    for chip in chips:
        lines.append(f"| {chip.npu:<9}| {chip.name:<13}| {chip.health:<9}| {chip.power:<14}{chip.temperature:<20}{'0 / 0':<27}|")
        lines.append(f"|{'':<10}| {chip.bus:<24}| {chip.aicore:<14}{chip.memory:<20}{chip.hbm:<27}|")
        lines.append(border)
    return ("\n".join(lines) + "\n").encode()


def ids_map(chips: Sequence[Chip]) -> bytes:
    """``npu-smi info -m``: the logical id counts the chips up; each card has a controller."""
    rows = ["\tNPU ID                         Chip ID                        Chip Logic ID                  Chip Name"]
    for number, chip in enumerate(chips):
        rows.append(f"\t{chip.npu:<31}{chip.chip:<31}{number:<31}{chip.name}")
    rows += [f"\t{card:<31}{'1':<31}{'-':<31}Mcu" for card in dict.fromkeys(chip.npu for chip in chips if chip.phy is None)]
    return ("\n".join(rows) + "\n").encode()


def details(chips: Sequence[Chip], *, single: int = 0, double: int = 0) -> dict[str, bytes]:
    """``npu-smi info -t ... -i ID`` of each card; ``single`` and ``double`` are its HBM's error counts."""
    answers: dict[str, bytes] = {}
    for card in dict.fromkeys(chip.npu for chip in chips):
        own = [chip for chip in chips if chip.npu == card]
        head = f"\tNPU ID                         : {card}\n\tChip Count                     : {len(own)}\n\n"

        def blocks(rows: Mapping[str, object], own: Sequence[Chip] = own, head: str = head) -> bytes:
            body = "".join(
                "".join(f"\t{key:<31}: {value}\n" for key, value in rows.items())
                + f"\tChip ID                        : {chip.chip}\n\n"
                for chip in own
            )
            return (head + body).encode()

        answers[f"npu-smi info -t common -i {card}"] = blocks(
            {"Aicore Freq(MHZ)": 1800, "Aicore curFreq(MHZ)": 800 + card, "Aicore Count": 20, "Temperature(C)": 40}
        ) + (b"\tChip Name                      : mcu\n\tTemperature(C)                 : 33\n")
        answers[f"npu-smi info -t usages -i {card}"] = blocks(
            {
                "DDR Capacity(MB)": 0,
                "DDR Usage Rate(%)": 0,
                "HBM Capacity(MB)": 65536,
                "HBM Usage Rate(%)": 5,
                "Aivector Usage Rate(%)": 2 * card,
                "Aicpu Usage Rate(%)": 0,
                "Ctrlcpu Usage Rate(%)": 3,
                "HBM Bandwidth Usage Rate(%)": "NA" if card == 1 else card,
            }
        )
        answers[f"npu-smi info -t memory -i {card}"] = blocks(
            {"HBM Capacity(MB)": 65536, "HBM Clock Speed(MHz)": 1600, "HBM Temperature(C)": 45 + card}
        )
        answers[f"npu-smi info -t ecc -i {card}"] = blocks(
            {
                "HBM Single Bit Error Count": single if card == 3 else 0,
                "HBM Double Bit Error Count": double if card == 3 else 0,
                "HBM Single Bit Isolated Pages Count": 0,
                "HBM Double Bit Isolated Pages Count": 1 if card == 3 else 0,
            }
        )
        answers[f"npu-smi info -t health -i {card}"] = blocks(
            {
                "Health Status": own[0].health,
                "Error Code": "NA" if own[0].health == "OK" else "80C98000",
                "Error Information": "NA",
            }
        )
    return answers


def topology(chips: Sequence[Chip]) -> bytes:
    """``npu-smi info -t topo``: every chip beside every other."""
    names = [f"NPU{number}" for number in range(len(chips))]
    rows = ["\t" + "\t".join(names)]
    rows += [name + "\t" + "\t".join("X" if name == other else "HCCS" for other in names) for name in names]
    return ("\n".join(rows) + "\n\nLegend:\n\n  X    = Self\n  HCCS = Connection traversing HCCS.\n").encode()


def answers_of(name: str) -> Answers:
    """What the programs on one of these hosts say."""
    chips = {"npu-a2-8": A2, "npu-a3-16": A3, "npu-a2-dropped": A2_DROPPED}.get(name)
    if chips is None:
        hung = CommandError("npu-smi", CommandFailure.TIMED_OUT, "gave no answer in 20 s and was ended")
        return {"npu-smi info": hung, "npu-smi info -m": hung}
    return {
        "npu-smi info": table(chips),
        "npu-smi info -m": ids_map(chips),
        "npu-smi info -t topo": topology(chips),
        **details(chips),
        **network_answers(chips),
    }


def write_npu_a2(root: str) -> None:
    """Eight cards of one chip."""
    write_npus(root, A2)


def write_npu_a2_dropped(root: str) -> None:
    """The same; one of them no longer answers, and is still on the bus."""
    write_npus(root, A2)


def write_npu_a2_hung(root: str) -> None:
    """The same; the tool hangs."""
    write_npus(root, A2)


def write_npu_a3(root: str) -> None:
    """Eight cards of two chips."""
    write_npus(root, A3)


def write_npus(root: str, chips: Sequence[Chip]) -> None:
    """These chips on the bus and among the device nodes, with their driver."""
    for number, chip in enumerate(chips):
        files = {"class": "0x120000", "vendor": "0x19e5", "device": "0xd802" if chip.phy is None else "0xd803"}
        write_all(root, f"/sys/bus/pci/devices/{chip.bus.lower()}", files)
        write(root, f"/dev/davinci{number}", "")
    write(root, "/dev/davinci_manager", "")
    write(root, "/usr/local/Ascend/driver/version.info", "Version=24.1.rc3\nascendhal_version=7.35.19\n")


def network_answers(chips: Sequence[Chip]) -> dict[str, bytes]:
    """``hccn_tool`` and ``hccs-bw`` of chips whose physical id is told; port 2 is down, port 3 leaves half of its answer out."""
    answers: dict[str, bytes] = {}
    for chip in chips:
        links = "hccs link                      tx_bandwidth(GB/S)             rx_bandwidth(GB/S)\n"
        links += f"{0:<35} {1.0:<30.6f} {0.5:<30.6f}\n{'total':<35} {1.0:<30.6f} {0.5:<30.6f}\n"
        answers[f"npu-smi info -t hccs-bw -i {chip.npu} -c {chip.chip} -time 50"] = links.encode()
        if chip.phy is None:
            continue
        tool = f"hccn_tool -i {chip.phy}"
        rates = f"Bandwidth TX: {chip.phy}.50 MB/sec\n" + ("" if chip.phy == 3 else f"Bandwidth RX: {2 * chip.phy}.00 MB/sec\n")
        answers[f"{tool} -bandwidth -g"] = rates.encode()
        answers[f"{tool} -link -g"] = b"link status: DOWN\n" if chip.phy == 2 else b"link status: UP\n"
        answers[f"{tool} -speed -g"] = b"Speed: Unknown!\n" if chip.phy == 2 else b"Speed: 200000 Mb/s\n"
        counts = {name: 1000 * chip.phy + number for number, name in enumerate(STATISTICS) if name != "roce_new_pkt_rty"}
        answers[f"{tool} -stat -g"] = ("packet statistics:\n" + "".join(f"{key}:{n}\n" for key, n in counts.items())).encode()
    return answers
