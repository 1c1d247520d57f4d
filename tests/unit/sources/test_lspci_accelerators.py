"""The accelerators that NPU Burn numbers its logical devices by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.sources import lspci_accelerators

_LINE = "{} Processing accelerators: Huawei Technologies Co., Ltd. Device d802 (rev 20)"


def test_sorted_addresses_are_logical_ids() -> None:
    raw = "\n".join([_LINE.format("0000:C1:00.0"), _LINE.format("0000:01:00.0"), ""]).encode()
    assert lspci_accelerators.parse(raw) == ("0000:01:00.0", "0000:c1:00.0")


@pytest.mark.parametrize(
    "line",
    [
        "0000:7d:00.0 Ethernet controller: Huawei Technologies Co., Ltd. Device a222",
        "0000:01:00.0 Processing accelerators: Huawei Technologies Co., Ltd. Ascend 910B",
        "01:00 Processing accelerators: Huawei Technologies Co., Ltd. Device d802",
        "lspci: Processing accelerators Device",
        "",
    ],
)
def test_what_npu_burn_would_not_count_is_not_counted(line: str) -> None:
    assert lspci_accelerators.parse(line.encode()) == ()


@given(st.binary(max_size=300))
def test_no_input_breaks_it(raw: bytes) -> None:
    assert isinstance(lspci_accelerators.parse(raw), tuple)
