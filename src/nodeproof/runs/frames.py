"""Frames and errors of plug-ins, made fit to be kept: whatever a plug-in hands over, the log and the record stay readable."""

from typing import NamedTuple

import msgspec

from nodeproof.errors import RunError
from nodeproof.model.run import Frame, RunStatus, Verdict, VerdictKind

__all__ = ["SoundFrame", "default_verdict", "error_chain", "plain_text", "sound_frame"]

_MAX_TEXT_CHARS = 4096
_MAX_CHAIN = 16


class SoundFrame(NamedTuple):
    """A frame that can be stored and read back."""

    frame: Frame
    warnings: tuple[str, ...]
    """What had to be left out of it."""


def sound_frame(frame: Frame) -> SoundFrame:
    """``frame`` with what can be kept of it: metrics that are no finite numbers were not measured and go.

    Raises RunError when a field holds something that it must not.
    """
    try:
        bad = frame.unmeasured()
        warnings = tuple(f"metric {plain_text(key)} is {frame.metrics[key]}: it was not measured" for key in bad)
        if bad:
            metrics = {key: value for key, value in frame.metrics.items() if key not in bad}
            frame = msgspec.structs.replace(frame, metrics=metrics)
        return SoundFrame(msgspec.convert(_cleaned(msgspec.to_builtins(frame)), Frame), warnings)
    except (TypeError, ValueError, AttributeError, RecursionError, msgspec.MsgspecError) as error:
        raise RunError(f"next() returned a frame that cannot be kept: {plain_text(error)}") from None


def default_verdict(frame: Frame) -> Verdict:
    """The verdict of a terminal frame that brings none."""
    if frame.status is RunStatus.COMPLETED:
        return Verdict(VerdictKind.INFO, "numbers without a judgement")
    return Verdict(VerdictKind.INCONCLUSIVE, f"the run ended as {frame.status}")


def error_chain(error: BaseException) -> tuple[str, ...]:
    """``error`` and what caused it, outermost first; an error without words says its name."""
    texts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(texts) < _MAX_CHAIN:
        seen.add(id(current))
        text = plain_text(current) or type(current).__name__
        if not texts or texts[-1] != text:
            texts.append(text)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return tuple(texts)


def plain_text(value: object) -> str:
    """``value`` in words, bounded, as text that can be written as UTF-8. Never raises."""
    try:
        text = str(value)
    except BaseException as error:  # noqa: BLE001 - an error that cannot say what it is
        text = f"{type(value).__name__} (its text cannot be had: {type(error).__name__})"
    if len(text) > _MAX_TEXT_CHARS:
        text = text[: _MAX_TEXT_CHARS - 1] + "…"
    return text.encode("utf-8", "replace").decode("utf-8")


def _cleaned(value: object) -> object:
    """Text with halves of surrogate pairs, which come of undecodable file names, made writable."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case dict():
            return {_cleaned(key): _cleaned(entry) for key, entry in value.items()}
        case list() | tuple():
            return [_cleaned(entry) for entry in value]
        case _:
            return value
