"""Readings in, score and findings out."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from nodeproof.clock import Instant, rfc3339
from nodeproof.errors import Absence
from nodeproof.health import rules_033, rules_035
from nodeproof.health.blind import BlindRule, blind_rules
from nodeproof.health.explain import Context, explain
from nodeproof.health.findings import FINDINGS
from nodeproof.health.grades import grade_of
from nodeproof.health.growth import Growth
from nodeproof.health.latch import Latches
from nodeproof.health.readings import Readings, touched_names
from nodeproof.health.rules import DAY_S, Concern, How, Probe
from nodeproof.health.sample import Moment, Seen, is_counter, series, stamp_of
from nodeproof.health.scheme import ACCELERATORS, ANSWERS, COUNTS, SCHEMES, WEIGHT_SCHEMES, Fleet, FleetState, choose
from nodeproof.health.scoring import ComponentState, judge_component, total_of
from nodeproof.health.standing import reads_well, standing
from nodeproof.health.straggler import StragglerState, StragglerVerdict, StragglerWatch
from nodeproof.health.watch import Watch
from nodeproof.model.health import Explanation, Finding, HealthScore, Severity, Standing, UnknownConcern
from nodeproof.model.metric import Batch, Labels, Metric

__all__ = ["DERIVED", "RULESETS", "Evaluator", "needed_metrics"]

_CONCERNS: Mapping[str, Sequence[Concern]] = {"0.3.5": rules_035.CONCERNS, "0.3.3": rules_033.CONCERNS}

RULESETS = tuple(_CONCERNS)
"""Rule sets by name, the default first."""

DERIVED = "derived"
"""Component of what is concluded from readings and judged like them."""

_GRAVITY = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
_MOST_UNKNOWN = 40
"""Entries of the list of what could not be told."""

_NOTED = 4096
"""Gains kept between two evaluations, of each component."""


def needed_metrics(ruleset: str = RULESETS[0]) -> frozenset[tuple[str, str]]:
    """(component, name) of every metric that a rule of ``ruleset``, a finding or the choice of weights looks at."""
    needed = {(kind, name) for kind in ACCELERATORS for name in (*ANSWERS[kind], *COUNTS[kind])}
    for probe in _probes(ruleset):
        needed.update((probe.component, name) for name in (*probe.names, *((probe.unless,) if probe.unless else ())))
        needed.update(probe.factor)
    return frozenset(pair for pair in needed if pair[0] != DERIVED)


def _probes(ruleset: str) -> list[Probe]:
    scored = [tier.limit.probe for concern in _CONCERNS[ruleset] for tier in concern.tiers]
    return scored + [rule.limit.probe for rule in FINDINGS]


class Evaluator:
    """Judges one node, again and again. It remembers only what hysteresis, growth of counters and ``since`` need."""

    def __init__(self, ruleset: str = RULESETS[0], weight_scheme: str = "auto", *, confirm: bool = True) -> None:
        """``confirm=False``: every condition counts at its first sample, for commands that look only once.

        Raises ValueError for an unknown rule set or scheme.
        """
        if ruleset not in RULESETS:
            raise ValueError(f"no rule set {ruleset!r}; there are {', '.join(RULESETS)}")
        if weight_scheme not in WEIGHT_SCHEMES:
            raise ValueError(f"no weight scheme {weight_scheme!r}; there are {', '.join(WEIGHT_SCHEMES)}")
        self.ruleset = ruleset
        self._weight_scheme = weight_scheme
        self._concerns: dict[str, list[Concern]] = {}
        for concern in _CONCERNS[ruleset]:
            self._concerns.setdefault(concern.component, []).append(concern)
        self._fleet = Fleet()
        self._growth = Growth()
        self._seen: dict[int, Seen] = {}
        self._latches = Latches(confirm=confirm)
        self._watch = Watch(FINDINGS, self._latches)
        self._states: dict[str, ComponentState] = {}
        self._judged: dict[str, Batch] = {}
        self._gains: dict[str, dict[str, list[Probe]]] = {}
        for probe in dict.fromkeys(_probes(ruleset)):
            if probe.how is How.GROWTH:
                for name in probe.names:
                    self._gains.setdefault(probe.component, {}).setdefault(name, []).append(probe)
        self._stragglers = {kind: StragglerWatch(kind) for kind in ACCELERATORS}
        self._noted: dict[str, deque[tuple[float, Metric]]] = {name: deque(maxlen=_NOTED) for name in self._gains}

    def note(self, batch: Batch) -> None:
        """Keep what ``batch`` says of new errors until the next evaluation, which may not see this batch.

        For collectors that run more often than :meth:`evaluate`. May be called from any thread.
        """
        if batch.component in self._stragglers:
            self._stragglers[batch.component].take(batch)
        names = self._gains.get(batch.component)
        if names is not None:
            noted = self._noted[batch.component]
            found = batch.by_name
            for name in names:
                for metric in found.get(name, ()):
                    if metric.value > 0:
                        noted.append((batch.mono_s, metric))

    def evaluate(self, readings: Readings, at: Instant, more: Sequence[Finding] = ()) -> HealthScore:
        """The health of the node at ``at``; ``more`` are findings that rest on no reading, and cap the grade like all others."""
        self._take_noted(readings)
        before, self._judged = self._judged, dict(readings.components())
        changed = _changed(before, self._judged)
        touched = {name: touched_names(before.get(name), self._judged.get(name)) for name in changed}
        moment = Moment(readings, self._growth, at, changed, self._seen, touched)
        fleet = self._fleet.look(readings)
        readings.derive(DERIVED, [*_derived(readings, fleet), *self._lagging()])
        scheme = choose(self.ruleset, self._weight_scheme, fleet)
        weights = SCHEMES[self.ruleset][scheme]
        states = self._states = self._judge(weights, fleet, moment)
        present = any(state.present for state in fleet.values())
        expected = 0 if present else weights.get("accelerator", 0)
        total = total_of(states, expected)
        findings, untold = self._watch.judge(moment)
        findings += [one for state in states.values() for one in state.findings(moment)]
        findings += more
        findings.sort(key=lambda one: (_GRAVITY[one.severity], -one.penalty))
        self._growth.forget_vanished(at.mono_s, DAY_S)
        return HealthScore(
            total.score,
            grade_of(total.score, total.coverage, {one.severity for one in findings}),
            "accelerated" if present else "cpu_only",
            {name: state.score for name, state in states.items() if state.counts},
            rfc3339(at.wall_s),
            scheme,
            self.ruleset,
            total.coverage,
            _bounded(self._unknown(states, fleet, readings, expected) + untold),
            findings,
        )

    def explain(self, rule: str, readings: Readings, at: Instant) -> list[Explanation]:
        """What ``rule`` says of ``readings``, without judging anew: call :meth:`evaluate` with them first.

        ``rule`` is an id of :meth:`rule_ids` or the text of a deduction (``usage>90%``), which may stand for a rule of more
        than one component. Raises UsageError, with suggestions, when there is no such rule.
        """
        context = Context(
            [concern for concerns in self._concerns.values() for concern in concerns],
            FINDINGS,
            {state.concern.key: state for one in self._states.values() for state in one.concerns},
            self._watch,
        )
        return explain(rule, context, readings, at)

    def standing(self, readings: Readings) -> Iterator[Standing]:
        """Every condition that counts as of the last evaluation, of ``readings``, one a thing."""
        return standing(self._watch, self._states, readings)

    def reads_well(self, rule: str, same: Callable[[Labels], bool]) -> bool | None:
        """Whether the thing that ``same`` knows by its labels is on the good side of ``rule`` (an id) as of the last evaluation.

        None when it was not read, or the rule does not apply: that is no recovery.
        """
        for one in FINDINGS:
            if one.key == rule:
                return reads_well(one.limit, self._watch.sights.get(rule), same)
        for state in self._states.values():
            for concern in state.concerns:
                if concern.concern.key == rule:
                    return reads_well(concern.concern.tiers[-1].limit, concern.sights[-1], same)
        return None

    def blind(self) -> list[BlindRule]:
        """Rules that apply here and could not be read at the last evaluation, wholly or in part."""
        return blind_rules(self._states.values(), self._watch)

    def rule_ids(self) -> list[str]:
        """Id of every rule of this rule set and every finding: ``cpu.usage``, ``disk.read_only`` ..."""
        scored = [concern.key for concerns in self._concerns.values() for concern in concerns]
        return scored + [rule.key for rule in FINDINGS]

    def straggler(self, kind: str) -> StragglerVerdict:
        """Whether a device of ``kind`` (gpu, npu) lags behind its peers."""
        return self._stragglers[kind].verdict()

    def _lagging(self) -> list[Metric]:
        """Devices that were compared with their peers, and whether they lag; nothing where that cannot be told."""
        found = []
        for kind, watch in self._stragglers.items():
            verdict = watch.verdict()
            if verdict.state is StragglerState.NONE:
                found.append(Metric(DERIVED, f"{kind}_straggler", 0.0, ""))
            for one in verdict.stragglers:
                evidence = {"what": one.kind.what, "own": f"{one.value:g}", "peers": f"{one.peers:g}", "z": f"{one.z:g}"}
                found.append(Metric(DERIVED, f"{kind}_straggler", 1.0, "", {"device": one.device, **evidence}))
        return found

    def _judge(self, weights: Mapping[str, int], fleet: Mapping[str, FleetState], moment: Moment) -> dict[str, ComponentState]:
        states: dict[str, ComponentState] = {}
        for component, concerns in self._concerns.items():
            card = component in ACCELERATORS
            maximum = weights.get("accelerator" if card else component, 0)
            if not maximum or (card and not fleet[component].present):
                continue
            before = self._states.get(component)
            if before is not None and before.maximum == maximum and component not in moment.changed:
                states[component] = before
            else:
                states[component] = judge_component(component, maximum, concerns, self._latches, moment)
        return states

    def _take_noted(self, readings: Readings) -> None:
        for component, noted in self._noted.items():
            batch = readings.batch(component)
            while noted and batch is not None and noted[0][0] <= batch.mono_s:
                mono_s, metric = noted.popleft()
                if is_counter(readings, metric):
                    continue
                for probe in self._gains[component][metric.name]:
                    stamp = stamp_of(metric, mono_s)
                    self._growth.of_gains(series(probe, metric), metric.value, stamp, mono_s, probe.window_s)

    @staticmethod
    def _unknown(
        states: Mapping[str, ComponentState], fleet: Mapping[str, FleetState], readings: Readings, expected: int
    ) -> list[UnknownConcern]:
        unknown = [entry for state in states.values() for entry in state.unknown]
        if expected:
            unknown.append(
                UnknownConcern(
                    "accelerator",
                    "cards",
                    Absence.UNKNOWN,
                    "the weight scheme expects accelerator cards, and no GPU or NPU answered",
                    "set health.weight_scheme to auto, or see why the cards do not answer",
                    weight=expected,
                )
            )
        for kind in ACCELERATORS:
            if not fleet[kind].present:
                unknown += _untold_cards(kind, readings)
        return unknown


def _changed(before: Mapping[str, Batch], now: Mapping[str, Batch]) -> frozenset[str]:
    """Components whose batch is another one than at the last evaluation, gone ones included; conclusions always."""
    changed = {name for name in before.keys() | now.keys() if before.get(name) is not now.get(name)}
    return frozenset(changed | {DERIVED})


def _untold_cards(kind: str, readings: Readings) -> list[UnknownConcern]:
    """Whether there are cards at all, where their driver failed to say and the bus was not looked at."""
    if readings.metrics(kind, "device_count"):
        return []
    for name in ANSWERS[kind]:
        for entry in readings.missing(kind, name):
            if entry.state not in {Absence.NOT_APPLICABLE, Absence.UNSUPPORTED}:
                return [UnknownConcern(kind, "cards", entry.state, entry.reason, entry.remedy, entry.source)]
    return []


def _derived(readings: Readings, fleet: Mapping[str, FleetState]) -> list[Metric]:
    """Conclusions that rules judge like readings: cards that fell silent, components without a fresh reading."""
    found = [
        Metric(DERIVED, f"{kind}_lost", float(card in state.lost), "", {"card": card})
        for kind, state in fleet.items()
        for card in sorted(state.answered | state.lost)
    ]
    for component, batch in readings.components().items():
        stale = not batch.metrics and any(entry.state is Absence.STALE for entry in batch.missing)
        found.append(Metric(DERIVED, "component_stale", float(stale), "", {"component": component}))
    return found


def _bounded(unknown: list[UnknownConcern]) -> list[UnknownConcern]:
    """The weightiest entries, and one that counts the rest."""
    unknown.sort(key=lambda entry: -entry.weight)
    rest = len(unknown) - _MOST_UNKNOWN
    if rest <= 0:
        return unknown
    return [
        *unknown[:_MOST_UNKNOWN],
        UnknownConcern("", "others", Absence.UNKNOWN, f"{rest} more could not be told"),
    ]
