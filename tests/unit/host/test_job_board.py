"""The board: newest whole state, whatever the writer was doing."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.host.job_board import Board

SLOT = 256 * 1024


@pytest.fixture
def board() -> Iterator[Board]:
    made = Board.make()
    yield made
    made.close()
    made.close()


def test_newest_state(board: Board) -> None:
    assert board.read() == {}
    for number in range(5):
        board.write({"number": number, "long": "x" * (5000 - 1000 * number)})
        assert board.read() == {"number": number, "long": "x" * (5000 - 1000 * number)}


def test_half_written_state_is_not_seen(board: Board) -> None:
    board.write({"number": 1})
    board.write({"number": 2})
    os.pwrite(board.fd, b"\xff" * 20, 0)  # the second went into the first slot
    assert board.read() == {"number": 1}
    os.pwrite(board.fd, b"\xff" * 20, SLOT)
    assert board.read() == {}


def test_state_that_is_too_large(board: Board) -> None:
    board.write({"number": 1})
    with pytest.raises(ValueError, match="does not fit"):
        board.write({"text": "x" * SLOT})
    assert board.read() == {"number": 1}


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes(first: bytes, second: bytes) -> None:
    board = Board.make()
    board.write({"number": 1})
    os.pwrite(board.fd, first, 0)
    os.pwrite(board.fd, second, SLOT + 100)
    assert board.read() in ({"number": 1}, {})
    board.close()
