"""What a box should reach."""

import pytest

from nodeproof.stress.bounds import CpuFacts, compute_bound, fastest_flops, flops_per_cycle, memory_bound


def _amd(family: int, model: int, cores: int = 2) -> CpuFacts:
    flags = frozenset({"sse2", "avx", "fma", "avx512f"})
    return CpuFacts(cores=cores, vendor="AuthenticAMD", family=family, model=model, flags=flags)


@pytest.mark.parametrize(
    ("cpu", "low", "high"),
    [
        (_amd(0x17, 0x01), 8, 8),
        (_amd(0x17, 0x31), 16, 16),
        (_amd(0x19, 0x11), 16, 16),
        (_amd(0x1A, 0x02), 32, 32),
        (_amd(0x1B, 0x00), 16, 32),
        (CpuFacts(cores=1, vendor="AuthenticAMD", family=0x19, flags=frozenset({"fma", "avx"})), 16, 16),
        (CpuFacts(cores=1, vendor="GenuineIntel", flags=frozenset({"avx512f", "fma"})), 16, 32),
        (CpuFacts(cores=1, flags=frozenset({"avx", "sse2"})), 8, 8),
        (CpuFacts(cores=1, flags=frozenset({"sse2"})), 4, 4),
        (CpuFacts(cores=1, arm_parts=((0x48, 0xD01),), flags=frozenset({"asimd"})), 8, 8),
        (CpuFacts(cores=1, arm_parts=((0x41, 0xD40), (0x41, 0xD49))), 8, 16),
        (CpuFacts(cores=1, arm_parts=((0x41, 0xD40), (0x41, 0xFFF)), flags=frozenset({"asimd"})), 4, 16),
        (CpuFacts(cores=1, flags=frozenset({"asimd", "sve"})), 4, 32),
    ],
)
def test_operations_in_a_cycle(cpu: CpuFacts, low: int, high: int) -> None:
    width = flops_per_cycle(cpu)
    assert width is not None
    assert (width.low, width.high) == (low, high)


def test_an_unknown_processor_has_no_width_no_bound_and_no_limit() -> None:
    cpu = CpuFacts(cores=4, base_hz=2e9)
    assert flops_per_cycle(cpu) is None
    assert compute_bound(cpu).low is None
    assert compute_bound(cpu).reason == "the processor's vector instructions are not known"
    assert fastest_flops(cpu) is None


def test_two_sockets_of_zen_4_from_base_to_boost() -> None:
    cpu = CpuFacts(cores=176, vendor="AuthenticAMD", family=0x19, model=0x11, base_hz=2.4e9, highest_hz=3.1e9)
    bound = compute_bound(cpu)
    # 176 x 2.4 GHz x 16 = 6758 GFLOP/s, 176 x 3.1 GHz x 16 = 8730 GFLOP/s; the published run reached 8126.
    assert bound.low == pytest.approx(6758.4e9)
    assert bound.high == pytest.approx(8729.6e9)
    assert bound.reason.startswith("176 cores x 2.40 to 3.10 GHz x 16 operations a cycle (Zen 3 and Zen 4")


def test_a_range_of_widths_and_one_clock() -> None:
    cpu = CpuFacts(cores=2, flags=frozenset({"avx512f"}), highest_hz=3e9)
    bound = compute_bound(cpu)
    assert (bound.low, bound.high) == (96e9, 192e9)
    assert "16 to 32 operations" in bound.reason


def test_without_a_clock_or_in_a_virtual_machine_there_is_no_bound() -> None:
    assert "neither base clock" in compute_bound(_amd(0x19, 0x11)).reason
    guest = CpuFacts(cores=2, flags=frozenset({"fma"}), base_hz=2.6e9, virtual=True)
    assert compute_bound(guest).high is None
    assert "own history" in compute_bound(guest).reason


def test_the_rate_that_cannot_be_exceeded() -> None:
    guest = CpuFacts(cores=2, flags=frozenset({"fma"}), base_hz=2.596e9, virtual=True)
    # 2 cores x 2.596 GHz x 1.6 x 16.
    assert fastest_flops(guest) == pytest.approx(132.9152e9)
    assert fastest_flops(CpuFacts(cores=1, flags=frozenset({"fma"}))) == 96e9
    assert fastest_flops(CpuFacts(cores=1, flags=frozenset({"fma"}), highest_hz=5e9, base_hz=1e9)) == 80e9
    assert fastest_flops(CpuFacts(cores=1, flags=frozenset({"fma"}), highest_hz=9e9)) == 96e9


def test_sixteen_modules_of_ddr4_3200() -> None:
    bound = memory_bound([3200e6] * 16, channels=16)
    # 16 x 3200 MT/s x 8 bytes = 409.6 GB/s; published Triads of such a node: 330 to 363 GB/s.
    assert bound.low == pytest.approx(0.6 * 409.6e9)
    assert bound.high == pytest.approx(0.92 * 409.6e9)
    assert bound.reason.startswith("16 modules at 3200 MT/s x 8 bytes; STREAM reaches 60% to 92%")


def test_without_channels_two_modules_may_share_one_and_the_slowest_sets_the_rate() -> None:
    bound = memory_bound([4800e6, 4400e6, 4800e6])
    assert bound.low == pytest.approx(0.6 * 2 * 4400e6 * 8)
    assert bound.high == pytest.approx(0.92 * 3 * 4400e6 * 8)
    assert "one or two modules a channel" in bound.reason


def test_modules_that_do_not_say_their_speed_and_virtual_machines() -> None:
    assert memory_bound([0.0]).high is None
    assert "cannot be read" in memory_bound([]).reason
    assert "own history" in memory_bound([3200e6], virtual=True).reason
