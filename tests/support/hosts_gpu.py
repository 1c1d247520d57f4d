"""Fixture hosts with GPUs: what lies on their PCI bus, and what their tools say."""

from nodeproof.collectors.services.amd_gpus import ROCM_LINE as _ROCM_ARGUMENTS
from nodeproof.host.commands import CommandResult
from nodeproof.sources.nvidia_smi_cards import FIELDS
from support.gpu import Answer, nvidia_smi_answers, smi_output, smi_table, smi_uuid, write_gpu
from support.tree import write, write_all

__all__ = [
    "AMD_8",
    "NVIDIA_8",
    "ROCM_LINE",
    "mixed_answers",
    "nvidia_8_answers",
    "write_amd",
    "write_amd_8",
    "write_mixed",
    "write_nvidia_8",
]

ROCM_LINE = " ".join(_ROCM_ARGUMENTS)

NVIDIA_8 = tuple(f"0000:{bus}:00.0" for bus in ("18", "2a", "3a", "5d", "9a", "ab", "ba", "db"))
"""Addresses of a chassis with eight cards."""
LOST = 5


def write_nvidia_8(root: str) -> None:
    """Eight cards on the bus."""
    for address in NVIDIA_8:
        write_gpu(root, address, driver="nvidia")


def _card(position: int) -> dict[str, str]:
    """Card by card something else is to be seen; the first two are well and idle."""
    own: dict[int, dict[str, str]] = {
        2: {"temperature.gpu": "84", "clocks_event_reasons.hw_thermal_slowdown": "Active"},
        3: {
            "ecc.errors.uncorrected.volatile.total": "2",
            "ecc.errors.uncorrected.volatile.dram": "2",
            "remapped_rows.pending": "Yes",
        },
        4: {"pcie.link.width.current": "8"},
        6: {"clocks_event_reasons.sw_power_cap": "Active", "power.draw": "699.80 W"},
        7: {"utilization.gpu": "0 %", "pcie.link.gen.current": "1", "pstate": "P8", "memory.used": "81000 MiB"},
    }
    plain = {
        "index": str(position),
        "pci.bus_id": f"0000{NVIDIA_8[position].upper()}",
        "uuid": smi_uuid(position),
        "temperature.gpu": str(34 + position),
        "utilization.gpu": f"{10 * position} %",
        "memory.used": f"{1000 * position} MiB",
        "power.draw": f"{70 + 10 * position}.00 W",
    }
    return plain | own.get(position, {})


def nvidia_8_answers() -> dict[str, Answer]:
    """nvidia-smi refuses all cards for the sake of the lost one, and answers for each of the others."""
    text = f"Unable to determine the device handle for GPU {NVIDIA_8[LOST].upper()}: GPU is lost.\n"
    refusal = CommandResult(("nvidia-smi",), 15, text.encode(), b"", 0.1, truncated=False)
    processes = "".join(f"{smi_uuid(n)}, {4000 + n}, /opt/train --card {n}, {n}000 MiB\n" for n in (1, 2, 3)).encode()
    answers = nvidia_smi_answers(refusal, processes)
    for position, address in enumerate(NVIDIA_8):
        if position != LOST:
            line = f"nvidia-smi -i {address} --query-gpu={','.join(FIELDS)} --format=csv"
            answers[line] = smi_table([_card(position)])
    return answers


AMD_8 = tuple(f"0000:{bus}:00.0" for bus in ("05", "26", "46", "65", "85", "a6", "c6", "e5"))


def write_amd(root: str, address: str, number: int, **more: str | float) -> None:
    """One card with the files of the amdgpu driver; ``more`` are files of its folder, ``hwmon_`` before those of its sensors."""
    write_gpu(root, address, vendor="0x1002", device_class="0x120000", driver="amdgpu")
    folder = f"/sys/bus/pci/devices/{address}"
    files: dict[str, str | float] = {
        "gpu_busy_percent": 10 * number,
        "mem_busy_percent": number,
        "mem_info_vram_total": 206_141_652_992,
        "mem_info_vram_used": 2_061_416_529 * number,
        "mem_info_gtt_total": 1_082_331_758_592,
        "mem_info_gtt_used": 17_825_792,
        "pcie_replay_count": 0,
        "vbios_version": "113-M3000100-102",
        "unique_id": f"{number:016x}",
        "product_name": "AMD Instinct MI300X",
        "current_compute_partition": "SPX",
        "current_memory_partition": "NPS1",
        "pp_dpm_sclk": "0: 500Mhz\n1: 132Mhz *\n2: 2100Mhz\n",
        "pp_dpm_mclk": "0: 900Mhz *\n1: 1300Mhz\n",
    }
    sensors: dict[str, str | float] = {
        "name": "amdgpu",
        "temp2_label": "junction",
        "temp2_input": 41_000 + 1000 * number,
        "temp2_crit": 100_000,
        "temp2_emergency": 105_000,
        "temp3_label": "mem",
        "temp3_input": 35_000,
        "power1_input": 140_000_000 + 1_000_000 * number,
        "power1_cap": 750_000_000,
        "power1_cap_default": 750_000_000,
        "freq1_input": 132_000_000,
        "freq2_input": 900_000_000,
    }
    for name, value in more.items():
        if name.startswith("hwmon_"):
            sensors[name.removeprefix("hwmon_")] = value
        else:
            files[name] = value
    write_all(root, folder, files)
    write_all(root, f"{folder}/hwmon/hwmon{number}", sensors)
    write_all(
        root,
        f"{folder}/ras",
        {"umc_err_count": "ue: 0\nce: 0\n", "gfx_err_count": "ue: 0\nce: 0\n", "features": "feature mask: 0x0"},
    )


def write_amd_8(root: str) -> None:
    """Eight cards; one is hot, one had memory errors, one tells a temperature that cannot be."""
    for number, address in enumerate(AMD_8):
        write_amd(root, address, number)
    write_amd(root, AMD_8[2], 2, hwmon_temp2_input=93_000)
    write_amd(root, AMD_8[6], 6, hwmon_temp2_input=2_112_000)
    write(root, f"/sys/bus/pci/devices/{AMD_8[4]}/ras/umc_err_count", "ue: 1\nce: 12\n")


def write_mixed(root: str) -> None:
    """One NVIDIA card and two of AMD in one machine."""
    write_gpu(root, NVIDIA_8[0], driver="nvidia")
    for number, address in enumerate(AMD_8[:2]):
        write_amd(root, address, number)


def mixed_answers() -> dict[str, Answer]:
    """nvidia-smi tells of its card; amd-smi is not installed, rocm-smi tells what the driver's files do not."""
    answers = nvidia_smi_answers(smi_table([_card(0)]))
    answers[ROCM_LINE] = smi_output("../amd-smi/mi100-rocm602.json").replace(b"0000:83:00.0", AMD_8[0].encode())
    return answers
