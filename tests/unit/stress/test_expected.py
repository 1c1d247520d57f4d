"""What a box should reach, read off a fixture host whose figures are worked out here."""

from pathlib import Path

import pytest

from nodeproof.host.machine import Machine
from nodeproof.stress.bounds import Range
from nodeproof.stress.expected import cpu_facts, expected_range, fastest_rate, judge_range
from nodeproof.stress.sizing import BoxFacts

CPUINFO = """\
processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 1
model name\t: AMD EPYC 7763 64-Core Processor
cpu MHz\t\t: 2450.000
flags\t\t: fpu sse2 avx avx2 fma{extra}
"""


def host(folder: Path, extra: str = "") -> Machine:
    """Two threads a core, 2.45 GHz base, 3.5 GHz boost."""
    (folder / "proc").mkdir(parents=True)
    (folder / "proc/cpuinfo").write_text(CPUINFO.format(extra=extra))
    cpu = folder / "sys/devices/system/cpu/cpu0"
    (cpu / "topology").mkdir(parents=True)
    (cpu / "topology/thread_siblings_list").write_text("0,64\n")
    (cpu / "cpufreq").mkdir()
    (cpu / "cpufreq/cpuinfo_max_freq").write_text("3500000\n")
    return Machine.here(str(folder))


def test_hpl_is_bounded_by_cores_clock_and_width(tmp_path: Path) -> None:
    """8 threads are 4 cores; Zen 3 does 16 operations a cycle: 4 x 2.45 x 16 = 156.8, 4 x 3.5 x 16 = 224 GFLOP/s."""
    found = expected_range(host(tmp_path), "hpl", 8)
    assert found is not None
    assert found.low == pytest.approx(156.8)
    assert found.high == pytest.approx(224.0)


def test_in_a_virtual_machine_there_is_no_bound_and_a_reason(tmp_path: Path) -> None:
    machine = host(tmp_path, " hypervisor")
    for name in ("hpl", "stream"):
        found = expected_range(machine, name, 8)
        assert found is not None
        assert found.low is None
        assert "virtual machine" in found.reason
    assert expected_range(machine, "hpcg", 8) is None


def test_without_memory_modules_there_is_no_bound_for_stream(tmp_path: Path) -> None:
    found = expected_range(host(tmp_path), "stream", 8)
    assert found is not None
    assert found.high is None


def test_a_box_that_tells_nothing_has_facts_of_nothing(tmp_path: Path) -> None:
    machine = Machine.here(str(tmp_path))
    assert cpu_facts(machine, 3).cores == 3
    assert fastest_rate(machine, BoxFacts(allowed_cpus=3, memory_available_bytes=1)) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [(300.0, "300 is more than the box can reach, 150 to 250"), (75.0, "75 is 50% of the least"), (200.0, "is within")],
)
def test_a_value_against_its_range(value: float, said: str) -> None:
    assert said in judge_range(value, Range(low=150.0, high=250.0, reason="r"))
    assert judge_range(value, Range(low=None, high=None, reason="r")) == "no expectation: r"
