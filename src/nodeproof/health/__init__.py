"""Pure rules: readings in, a verdict with its evidence out. No I/O, and time is passed in.

``Evaluator(...).evaluate(Readings(batches), at)`` gives a :class:`~nodeproof.model.health.HealthScore`;
``verdict(score)`` the word and exit code of ``check``.
"""

from nodeproof.health.evaluator import RULESETS, Evaluator, needed_metrics
from nodeproof.health.grades import verdict
from nodeproof.health.readings import Readings
from nodeproof.health.scheme import WEIGHT_SCHEMES

__all__ = ["RULESETS", "WEIGHT_SCHEMES", "Evaluator", "Readings", "needed_metrics", "verdict"]
