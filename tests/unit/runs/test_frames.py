"""Whatever a plug-in hands over, the record stays readable."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import RunError
from nodeproof.model.run import Cell, CellStyle, Column, Frame, ResultTable, RunStatus, Stat, Verdict, VerdictKind
from nodeproof.runs.frames import default_verdict, error_chain, plain_text, sound_frame


def test_a_sound_frame_stays_what_it_is() -> None:
    table = ResultTable("T", (Column("c"),), ((Cell("1", CellStyle.GOOD),),))
    frame = Frame(status=RunStatus.COMPLETED, phase="done", table=table, summary=(Stat("a", "1"),), metrics={"a": 1.0})
    assert sound_frame(frame) == (frame, ())


def test_lists_become_what_a_reader_gets() -> None:
    frame = Frame(status=RunStatus.COMPLETED, phase="done", summary=[Stat("a", "1")])  # type: ignore[arg-type]  # plug-ins do
    sound = sound_frame(frame).frame
    assert sound.summary == (Stat("a", "1"),)
    assert msgspec.json.decode(msgspec.json.encode(sound), type=Frame) == sound


def test_undecodable_names_are_made_writable() -> None:
    frame = Frame(
        status=RunStatus.COMPLETED, phase="done \udcff", metrics={"a\udcff": 1.0}, verdict=Verdict(VerdictKind.INFO, "\ud800")
    )
    sound = sound_frame(frame).frame
    assert (sound.phase, sound.metrics) == ("done ?", {"a?": 1.0})
    assert msgspec.json.decode(msgspec.json.encode(sound), type=Frame) == sound


@pytest.mark.parametrize(
    "change",
    [
        {"phase": 1},
        {"status": "odd"},
        {"metrics": None},
        {"metrics": {"a": "1"}},
        {"metrics": [1]},
        {"table": object()},
        {"summary": 3},
        {"progress": (1, 2, 3)},
        {"log": [{}]},
    ],
)
def test_fields_of_another_kind_are_refused(change: dict[str, object]) -> None:
    frame = msgspec.structs.replace(Frame(status=RunStatus.RUNNING, phase="x"), **change)
    with pytest.raises(RunError, match=r"next\(\) returned a frame that cannot be kept: "):
        sound_frame(frame)


@given(st.text(), st.dictionaries(st.text(max_size=5), st.floats(), max_size=5))
def test_every_frame_that_is_taken_can_be_read_back(phase: str, metrics: dict[str, float]) -> None:
    sound, warnings = sound_frame(Frame(status=RunStatus.COMPLETED, phase=phase, metrics=metrics))
    assert msgspec.json.decode(msgspec.json.encode(sound), type=Frame) == sound
    assert len(sound.metrics) + len(warnings) == len(metrics)


def test_default_verdicts() -> None:
    assert default_verdict(Frame(status=RunStatus.COMPLETED, phase="x")).kind is VerdictKind.INFO
    assert default_verdict(Frame(status=RunStatus.CRASHED, phase="x")).reason == "the run ended as crashed"


class Mute(Exception):  # noqa: N818 - it is one that cannot speak
    """An error whose text is an error."""

    def __str__(self) -> str:
        raise ValueError("no words")


def test_chain_is_outermost_first_and_ends() -> None:
    inner, outer = OSError("inner"), RunError("outer")
    outer.__cause__ = inner
    inner.__context__ = outer
    assert error_chain(outer) == ("outer", "inner")
    hidden = RunError("shown")
    hidden.__context__ = OSError("hidden")
    hidden.__suppress_context__ = True
    assert error_chain(hidden) == ("shown",)
    assert error_chain(KeyError()) == ("KeyError",)
    assert error_chain(Mute()) == ("Mute (its text cannot be had: ValueError)",)
    deep = RunError("0")
    for number in range(1, 40):
        above = RunError(str(number))
        above.__cause__ = deep
        deep = above
    assert len(error_chain(deep)) == 16


def test_plain_text_is_bounded() -> None:
    assert plain_text("x" * 5000) == "x" * 4095 + "…"
    assert plain_text(3) == "3"
