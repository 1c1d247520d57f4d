"""Pure rules: readings in, a verdict with its evidence out. No I/O, and time is passed in.

``Evaluator(...).evaluate(Readings(batches), at)`` gives a :class:`~nodeproof.model.health.HealthScore`;
``verdict(score)`` the word and exit code of ``check``.

Names are looked up when they are asked for: ``check``, which needs words and no rules, must not pay for all the tables.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nodeproof.health.evaluator import RULESETS, Evaluator, needed_metrics
    from nodeproof.health.grades import verdict
    from nodeproof.health.readings import Readings
    from nodeproof.health.scheme import WEIGHT_SCHEMES

__all__ = ["RULESETS", "WEIGHT_SCHEMES", "Evaluator", "Readings", "needed_metrics", "verdict"]

_HOMES = {
    "RULESETS": "evaluator",
    "WEIGHT_SCHEMES": "scheme",
    "Evaluator": "evaluator",
    "Readings": "readings",
    "needed_metrics": "evaluator",
    "verdict": "grades",
}


def __getattr__(name: str) -> object:
    """The name, from the module it lives in. Raises AttributeError for any other."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
