"""Finding the lines that matter."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.stress.parsers.lines import LINE_LIMIT, evidence, find_lines, matching_lines

_MIB = 1024 * 1024


def test_lines_are_found_in_their_order_numbered_and_without_their_rank() -> None:
    raw = b"begin\n[1,0]<stdout>:Copy: 1\n\n[0] Scale: 2\r3: Add: 3\nTRIAD: 4"
    found = find_lines(raw, (b"triad:", b"copy:", b"scale:", b"add:"))
    assert [(line.no, line.text) for line in found.lines] == [(2, "Copy: 1"), (4, "Scale: 2"), (4, "Add: 3"), (5, "TRIAD: 4")]
    assert found.lines[1].offset < found.lines[2].offset
    assert not found.cut


def test_a_line_with_two_markers_comes_once() -> None:
    assert [line.text for line in find_lines(b"Copy: and Scale:\n", (b"copy:", b"scale:")).lines] == ["Copy: and Scale:"]


def test_a_line_without_end_is_cut_around_its_marker() -> None:
    found = find_lines(b"x" * 5000 + b"copy:" + b"y" * 5000, (b"copy:",))
    assert found.lines[0].text == "x" * 1024 + "copy:" + "y" * 1024


def test_more_lines_than_are_kept_are_told() -> None:
    raw = b"copy: 1\n" * (LINE_LIMIT + 1)
    found = find_lines(raw, (b"copy:",))
    assert (len(found.lines), found.cut) == (LINE_LIMIT, True)
    matched = matching_lines(raw, re.compile(rb"copy: [0-9]"))
    assert (len(matched.lines), matched.cut) == (LINE_LIMIT, True)
    assert not find_lines(b"copy: 1\n" * LINE_LIMIT, (b"copy:",)).cut


def test_matching_lines_are_whole_lines() -> None:
    found = matching_lines(b"a 1 b\nc\nd 22 e\n", re.compile(rb"[0-9]{1,3}"))
    assert [(line.no, line.text) for line in found.lines] == [(1, "a 1 b"), (3, "d 22 e")]


def test_evidence_is_short() -> None:
    line = find_lines(b"  copy: " + b"z" * 900, (b"copy:",)).lines[0]
    shown = evidence(line, "stdout")
    assert shown.text == "copy: " + "z" * 293 + "\u2026"
    assert (shown.source, shown.line_no) == ("stdout", 1)


@pytest.mark.timeout(20)
def test_a_hundred_megabytes_are_searched_in_time_that_grows_with_them_and_no_faster() -> None:
    for noise in (b"\n", b"x", b"Column=000000384 Fraction= 0.1% Gflops=7.818e+03\n"):
        raw = noise * (100 * _MIB // len(noise)) + b"\nTriad: 5\n"
        assert [line.text for line in find_lines(raw, (b"triad:",)).lines] == ["Triad: 5"]


@given(st.binary(max_size=300), st.sampled_from([b"a", b"ab", b":"]))
def test_every_line_with_the_marker_is_there(raw: bytes, marker: bytes) -> None:
    whole = [line for line in re.split(rb"[\r\n]", raw) if marker in line.lower()]
    assert len(find_lines(raw, (marker,)).lines) == len(whole)
