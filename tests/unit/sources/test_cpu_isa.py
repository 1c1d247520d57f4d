"""Vector instructions in ``/proc/cpuinfo``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.cpu_isa import parse

_X86 = b"""processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC 9654 96-Core Processor
cpu MHz\t\t: 2596.090
flags\t\t: fpu sse2 avx avx2 fma avx512f

processor\t: 1
cpu family\t: 99
cpu MHz\t\t: 1500.000
flags\t\t: fpu
"""
_ARM = b"""processor\t: 0
Features\t: fp asimd sve
CPU implementer\t: 0x41
CPU part\t: 0xd40

processor\t: 1
Features\t: fp asimd
CPU implementer\t: 0x41
CPU part\t: 0xd05
"""


def test_the_first_x86_processor() -> None:
    isa = parse(_X86)
    assert isa.flags == {"fpu", "sse2", "avx", "avx2", "fma", "avx512f"}
    assert (isa.vendor, isa.family, isa.model, isa.mhz) == ("AuthenticAMD", 25, 17, 2596.09)
    assert isa.arm_parts == ()


def test_every_part_of_an_arm_machine() -> None:
    isa = parse(_ARM)
    assert isa.flags == {"fp", "asimd", "sve"}
    assert isa.arm_parts == ((0x41, 0xD40), (0x41, 0xD05))
    assert (isa.vendor, isa.family, isa.mhz) == ("", None, None)


@pytest.mark.parametrize("value", [b"0", b"-5", b"nan", b"1.2.3", b"99999", "\u0663".encode(), b""])
def test_an_implausible_clock_is_none(value: bytes) -> None:
    assert parse(b"cpu MHz : " + value).mhz is None


@pytest.mark.parametrize("value", [b"0xzz", b"seven", b"-1", b"", b"9" * 30])
def test_a_family_that_is_no_number_is_none(value: bytes) -> None:
    isa = parse(b"cpu family : " + value + b"\nCPU implementer : " + value + b"\nCPU part : 0x1\n")
    assert (isa.family, isa.arm_parts) == (None, ())


def test_text_without_a_colon_is_an_error_that_names_the_file() -> None:
    with pytest.raises(ParseError) as raised:
        parse(b"nothing here\n")
    assert raised.value.source == "/proc/cpuinfo"


@given(st.binary(max_size=300))
def test_any_bytes_parse_or_raise_parse_error(raw: bytes) -> None:
    try:
        isa = parse(raw)
    except ParseError:
        return
    assert isa.mhz is None or 0 < isa.mhz < 20000
