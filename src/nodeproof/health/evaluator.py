"""Readings in, score and findings out."""

from nodeproof.clock import Instant
from nodeproof.health.readings import Readings
from nodeproof.model.health import Explanation, HealthScore

__all__ = ["RULESETS", "Evaluator"]

RULESETS = ("0.3.5", "0.3.3")
"""Rule sets by name, the default first."""


class Evaluator:
    """Judges one node, again and again. It remembers only what hysteresis, growth of counters and ``since`` need."""

    def __init__(self, ruleset: str = "0.3.5", weight_scheme: str = "auto", *, confirm: bool = True) -> None:
        """``confirm=False``: every condition counts at its first sample, for commands that look only once.

        Raises ValueError for an unknown rule set or scheme.
        """
        raise NotImplementedError

    def evaluate(self, readings: Readings, at: Instant) -> HealthScore:
        """The health of the node at ``at``."""
        raise NotImplementedError

    def explain(self, rule: str, readings: Readings, at: Instant) -> list[Explanation]:
        """What ``rule`` says of ``readings``, without judging anew: call :meth:`evaluate` first.

        ``rule`` is an id of :meth:`rule_ids` or the text of a deduction (``usage>90%``), which may stand for a rule of more
        than one component. Raises UsageError, with suggestions, when there is no such rule.
        """
        raise NotImplementedError

    def rule_ids(self) -> list[str]:
        """Id of every rule of this rule set and every finding: ``cpu.usage``, ``disk.read_only`` ..."""
        raise NotImplementedError
