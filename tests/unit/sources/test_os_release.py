"""/etc/os-release."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.os_release import parse


def test_debian() -> None:
    raw = b'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n# comment\n\nlower=x\n'
    assert parse(raw) == {"PRETTY_NAME": "Debian GNU/Linux 12 (bookworm)", "VERSION_ID": "12", "ID": "debian"}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (rb'A="say \"x\" for \$5 \\ \`"', 'say "x" for $5 \\ `'),
        (rb"A='it \n'", r"it \n"),
        (b'A="', '"'),
        (b"A=", ""),
        (b'  A="Kylin V10 (\xe9)"  ', "Kylin V10 (\ufffd)"),
        (b'A="' + b"x" * 500 + b'"', "x" * 200),
    ],
)
def test_quoting(line: bytes, value: str) -> None:
    assert parse(line) == {"A": value}


@pytest.mark.parametrize("raw", [b"", b"no assignment", b"\x00\xff"])
def test_nothing_usable(raw: bytes) -> None:
    with pytest.raises(ParseError, match="os-release"):
        parse(raw)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_only_raise_parse_errors(raw: bytes) -> None:
    try:
        assert all(len(value) <= 200 for value in parse(raw).values())
    except ParseError:
        return
