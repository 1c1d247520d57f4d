"""Server-sent events, cut anywhere."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.bench.sse import SseOverflow, SseSplitter

_BYTES = st.lists(
    st.sampled_from(
        [b"data: a\n", b"data:b\r\n", b"\n", b"\r", b"\r\n", b": c\n", b"event: e\n", b"id: 1\n", b"data\n", b"x", b" "]
    ),
    max_size=30,
).map(b"".join)


def _all(pieces: list[bytes]) -> list[tuple[bytes, bytes]]:
    splitter = SseSplitter()
    return [event for piece in pieces for event in splitter.feed(piece)]


@pytest.mark.parametrize(
    ("raw", "events"),
    [
        (b"data: a\n\n", [(b"", b"a")]),
        (b"data:a\n\n", [(b"", b"a")]),
        (b"data:  a\n\n", [(b"", b" a")]),
        (b"data: a\r\n\r\n", [(b"", b"a")]),
        (b"data: a\r\r", [(b"", b"a")]),
        (b"data: a\ndata: b\n\n", [(b"", b"a\nb")]),
        (b"event: error\ndata: a\n\ndata: b\n\n", [(b"error", b"a"), (b"", b"b")]),
        (b"\xef\xbb\xbfdata: a\n\n", [(b"", b"a")]),
        (b": ping\n\ndata: a\n\n", [(b"", b"a")]),
        (b"data\n\n", [(b"", b"")]),
        (b"id: 7\nretry: 10\ndata: a\n\n", [(b"", b"a")]),
        (b"event: gone\n\ndata: a\n\n", [(b"", b"a")]),
        (b"data: a\xe2\x80\xa8b\x0bc\x0cd\xc2\x85e\n\n", [(b"", b"a\xe2\x80\xa8b\x0bc\x0cd\xc2\x85e")]),
        (b"data: a\n", []),
        (b"", []),
    ],
)
def test_events_by_the_standard(raw: bytes, events: list[tuple[bytes, bytes]]) -> None:
    assert _all([raw]) == events
    assert _all([raw[at : at + 1] for at in range(len(raw))]) == events


@given(_BYTES, st.lists(st.integers(0, 200), max_size=8))
def test_where_bytes_are_cut_changes_nothing(raw: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    pieces = [raw[start:end] for start, end in itertools.pairwise(places)]
    whole = _all([raw])
    assert _all(pieces) == whole
    assert _all([raw[at : at + 1] for at in range(len(raw))]) == whole


def test_an_event_that_lacks_only_its_empty_line_is_given_at_the_end() -> None:
    splitter = SseSplitter()
    assert splitter.feed(b"data: [DONE]") == []
    assert splitter.finish() == [(b"", b"[DONE]")]
    assert splitter.finish() == []
    short = SseSplitter()
    assert short.feed(b"\xef\xbb\xbfdata: a") == []
    assert short.finish() == [(b"", b"a")]


def test_a_line_end_that_was_cut_in_two_is_one() -> None:
    splitter = SseSplitter()
    assert splitter.feed(b"data: a\r") == []
    assert splitter.feed(b"\ndata: b\r") == []
    assert splitter.feed(b"\r") == [(b"", b"a\nb")]
    assert splitter.feed(b"data: c\n\n") == [(b"", b"c")]


def test_comments_are_counted() -> None:
    splitter = SseSplitter()
    splitter.feed(b": one\n\n: two\n\n")
    assert splitter.comments == 2


def test_an_event_of_ten_mebibytes_in_small_pieces() -> None:
    text = b"x" * (10 << 20)
    raw = b"data: " + text + b"\n\n"
    splitter = SseSplitter()
    events = [event for at in range(0, len(raw), 16384) for event in splitter.feed(raw[at : at + 16384])]
    assert events == [(b"", text)]


@pytest.mark.parametrize("raw", [b"data: " + b"x" * 100, b"data: 1234567\n" * 5])
def test_an_event_over_the_limit_is_refused(raw: bytes) -> None:
    splitter = SseSplitter(max_event_bytes=32)
    with pytest.raises(SseOverflow, match="larger than 32 bytes"):
        splitter.feed(raw)
