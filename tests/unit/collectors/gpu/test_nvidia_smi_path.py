"""Component gpu where only nvidia-smi can be asked."""

from pathlib import Path

import pytest

from nodeproof.errors import Absence, CommandError, CommandFailure
from nodeproof.host.commands import CommandResult
from nodeproof.sources.nvidia_smi_cards import FIELDS
from support.gpu import H100, QUERY_LINE, nvidia_smi_answers, smi_output, smi_table, smi_uuid, write_gpu
from support.gpu_host import GpuHost, value
from support.network import missing_of, readings

_ADDRESSES = ("0000:0b:00.0", "0000:0c:00.0", "0000:0d:00.0", "0000:0e:00.0")


def _row(position: int, **more: str) -> dict[str, str]:
    bus = f"0000{_ADDRESSES[position].upper()}"
    return {"index": str(position), "pci.bus_id": bus, "uuid": smi_uuid(position), **more}


def _bus(root: Path, count: int = 4) -> None:
    for address in _ADDRESSES[:count]:
        write_gpu(str(root), address)


def test_every_card_is_read_under_its_own_number(tmp_path: Path) -> None:
    _bus(tmp_path)
    table = smi_table([_row(number, **{"temperature.gpu": str(40 + number)}) for number in range(4)])
    apps = f"{smi_uuid(1)}, 4242, python3, 1024 MiB\n{smi_uuid(1)}, 4243, [Not Found], [N/A]\n".encode()
    host = GpuHost(tmp_path, nvidia_smi_answers(table, apps))
    batch = host.collect()
    assert readings(batch, "temperature") == {("0",): 40, ("1",): 41, ("2",): 42, ("3",): 43}
    assert readings(batch, "cards") == {("nvidia", "expected"): 4, ("nvidia", "answering"): 4}
    assert readings(batch, "driver_up") == {("nvidia",): 1}
    assert set(readings(batch, "card_state").values()) == {0}
    assert value(batch, "memory_detail", "2", "total") == 81559
    assert readings(batch, "processes") == {("0",): 0, ("1",): 2, ("2",): 0, ("3",): 0}
    assert value(batch, "process_memory", "1", "4242", "python3") == 1024
    info = next(metric for metric in batch.metrics if metric.name == "device_info" and (metric.labels or {})["gpu_id"] == "3")
    assert info.labels == {
        "gpu_id": "3",
        "vendor": "nvidia",
        "pci_bus_id": "0000:0e:00.0",
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": smi_uuid(3),
        "driver": "590.48.01",
        "vbios": "96.00.A5.00.01",
    }
    assert [(entry.labels, entry.state) for entry in missing_of(batch, "fan_speed")] == [(None, Absence.NOT_APPLICABLE)]


def test_case_03_a_card_that_must_be_reset_is_that_cards_matter(tmp_path: Path) -> None:
    _bus(tmp_path, 2)
    sick = _row(
        0, **{"temperature.gpu": "[GPU requires reset]", "utilization.gpu": "[GPU requires reset]", "memory.used": "0 MiB"}
    )
    host = GpuHost(tmp_path, nvidia_smi_answers(smi_table([sick, _row(1)])))
    batch = host.collect()
    assert readings(batch, "card_state") == {("0",): 2, ("1",): 0}
    assert readings(batch, "temperature") == {("1",): 59}
    assert missing_of(batch, "temperature")[0].labels == {"gpu_id": "0"}
    assert missing_of(batch, "temperature")[0].state is Absence.READ_ERROR
    assert readings(batch, "cards") == {("nvidia", "expected"): 2, ("nvidia", "answering"): 1}


def _lost_answers() -> dict[str, bytes | CommandResult | CommandError]:
    refusal = CommandResult(
        ("nvidia-smi",),
        15,
        b"Unable to determine the device handle for GPU 0000:0C:00.0: Unknown Error\n",
        b"",
        0.1,
        truncated=False,
    )
    answers = dict(nvidia_smi_answers(refusal))
    for position, index in ((0, "0"), (2, "2"), (3, "3")):
        line = f"nvidia-smi -i {_ADDRESSES[position]} --query-gpu={','.join(FIELDS)} --format=csv"
        answers[line] = smi_table([{**_row(position), "index": index, "temperature.gpu": str(41 + position)}])
    return answers


def test_case_05_one_lost_card_hides_no_other(tmp_path: Path) -> None:
    _bus(tmp_path)
    host = GpuHost(tmp_path, _lost_answers())
    batch = host.collect()
    assert readings(batch, "temperature") == {("0",): 41, ("2",): 43, ("3",): 44}
    assert readings(batch, "card_state") == {("0",): 0, ("1",): 3, ("2",): 0, ("3",): 0}
    assert readings(batch, "cards") == {("nvidia", "expected"): 4, ("nvidia", "answering"): 3}
    lost = missing_of(batch, "temperature")
    assert [(entry.labels, entry.state, entry.reason) for entry in lost] == [
        ({"gpu_id": "1"}, Absence.READ_ERROR, "it is lost: Unknown Error")
    ]


def test_a_card_that_does_not_answer_its_own_call_is_silent_and_hides_no_other(tmp_path: Path) -> None:
    _bus(tmp_path)
    answers = _lost_answers()
    line = f"nvidia-smi -i {_ADDRESSES[2]} --query-gpu={','.join(FIELDS)} --format=csv"
    answers[line] = CommandError("nvidia-smi", CommandFailure.TIMED_OUT, "gave no answer in 10 s and was ended")
    batch = GpuHost(tmp_path, answers).collect()
    assert readings(batch, "card_state") == {("0",): 0, ("1",): 3, ("2",): 1, ("3",): 0}
    assert missing_of(batch, "temperature")[1].state is Absence.STALE


def test_numbers_that_shift_after_a_loss_change_no_cards_name(tmp_path: Path) -> None:
    _bus(tmp_path)
    host = GpuHost(tmp_path, nvidia_smi_answers(smi_table([_row(n, **{"temperature.gpu": str(40 + n)}) for n in range(4)])))
    host.collect()
    left = [{**_row(n), "index": str(index), "temperature.gpu": str(50 + n)} for index, n in enumerate((0, 2, 3))]
    host.commands.answers[QUERY_LINE] = smi_table(left)
    batch = host.collect()
    assert readings(batch, "temperature") == {("0",): 50, ("2",): 52, ("3",): 53}
    assert readings(batch, "card_state") == {("0",): 0, ("1",): 3, ("2",): 0, ("3",): 0}
    assert "does not list it" in missing_of(batch, "temperature")[0].reason


def test_a_loss_before_the_start_is_seen_on_the_bus_and_numbers_follow_the_bus(tmp_path: Path) -> None:
    _bus(tmp_path)
    table = smi_table([{**_row(n), "index": str(index), "temperature.gpu": str(50 + n)} for index, n in enumerate((0, 2, 3))])
    batch = GpuHost(tmp_path, nvidia_smi_answers(table)).collect()
    assert readings(batch, "temperature") == {("0",): 50, ("2",): 52, ("3",): 53}
    assert readings(batch, "card_state") == {("0",): 0, ("1",): 3, ("2",): 0, ("3",): 0}


def test_in_a_container_cards_of_the_host_that_it_was_not_given_are_not_lost(tmp_path: Path) -> None:
    _bus(tmp_path)
    (tmp_path / "run/systemd").mkdir(parents=True)
    (tmp_path / ".dockerenv").write_text("")
    batch = GpuHost(tmp_path, nvidia_smi_answers(smi_table([_row(1), _row(2)]))).collect()
    assert readings(batch, "cards") == {("nvidia", "expected"): 2, ("nvidia", "answering"): 2}


def test_a_card_handed_to_a_virtual_machine_is_not_lost(tmp_path: Path) -> None:
    write_gpu(str(tmp_path), _ADDRESSES[0], driver="nvidia")
    write_gpu(str(tmp_path), _ADDRESSES[1], driver="vfio-pci")
    batch = GpuHost(tmp_path, nvidia_smi_answers(smi_table([_row(0)]))).collect()
    assert readings(batch, "cards") == {("nvidia", "expected"): 1, ("nvidia", "answering"): 1}
    assert readings(batch, "device_count") == {("nvidia",): 2}


def test_case_12_a_driver_upgraded_under_a_running_kernel_is_unknown_and_heals(tmp_path: Path) -> None:
    _bus(tmp_path, 2)
    mismatch = CommandResult(
        ("nvidia-smi",), 18, smi_output("case-12-nvsmi-unparseable-not-available.txt"), b"", 0.1, truncated=False
    )
    host = GpuHost(tmp_path, nvidia_smi_answers(mismatch))
    batch = host.collect()
    assert not readings(batch, "temperature")
    (absence,) = missing_of(batch, "temperature")
    assert absence.state is Absence.UNKNOWN
    assert "Driver/library version mismatch" in absence.reason
    assert "modprobe" in absence.remedy
    assert [entry.state for entry in missing_of(batch, "driver_up")] == [Absence.UNKNOWN]
    assert readings(batch, "cards") == {("nvidia", "expected"): 2, ("nvidia", "answering"): 0}
    host.commands.answers[QUERY_LINE] = smi_table([_row(0), _row(1)])
    assert readings(host.collect(), "temperature") == {("0",): 59, ("1",): 59}


def test_case_28_idle_links_are_no_fault_and_working_ones_are(tmp_path: Path) -> None:
    links = ((0, "P8", 0, 1, 4, 16), (1, "P0", 100, 2, 5, 16), (2, "P0", 99, 5, 5, 8), (3, "P0", 100, 5, 5, 16))
    _bus(tmp_path)
    rows = [
        _row(
            number,
            **{
                "pstate": state,
                "utilization.gpu": f"{load} %",
                "pcie.link.gen.current": str(now),
                "pcie.link.gen.max": str(most),
                "pcie.link.width.current": str(lanes),
                "pcie.link.width.max": "16",
            },
        )
        for number, state, load, now, most, lanes in links
    ]
    batch = GpuHost(tmp_path, nvidia_smi_answers(smi_table(rows))).collect()
    assert readings(batch, "pcie_degraded") == {
        ("0", "width"): 0,
        ("1", "width"): 0,
        ("2", "width"): 1,
        ("3", "width"): 0,
        ("1", "generation"): 1,
        ("2", "generation"): 0,
        ("3", "generation"): 0,
    }
    (idle,) = missing_of(batch, "pcie_degraded")
    assert (idle.labels, idle.state) == ({"gpu_id": "0", "aspect": "generation"}, Absence.NOT_APPLICABLE)


@pytest.mark.parametrize(
    ("answer", "state", "part"),
    [
        (b"No devices were found\n", Absence.UNKNOWN, "finds no card"),
        (b"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", Absence.READ_ERROR, "has failed"),
        (b"", Absence.READ_ERROR, "printed nothing"),
        (CommandError("nvidia-smi", CommandFailure.TIMED_OUT, "gave no answer in 30 s"), Absence.READ_ERROR, "no answer in 30 s"),
    ],
)
def test_a_driver_that_fails_is_told_and_nothing_looks_healthy(
    tmp_path: Path, answer: bytes | CommandError, state: Absence, part: str
) -> None:
    _bus(tmp_path, 1)
    batch = GpuHost(tmp_path, nvidia_smi_answers(answer)).collect()
    (absence,) = missing_of(batch, "temperature")
    assert (absence.state, part in absence.reason) == (Absence.UNKNOWN, True)
    up = readings(batch, "driver_up")
    assert up == ({("nvidia",): 0} if state is Absence.READ_ERROR else {})


def test_without_nvidia_smi_the_bus_still_tells_of_the_links(tmp_path: Path) -> None:
    write_gpu(str(tmp_path), _ADDRESSES[0], link=("16.0 GT/s PCIe", "32.0 GT/s PCIe", "8", "16"))
    write_gpu(str(tmp_path), _ADDRESSES[1], link=("Unknown", "99 GT/s PCIe", "0", "x"))
    batch = GpuHost(tmp_path).collect()
    assert readings(batch, "pcie_generation") == {("0",): 4}
    assert readings(batch, "pcie_width") == {("0",): 8}
    assert missing_of(batch, "temperature")[0].reason == "nvidia-smi is not installed"
    assert [entry.state for entry in missing_of(batch, "driver_up")] == [Absence.UNSUPPORTED]
    assert {entry.state for entry in missing_of(batch, "card_state")} == {Absence.UNKNOWN}


def test_a_field_that_this_version_does_not_know_is_left_out(tmp_path: Path) -> None:
    _bus(tmp_path, 1)
    older = tuple(
        field.replace("clocks_event_reasons.", "clocks_throttle_reasons.") for field in FIELDS if "counters" not in field
    )
    host = GpuHost(tmp_path, nvidia_smi_answers(smi_table([_row(0)]), known=older))
    assert readings(host.collect(), "temperature") == {("0",): 59}
    assert host.commands.asked[1] == f"nvidia-smi --query-gpu={','.join(older)} --format=csv"


def test_a_field_that_is_refused_is_dropped_and_the_rest_asked_again(tmp_path: Path) -> None:
    _bus(tmp_path, 1)
    refusal = b'Field "fabric.state" is not a valid field to query.\n'
    answers = dict(nvidia_smi_answers(refusal))
    fields = ",".join(field for field in FIELDS if field != "fabric.state")
    answers[f"nvidia-smi --query-gpu={fields} --format=csv"] = smi_table([_row(0)])
    answers["nvidia-smi --help-query-gpu"] = b"no list\n"
    assert readings(GpuHost(tmp_path, answers).collect(), "temperature") == {("0",): 59}


def test_processes_that_cannot_be_listed_are_not_none(tmp_path: Path) -> None:
    _bus(tmp_path, 1)
    for answer in (
        CommandResult(("nvidia-smi",), 4, b"", b"denied", 0.1, truncated=False),
        CommandError("nvidia-smi", CommandFailure.TIMED_OUT, "gave no answer"),
    ):
        batch = GpuHost(tmp_path, nvidia_smi_answers(smi_table([_row(0)], H100), answer)).collect()
        assert not readings(batch, "processes")
        assert missing_of(batch, "processes")[0].state is Absence.UNSUPPORTED
    idle = GpuHost(tmp_path, nvidia_smi_answers(smi_table([_row(0)]))).collect()
    assert readings(idle, "processes") == {("0",): 0}
    assert missing_of(idle, "process_memory")[0].reason == "no process runs on it"


def test_where_there_is_no_table_the_document_is_read(tmp_path: Path) -> None:
    write_gpu(str(tmp_path), "0000:01:00.0")
    answers = dict(nvidia_smi_answers(b"Invalid combination of input arguments.\n"))
    answers["nvidia-smi -q -x"] = smi_output("a100-v12.xml")
    assert readings(GpuHost(tmp_path, answers).collect(), "temperature") == {("0",): 27}
