"""Netlink's list of sockets."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.inet_diag import parse


def message(state: int, *, kind: int = 20, attributes: bytes = b"") -> bytes:
    """One socket: header, 72 bytes of inet_diag_msg whose second byte is the state, attributes."""
    body = bytes([2, state]) + bytes(70) + attributes
    padding = b"\0" * (-len(body) % 4)
    return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body + padding


END = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)


def test_sockets_are_counted_by_state() -> None:
    raw = message(1) + message(6, attributes=b"\1\2\3\4\5") + message(6) + message(10) + message(12) + message(3) + END
    assert parse(raw) == {"ESTABLISHED": 1, "TIME_WAIT": 2, "LISTEN": 1, "SYN_RECV": 2}
    assert parse(END) == {}


def test_what_is_no_socket_and_a_state_of_the_future_are_passed_over() -> None:
    assert parse(message(1, kind=7) + message(99) + message(8) + END) == {"CLOSE_WAIT": 1}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        message(1),
        struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -2) + bytes(16),
        struct.pack("=IHHII", 0, 20, 0, 1, 0),
        message(1)[:40],
        b"\0" * 15,
    ],
    ids=["nothing", "no end", "an error", "a length of 0", "cut short", "less than a header"],
)
def test_an_answer_without_its_end_is_none(raw: bytes) -> None:
    with pytest.raises(ParseError, match="sock_diag"):
        parse(raw)


@given(st.binary(max_size=400))
def test_any_bytes_are_counts_or_an_error(raw: bytes) -> None:
    try:
        counts = parse(raw)
    except ParseError:
        return
    assert all(count > 0 for count in counts.values())


@given(st.lists(st.integers(1, 12), max_size=50))
def test_every_socket_counts_once(states: list[int]) -> None:
    assert sum(parse(b"".join(map(message, states)) + END).values()) == len(states)
