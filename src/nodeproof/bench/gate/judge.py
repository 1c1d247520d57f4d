"""Judges the entries of ``bench.toml`` by stored, signed records: never by what a process returned or printed."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nodeproof.bench.gate.archive import Archive
from nodeproof.bench.gate.bounds import check_bounds
from nodeproof.bench.gate.groups import Group, Part, owed, whole
from nodeproof.bench.gate.instrument import day, differences, of_target, pins
from nodeproof.bench.gate.judgement import Check, Considered, Judgement, Standing
from nodeproof.bench.gate.schema import Entry
from nodeproof.errors import RecordError, RunError
from nodeproof.host.signing_key import PublicKey
from nodeproof.model.hardware import Sensitivity, Validity
from nodeproof.model.run import RunRecord, RunStatus, VerdictKind
from nodeproof.runs.benchmark import Descriptor
from nodeproof.runs.registry import Registry
from nodeproof.runs.signature import check_signature
from nodeproof.runs.store import StoredRun

__all__ = ["Belief", "Judge", "box_validity"]

_DAY_S = 86400.0
_NOTHING_SAID = frozenset({RunStatus.CANCELLED, RunStatus.REFUSED})
"""How runs end that were not let run: they say nothing for or against."""
_MOST_LOOKED_AT = 1000


class _Found(NamedTuple):
    """The record that decides, and what is wrong with its instrument."""

    run: StoredRun
    wrong: list[str]


class Belief(NamedTuple):
    """How far a record is to be believed."""

    problems: list[str]
    """Why it proves nothing."""
    notes: list[str]
    """What else is to be known of it."""
    key_id: str
    """Of the key that signed it; empty = none that counts."""


class Judge:
    """Judges by what ``archive`` holds and ``trusted`` keys have signed."""

    def __init__(
        self,
        archive: Archive,
        trusted: Mapping[str, PublicKey],
        registry: Registry,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._archive = archive
        self._trusted = trusted
        self._registry = registry
        self._now = now

    def judge(self, entry: Entry) -> Judgement:
        """What is to say about ``entry``. Raises RecordError when no signature can be checked here at all."""
        try:
            descriptor = self._registry.get(entry.id)
        except RunError as error:
            return _said(entry, Standing.REFUSED, [str(error)])
        if not entry.measured:
            note = f" ({entry.note})" if entry.note else ""
            return _said(entry, Standing.UNMEASURED, [f"nobody has said yet what would be good enough{note}"])
        coupled = {param for param, _ in descriptor.threshold_params} & set(entry.param_overrides)
        if coupled:
            text = f"param_overrides.{min(coupled)}: follows from the bound of its metric, and cannot be set beside it"
            return _said(entry, Standing.REFUSED, [text])
        return self._judge_shards(entry, descriptor) if entry.shards else self._judge_newest(entry, descriptor)

    def _judge_newest(self, entry: Entry, descriptor: Descriptor) -> Judgement:
        considered: list[Considered] = []
        found = self._decisive(entry, descriptor, considered)
        if found is None:
            reason = f"there is no record of {descriptor.id} that counts" if considered else f"no record of {descriptor.id}"
            return _said(entry, Standing.MISSING, [reason], considered=considered)
        if isinstance(found, RecordError):
            return _said(entry, Standing.REFUSED, [str(found)], considered=considered)
        return self._judge_one(entry, descriptor, found, considered)

    def _judge_one(self, entry: Entry, descriptor: Descriptor, found: _Found, considered: list[Considered]) -> Judgement:
        run = found.run
        problems, notes, key_id = self.believed(entry, descriptor, run)
        if run.problems or (problems and not key_id):
            return _said(entry, Standing.REFUSED, problems, [run], considered=considered)
        problems += found.wrong
        checks = check_bounds(entry, run.record.frame.metrics, self._now())
        standing, reasons = _outcome(run.record, problems, checks)
        return _said(entry, standing, reasons, [run], [key_id], checks=checks, considered=considered, notes=notes)

    def believed(self, entry: Entry, descriptor: Descriptor, run: StoredRun) -> Belief:
        """Whether ``run`` is what was stored by somebody who is trusted, and proves anything."""
        if run.problems:
            return Belief([f"the record was changed: {problem}" for problem in run.problems], [], "")
        signature = check_signature(run.path, run.record, self._trusted)
        if signature.problem:
            return Belief([f"{run.record.run_id}: {signature.problem}"], [], "")
        problems = [*_course(run.record), *_instrument_age(run.record, descriptor)]
        box, note = _box(entry, run.record)
        return Belief(problems + box, note, signature.key_id)

    def _decisive(self, entry: Entry, descriptor: Descriptor, considered: list[Considered]) -> _Found | RecordError | None:
        """The newest record of the instrument that is asked for; where there is none, the newest of another one."""
        other: _Found | None = None
        for run, wrong in self._of_entry(entry, descriptor, considered, pins(entry)):
            if isinstance(run, RecordError):
                return run
            if not wrong or run.problems:
                return _Found(run, [])
            if other is None:
                other = _Found(run, wrong)
            else:
                considered.append(Considered(run_id=run.record.run_id, why="; ".join(wrong)))
        return other

    def _of_entry(
        self, entry: Entry, descriptor: Descriptor, considered: list[Considered], wanted: Mapping[str, str]
    ) -> Iterator[tuple[StoredRun | RecordError, list[str]]]:
        """Records about the entry's target, newest first, with what is wrong with their instrument; others are noted."""
        oldest_s = self._oldest_s(entry)
        for looked_at, run in enumerate(self._archive.newest_first(descriptor.id)):
            if isinstance(run, RecordError) or run.problems:
                yield run, []
                continue
            record = run.record
            why = of_target(entry, record)
            if not why and record.status in _NOTHING_SAID:
                why = f"it was {record.status}"
            if not why and record.recorded_at < oldest_s:
                why = f"it is of {day(record.recorded_at)}; records count from {day(oldest_s)} on"
            if why:
                considered.append(Considered(run_id=record.run_id, why=why))
            else:
                yield run, differences(entry, record, wanted)
            if record.recorded_at < oldest_s or looked_at >= _MOST_LOOKED_AT:
                return

    def _oldest_s(self, entry: Entry) -> float:
        age_s = 0.0 if entry.max_age_days is None else self._now() - entry.max_age_days * _DAY_S
        return max(age_s, entry.valid_from or 0.0)

    def owed_shards(self, entry: Entry) -> tuple[list[int], int]:
        """Indices that are still to be run for a divided ``entry``, and of how many. Raises RunError, RecordError."""
        return owed(self.group(entry), entry.shards)

    def group(self, entry: Entry) -> Group:
        """What there is of the shards of ``entry``. Raises as :meth:`owed_shards`."""
        return self._group(entry, self._registry.get(entry.id), [])[0]

    def _judge_shards(self, entry: Entry, descriptor: Descriptor) -> Judgement:
        considered: list[Considered] = []
        group, notes = self._group(entry, descriptor, considered)
        if not group.complete:
            standing = Standing.REFUSED if group.refused else Standing.MISSING
            return _said(entry, standing, group.reasons, group.runs, considered=considered, notes=notes)
        checks = check_bounds(entry, group.metrics, self._now())
        standing, reasons = _by_checks(checks, [])
        return _said(entry, standing, reasons, group.runs, group.key_ids, checks=checks, considered=considered, notes=notes)

    def _group(self, entry: Entry, descriptor: Descriptor, considered: list[Considered]) -> tuple[Group, list[str]]:
        """What there is of the whole, and what else is to be known."""
        parts: list[Part] = []
        notes: list[str] = []
        unread: list[str] = []
        for run, wrong in self._of_entry(entry, descriptor, considered, pins(entry)):
            if isinstance(run, RecordError):
                unread.append(str(run))
                continue
            problems, told, key_id = self.believed(entry, descriptor, run)
            notes += [note for note in told if note not in notes]
            parts.append(Part(run, [*problems, *wrong], key_id))
        return whole(parts, unread), notes


def _said(
    entry: Entry,
    standing: Standing,
    reasons: list[str],
    runs: Sequence[StoredRun] = (),
    key_ids: Sequence[str] = (),
    *,
    checks: Sequence[Check] = (),
    considered: Sequence[Considered] = (),
    notes: Sequence[str] = (),
) -> Judgement:
    return Judgement(
        place=entry.place,
        id=entry.id,
        title=entry.title,
        required=entry.required,
        standing=standing,
        reasons=reasons,
        runs=[run.record.run_id for run in runs],
        signed_by=list(dict.fromkeys(key_ids)),
        checks=list(checks),
        considered=list(considered),
        notes=[*notes, *([entry.note] if entry.note and standing is not Standing.UNMEASURED else [])],
    )


def _outcome(record: RunRecord, problems: list[str], checks: list[Check]) -> tuple[Standing, list[str]]:
    """A record that is to be believed and says no is a failure, whatever else there is; then come reasons not to believe."""
    if not problems and record.verdict.kind is VerdictKind.FAIL:
        broken = [check.text for check in checks if check.met is False]
        return Standing.FAIL, [f"its verdict is fail: {record.verdict.reason}", *broken]
    return _by_checks(checks, problems)


def _by_checks(checks: list[Check], problems: list[str]) -> tuple[Standing, list[str]]:
    broken = [check.text for check in checks if check.met is False]
    untold = [check.text for check in checks if check.met is None and check.in_force]
    if problems:
        return Standing.REFUSED, [*problems, *broken]
    if broken:
        return Standing.FAIL, [*broken, *untold]
    if untold:
        return Standing.REFUSED, untold
    kept = [check.text for check in checks if check.met]
    if not kept:
        return Standing.UNMEASURED, ["no bound is in force yet"]
    return Standing.PASS, kept


def _course(record: RunRecord) -> list[str]:
    """Why the course of a run proves nothing."""
    if record.status is not RunStatus.COMPLETED:
        return [f"{record.run_id} did not come to its end: {record.status} ({record.verdict.reason})"]
    if record.verdict.kind is VerdictKind.INCONCLUSIVE:
        return [f"the verdict of {record.run_id} is inconclusive: {record.verdict.reason}"]
    return []


def _instrument_age(record: RunRecord, descriptor: Descriptor) -> list[str]:
    if record.benchmark_updated and record.benchmark_updated < descriptor.updated:
        return [f"the instrument is of {descriptor.updated}, that of {record.run_id} was of {record.benchmark_updated}"]
    return []


def box_validity(record: RunRecord) -> Validity:
    """Whether the box was fit while the run went on; unknown where nobody looked."""
    state = record.frame.hardware_state or {}
    after = state.get("postcheck")
    try:
        return Validity(after.get("validity", "")) if isinstance(after, dict) else Validity.UNKNOWN
    except ValueError:
        return Validity.UNKNOWN


def _box(entry: Entry, record: RunRecord) -> tuple[list[str], list[str]]:
    """Why the box spoils the record, and what is to be known of it."""
    validity = box_validity(record)
    if validity is Validity.INVALID:
        state = record.frame.hardware_state or {}
        after = state.get("postcheck")
        concerns = after.get("concerns", []) if isinstance(after, dict) else []
        why = "; ".join(str(concern) for concern in concerns[:3]) if isinstance(concerns, list) else ""
        return [f"the box was not fit while {record.run_id} was made{f': {why}' if why else ''}"], []
    if validity is Validity.VALID or record.sensitivity is Sensitivity.CORRECTNESS:
        return [], []
    if validity is Validity.NOT_APPLICABLE:
        return [], []
    if entry.validity is Validity.UNKNOWN:
        return [], [f"the state of the box during {record.run_id} is not known; {entry.place}.box_validity accepts that"]
    return [f"it is not known whether the box was fit while {record.run_id} was made"], []
