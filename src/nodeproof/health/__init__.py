"""Pure rules: readings in, a verdict with its evidence out. No I/O, and time is passed in.

``Evaluator(...).evaluate(Readings(batches), at)`` gives a :class:`~nodeproof.model.health.HealthScore`;
``verdict(score)`` the word and exit code of ``check``.
"""

from nodeproof.health.evaluator import RULESETS, Evaluator
from nodeproof.health.grades import verdict
from nodeproof.health.readings import Readings

__all__ = ["RULESETS", "Evaluator", "Readings", "verdict"]
