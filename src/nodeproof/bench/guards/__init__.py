"""Guards: what shows that a measurement could have gone wrong, and did not. A check that could not have failed proves nothing.

Every guard is a pure function of what was measured and answers with a :class:`GuardResult`: ``ok``, ``vacuous`` (the numbers do
not show what they are called) or ``unmeasured`` (what the guard needs was not told), with the counts it judged by and a sentence.
It never raises for what an endpoint did, and an empty measurement is ``unmeasured``, never ``ok``::

    results = [
        budget_delivered(tokens, 128),
        majority_delivered(tokens, 128),
        cache_agreement([CachedPrompt(512, 480), CachedPrompt(512, None)]),
    ]
    state_of(results)        # the worst of them
    concerns(results)        # sentences for the verdict: only those that are not ok
    guard_metrics(results)   # {"guard_budget_vacuous": 0.0, ...} for the frame

How benchmarks use them: once for each cell. A ``vacuous`` cell is left out of the metrics that are judged; while any guard that a
verdict leans on is not ``ok``, the verdict is ``inconclusive`` and names :func:`concerns`.

=========================  ==============================================================================================
:func:`budget_delivered`   all answers together are nearly as long as was asked for
:func:`majority_delivered` half of the answers are, each by itself: one long answer cannot stand for many short ones
:func:`any_content`        not every answer is empty
:func:`cache_agreement`    all prompts came from the server's prefix cache, or none did: not a mixture
:func:`no_input_control`   without the input (picture, document) the question is not answered rightly all the same
:func:`repeat_control`     the same measurement twice gives the same number, so a difference means something (A/A)
:func:`repeat_equality`    the same question twice gives the same answer, so a difference means something (A/A)
:func:`liveness`           answers that are compared are answers: long enough, and not one text for every question
=========================  ==============================================================================================
"""

from nodeproof.bench.guards.cache import CachedPrompt, CacheState, cache_agreement
from nodeproof.bench.guards.controls import Reply, liveness, no_input_control, repeat_control, repeat_equality
from nodeproof.bench.guards.delivery import any_content, budget_delivered, majority_delivered
from nodeproof.bench.guards.result import GuardResult, GuardState, concerns, guard_metrics, state_of

__all__ = [
    "CacheState",
    "CachedPrompt",
    "GuardResult",
    "GuardState",
    "Reply",
    "any_content",
    "budget_delivered",
    "cache_agreement",
    "concerns",
    "guard_metrics",
    "liveness",
    "majority_delivered",
    "no_input_control",
    "repeat_control",
    "repeat_equality",
    "state_of",
]
