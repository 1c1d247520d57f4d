"""What a gate says of one entry of ``bench.toml``, with everything that it looked at."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from nodeproof.model.run import ExitCode

__all__ = ["Check", "Considered", "GateReport", "Judgement", "Standing", "gate_exit_code"]


class Standing(StrEnum):
    """Whether something is proven."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    """A record that can be believed says that it is not good enough."""
    REFUSED = "refused"
    """There is a record, and it proves nothing: changed, unsigned, of another instrument, on a box that was not fit ..."""
    MISSING = "missing"
    """There is no record."""
    UNMEASURED = "unmeasured"
    """Nobody has said what would be good enough."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One metric against its bound."""

    metric: str
    value: float | None
    """None = the record does not have it."""
    limit: str
    met: bool | None
    """None = it cannot be told."""
    text: str
    in_force: bool = True
    """A bound whose time is yet to come is shown and judges nothing."""


class Considered(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was looked at on the way to the one that counts, and why it does not count."""

    run_id: str
    why: str


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """One entry."""

    place: str
    id: str
    title: str
    required: bool
    standing: Standing
    reasons: list[str]
    """Why not; of a pass, what was demanded and held."""
    runs: list[str] = []
    """The records that decide: one, or the shards of one work."""
    signed_by: list[str] = []
    """Ids of their keys."""
    checks: list[Check] = []
    considered: list[Considered] = []
    notes: list[str] = []
    """What a reader should know beside it."""


class GateReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole gate."""

    source: str
    sha256: str
    """Of the file of thresholds."""
    judged_at: str
    passed: bool
    exit_code: int
    trusted: list[str]
    """Ids of the keys whose records count."""
    judgements: list[Judgement]


def gate_exit_code(judgements: Iterable[Judgement]) -> ExitCode:
    """2 when something required failed, 3 when something required is not proven, 0 when all is."""
    standings = {one.standing for one in judgements if one.required}
    if Standing.FAIL in standings:
        return ExitCode.VERDICT_FAIL
    return ExitCode.OK if standings == {Standing.PASS} else ExitCode.INCONCLUSIVE
