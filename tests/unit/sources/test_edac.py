"""Files of EDAC."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.sources.edac import (
    CSROW_FILES,
    Controller,
    Dimm,
    is_csrow,
    is_dimm,
    parse_controller,
    parse_count,
    parse_csrow,
    parse_dimm,
)

_DIMM = {
    "dimm_label": b"CPU_SrcID#0_MC#0_Chan#1_DIMM#0\n",
    "dimm_location": b"channel 1 slot 0 \n",
    "size": b"32768\n",
    "dimm_mem_type": b"Registered-DDR4\n",
    "dimm_edac_mode": b"S4ECD4ED\n",
    "dimm_ce_count": b"37\n",
    "dimm_ue_count": b"1\n",
}


def test_a_module_of_today() -> None:
    assert parse_dimm("dimm3", _DIMM) == Dimm(
        "dimm3", "CPU_SrcID#0_MC#0_Chan#1_DIMM#0", "channel 1 slot 0", 32768, "Registered-DDR4", "S4ECD4ED", 37, 1
    )


def test_a_module_of_a_kernel_that_does_not_count_by_module() -> None:
    files = {name: raw for name, raw in _DIMM.items() if not name.endswith("_count")}
    module = parse_dimm("rank0", files)
    assert module.corrected is None
    assert module.uncorrected is None
    assert module.size_mib == 32768


def test_a_row_of_two_channels_counts_uncorrected_errors_for_both_and_so_for_neither() -> None:
    row = {
        "size_mb": b"8192\n",
        "mem_type": b"Unbuffered-DDR3\n",
        "edac_mode": b"SECDED\n",
        "ue_count": b"2\n",
        "ch0_ce_count": b"0\n",
        "ch0_dimm_label": b"A1\n",
        "ch1_ce_count": b"9\n",
        "ch1_dimm_label": b"B1\n",
    }
    assert parse_csrow("csrow2", row) == [
        Dimm("csrow2ch0", "A1", "csrow 2 channel 0", None, "Unbuffered-DDR3", "SECDED", 0, None),
        Dimm("csrow2ch1", "B1", "csrow 2 channel 1", None, "Unbuffered-DDR3", "SECDED", 9, None),
    ]


def test_a_row_of_one_channel_is_its_module() -> None:
    row = {"size_mb": b"4096\n", "ue_count": b"1\n", "ch0_ce_count": b"3\n", "ch0_dimm_label": b"\n"}
    assert parse_csrow("csrow0", row) == [Dimm("csrow0ch0", "", "csrow 0 channel 0", 4096, "", "", 3, 1)]


def test_a_row_without_channels_has_no_modules() -> None:
    assert parse_csrow("csrow0", {"size_mb": b"0\n"}) == []


def test_a_controller() -> None:
    files = {
        "mc_name": b"Skylake Socket#0 IMC#0\n",
        "size_mb": b"196608\n",
        "ce_noinfo_count": b"2\n",
        "ue_noinfo_count": b"0\n",
    }
    assert parse_controller(files) == Controller("Skylake Socket#0 IMC#0", 196608, 2, 0)
    assert parse_controller({}) == Controller("", None, None, None)


def test_a_size_no_machine_has_is_rejected() -> None:
    assert parse_controller({"size_mb": b"4294967295\n"}).size_mib is None


@pytest.mark.parametrize(
    ("raw", "count"), [(b"3\n", 3), (b"0", 0), (b"", None), (None, None), (b"-1\n", None), (b"x", None), (b"9" * 11, None)]
)
def test_counts(raw: bytes | None, count: int | None) -> None:
    assert parse_count(raw) == count


@pytest.mark.parametrize(
    ("name", "dimm", "row"),
    [
        ("dimm0", True, False),
        ("rank15", True, False),
        ("csrow3", False, True),
        ("dimm", False, False),
        ("dimm_x", False, False),
        ("csrow", False, False),
        ("power", False, False),
        ("mc_name", False, False),
    ],
)
def test_names_of_folders(name: str, dimm: bool, row: bool) -> None:  # noqa: FBT001 - a table of answers
    assert (is_dimm(name), is_csrow(name)) == (dimm, row)


_CONTENT = st.binary(max_size=40)


@given(st.dictionaries(st.sampled_from([*_DIMM, *CSROW_FILES, "mc_name", "ce_noinfo_count"]), _CONTENT))
def test_any_bytes_in_any_file_make_a_struct(files: dict[str, bytes]) -> None:
    module = parse_dimm("dimm0", files)
    rows = parse_csrow("csrow0", files)
    controller = parse_controller(files)
    for count in (module.corrected, module.uncorrected, controller.ce_noinfo, *(row.corrected for row in rows)):
        assert count is None or count >= 0
    assert "\n" not in module.label + module.location
