"""What is printed for programs, and tables for people: nothing in it can steer a terminal."""

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.cli.output import print_json, print_json_lines, print_text
from nodeproof.cli.table import print_table, printable, printable_lines


def shown(value: object, indent: int = 0) -> str:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    old, sys.stdout = sys.stdout, stream
    try:
        print_json(value, indent=indent)
        stream.flush()
    finally:
        sys.stdout = old
    return buffer.getvalue().decode("utf-8")


@given(st.dictionaries(st.text(), st.text(st.characters(exclude_categories=["Cs"]))), st.sampled_from([0, 2]))
def test_json_means_the_same_and_shows_only_printable_characters(value: dict[str, str], indent: int) -> None:
    text = shown(value, indent)
    assert json.loads(text) == value
    assert all(char.isprintable() or char == "\n" for char in text)
    assert text.endswith("\n")


def test_what_steers_a_terminal_is_escaped() -> None:
    assert (
        shown({"fan": "a\x1b[2J\x7f\x9b1m\u202eä\U000e0001"}) == '{"fan":"a\\u001b[2J\\u007f\\u009b1m\\u202eä\\udb40\\udc01"}\n'
    )


def test_lines_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_json_lines([{"a": 1}, {"b": "\n"}])
    print_text("# HELP x ü\n")
    assert capsys.readouterr().out == '{"a":1}\n{"b":"\\n"}\n# HELP x ü\n'


def test_a_stream_of_text_alone_is_good_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    print_json([1])
    assert stream.getvalue() == "[1]\n"


def test_printable_bounds_and_replaces() -> None:
    assert printable("a\tb\x00") == "a\ufffdb\ufffd"
    assert printable("x" * 300) == "x" * 199 + "…"
    assert printable("x" * 300, 10) == "x" * 9 + "…"
    assert printable_lines("a\x1b\nb\r" + "c" * 300) == "a\ufffd\nb\ufffd" + "c" * 300


def test_a_plain_table_lines_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("Name", "Value"), [("a", "1.00"), ("long\nname", "12.50")], right=(1,))
    assert capsys.readouterr().out.splitlines() == ["Name       Value", "a           1.00", "long\ufffdname  12.50"]


def test_a_table_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("Name", "Value"), [])
    assert capsys.readouterr().out == "Name  Value\n"


def test_a_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    print_table(("Name",), [("[red]fan[/red] \x1b]0;owned\x07",)])
    text = stream.getvalue()
    assert "[red]fan[/red] \ufffd]0;owned\ufffd" in text
    assert "\x1b]" not in text
