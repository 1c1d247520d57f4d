import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_cpuinfo import arm_name, parse

_X86 = b"""processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 1
model name	: AMD EPYC 7763 64-Core Processor
microcode	: 0xa0011d5
cpu MHz		: 2445.400
cache size	: 512 KB
cpu cores	: 64
flags		: fpu vme topoext hypervisor

processor	: 1
vendor_id	: AuthenticAMD
model name	: AMD EPYC 7763 64-Core Processor
microcode	: 0xa0011ce
cpu cores	: 64
flags		: fpu vme topoext hypervisor

"""
_ARM = b"""processor	: 0
BogoMIPS	: 200.00
Features	: fp asimd
CPU implementer	: 0x41
CPU part	: 0xd03

processor	: 1
CPU implementer	: 0x41
CPU part	: 0xd08
"""


def test_x86() -> None:
    info = parse(_X86)
    assert info == (
        "x86_64",
        2,
        "AuthenticAMD",
        "AMD EPYC 7763 64-Core Processor",
        64,
        "512 KB",
        True,
        ("0xa0011d5", "0xa0011ce"),  # the second processor missed an update
        (),
    )


def test_a_processor_without_the_hypervisor_flag_is_no_guest() -> None:
    assert parse(_X86.replace(b" hypervisor", b"")).hypervisor is False


def test_arm64_has_no_model_name_and_no_word_on_hypervisors() -> None:
    info = parse(_ARM)
    assert (info.architecture, info.model_name, info.vendor) == ("aarch64", "Arm Cortex-A53 + Arm Cortex-A72", "Arm")
    assert (info.hypervisor, info.arm_parts, info.cores_per_socket) == (None, ((0x41, 0xD03), (0x41, 0xD08)), None)


@pytest.mark.parametrize(
    ("implementer", "part", "name"),
    [
        (0x48, 0xD01, "HiSilicon TSV110 (Kunpeng 920)"),
        (0x41, 0xD4F, "Arm Neoverse-V2"),
        (0x48, 0xFFF, "HiSilicon part 0xfff"),
        (0x99, 0x001, "implementer 0x99 part 0x001"),
    ],
)
def test_arm_names(implementer: int, part: int, name: str) -> None:
    assert arm_name(implementer, part) == name


@pytest.mark.parametrize(
    ("raw", "architecture", "model"),
    [
        (
            b"processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800MHz\n\ntimebase\t: 512000000\n",
            "ppc64le",
            "POWER9, altivec supported",
        ),
        (b"vendor_id       : IBM/S390\nmax thread id   : 0\nprocessor 0: version = 00,  identification = 0123\n", "s390x", ""),
        (b"processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc\nuarch\t\t: sifive,u74-mc\n", "riscv64", "sifive,u74-mc"),
        (b"something: else\n", "", ""),
    ],
)
def test_other_architectures(raw: bytes, architecture: str, model: str) -> None:
    info = parse(raw)
    assert (info.architecture, info.model_name) == (architecture, model)


def test_damaged_numbers_are_left_out() -> None:
    info = parse(b"cpu cores\t: 64x\nCPU implementer\t: 0xzz\nCPU part\t: 0xd01\n")
    assert (info.cores_per_socket, info.arm_parts) == (None, ())
    assert parse(b"cpu cores\t: 0\n").cores_per_socket is None
    assert parse(b"CPU implementer\t: 0x48\nCPU part\t: nothing\n").arm_parts == ()


def test_localised_lscpu_text_is_no_cpuinfo_and_gives_no_numbers() -> None:
    """cases/monitor/56: we never run lscpu; were its French output to arrive here, nothing would be made of it."""
    text = "Architecture :  x86_64\nProcesseur(s) :  4\nCœur(s) par socket :  4\n"
    info = parse(text.encode())
    assert (info.architecture, info.processors, info.model_name, info.cores_per_socket) == ("", 0, "", None)


def test_text_without_a_colon_is_an_error() -> None:
    with pytest.raises(ParseError, match="name : value"):
        parse(b"\x00\x01\x02")


_LINES = st.sampled_from(
    [
        b"processor\t: 0\n",
        b"microcode\t: 0x1\n",
        b"cpu cores : 9",
        b"CPU implementer : 0x48\n",
        b"CPU part : 0xd01\n",
        b"\n",
        b"flags :",
    ]
)


@given(st.binary(max_size=300) | st.lists(_LINES | st.binary(max_size=5), max_size=12).map(b"".join))
def test_any_bytes_give_an_answer_or_a_parse_error(raw: bytes) -> None:
    try:
        info = parse(raw)
    except ParseError:
        return
    assert info.processors >= 0


@given(st.integers(1, 300))
def test_every_processor_is_counted(count: int) -> None:
    assert parse(b"".join(b"processor\t: %d\nflags\t: fpu\n\n" % number for number in range(count))).processors == count
