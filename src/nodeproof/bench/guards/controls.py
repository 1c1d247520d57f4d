"""Controls: the same without what matters, the same once more, and whether what is compared is alive at all."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from nodeproof.bench.guards.result import GuardResult, GuardState

__all__ = ["Reply", "liveness", "no_input_control", "repeat_control", "repeat_equality"]


class Reply(NamedTuple):
    """An answer that is to be compared with another."""

    question: str
    """Which question it answers; answers to the same one may be alike."""
    text: str
    """All of it: thinking, text, calls."""
    tokens: int | None = None
    """As counted; None = nobody did."""


def no_input_control(right_without: Sequence[bool | None], *, by_chance: float = 0.0) -> GuardResult:
    """Questions asked without their input: at most the share ``by_chance`` of them may be answered rightly.

    ``None`` stands for a request that failed. A model that says it sees no input has not answered rightly: that is False.
    """
    told = [right for right in right_without if right is not None]
    right = sum(told)
    counts = {"asked": float(len(right_without)), "answered": float(len(told)), "right_without_input": float(right)}
    if len(told) > 0 and right > by_chance * len(told):
        reason = f"{right} of {len(told)} questions are answered rightly without their input: they do not need it"
        return GuardResult("no_input", GuardState.VACUOUS, counts, reason)
    if not told or len(told) < len(right_without):
        reason = f"{len(told)} of {len(right_without)} questions without input were answered"
        return GuardResult("no_input", GuardState.UNMEASURED, counts, reason)
    return GuardResult("no_input", GuardState.OK, counts)


def repeat_control(values: Sequence[float | None], *, limit_pct: float) -> GuardResult:
    """The same measured again (A/A): largest less smallest is at most ``limit_pct`` percent of the median."""
    told = [value for value in values if value is not None]
    counts = {"repeats": float(len(values)), "measured": float(len(told))}
    middle = statistics.median(told) if told else 0.0
    if len(told) < 2 or len(told) < len(values) or middle <= 0:
        reason = f"{len(told)} of {len(values)} repeats gave a number above 0; all must, and two at least"
        return GuardResult("repeat", GuardState.UNMEASURED, counts, reason)
    difference_pct = (max(told) - min(told)) / middle * 100
    counts["difference_pct"] = difference_pct
    if difference_pct <= limit_pct:
        return GuardResult("repeat", GuardState.OK, counts)
    reason = f"equal measurements lie {difference_pct:.3g} % apart, at most {limit_pct:g} % is believed"
    return GuardResult("repeat", GuardState.VACUOUS, counts, reason)


def repeat_equality(first: Sequence[str | None], second: Sequence[str | None]) -> GuardResult:
    """The same questions asked again under the same conditions (A/A): every answer is the same, byte for byte.

    ``None`` = not answered. Both hold the answers in the order of the questions; ValueError when they are not as many.
    """
    pairs = list(zip(first, second, strict=True))
    told = [(one, two) for one, two in pairs if one is not None and two is not None]
    differing = sum(1 for one, two in told if one != two)
    counts = {"pairs": float(len(pairs)), "compared": float(len(told)), "differing": float(differing)}
    if differing:
        reason = f"{differing} of {len(told)} answers differ when nothing else does: a difference cannot be laid to anything"
        return GuardResult("repeat", GuardState.VACUOUS, counts, reason)
    if not told or len(told) < len(pairs):
        reason = f"{len(told)} of {len(pairs)} questions were answered both times"
        return GuardResult("repeat", GuardState.UNMEASURED, counts, reason)
    return GuardResult("repeat", GuardState.OK, counts)


def liveness(replies: Sequence[Reply], *, min_tokens: int = 1) -> GuardResult:
    """Before equality is believed: answers say something, and different questions are not all answered with one text.

    An answer that is blank, or shorter than ``min_tokens`` where its tokens were counted, is dead. The guard is vacuous when most
    are dead, or when several questions have one answer between them.
    """
    dead = sum(1 for reply in replies if not reply.text.strip() or (reply.tokens is not None and reply.tokens < min_tokens))
    texts = {reply.text for reply in replies}
    questions = {reply.question for reply in replies}
    counts = {"replies": float(len(replies)), "dead": float(dead), "texts": float(len(texts)), "questions": float(len(questions))}
    if not replies:
        return GuardResult("liveness", GuardState.UNMEASURED, counts, "there are no answers")
    if 2 * dead > len(replies):
        reason = f"{dead} of {len(replies)} answers are blank or below {min_tokens} tokens: equal silence proves nothing"
        return GuardResult("liveness", GuardState.VACUOUS, counts, reason)
    if len(questions) > 1 and len(texts) == 1:
        reason = f"{len(questions)} different questions have one and the same answer: equality of it proves nothing"
        return GuardResult("liveness", GuardState.VACUOUS, counts, reason)
    return GuardResult("liveness", GuardState.OK, counts)
