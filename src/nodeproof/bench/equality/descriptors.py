"""Identities of the benchmarks of this room."""

from nodeproof.bench.catalogue import lazily
from nodeproof.model.hardware import Sensitivity
from nodeproof.runs.benchmark import Descriptor

__all__ = ["CONTAMINATION", "KAT_EQUALITY", "SCHEDULER_EQUIVALENCE", "STATE_POISONING"]

_UPDATED = "2026-12-01"

KAT_EQUALITY = Descriptor(
    id="kat-equality",
    name="Known-answer equality",
    summary="Whether answers depend on the order of the questions",
    detail=(
        "Asks the golden draw of BFCL, or made-up questions, one after the other in two or more orders with greedy sampling. "
        "Every question must be answered with the same bytes each time. Costs the endpoint orders x samples answers."
    ),
    duration_hint="about an hour for 995 questions in two orders; sample_cap shortens it",
    expected_secs=4200,
    updated=_UPDATED,
    sensitivity=Sensitivity.CORRECTNESS,
    build=lazily("equality.kat", "KatEquality"),
    needs_endpoint=True,
    aliases=("kat-equality-gate",),
)

CONTAMINATION = Descriptor(
    id="contamination",
    name="Cross-contamination",
    summary="Whether requests that are under way together get into each other",
    detail=(
        "Probes with the same beginning and a code word each, drawn from a seed, alone and then many at once: an answer with "
        "the code word of another is contaminated, one that differs from the answer alone has diverged, and the same is looked "
        "for afterwards."
    ),
    duration_hint="a few minutes",
    expected_secs=240,
    updated=_UPDATED,
    sensitivity=Sensitivity.CORRECTNESS,
    build=lazily("equality.contamination", "Contamination"),
    needs_endpoint=True,
    aliases=("cross-contamination",),
)

SCHEDULER_EQUIVALENCE = Descriptor(
    id="scheduler-equivalence",
    name="Scheduler equivalence",
    summary="Whether answers depend on concurrency or on how a server schedules",
    detail=(
        "The answers of one request at a time are the reference; a second pass of it is the control. The same questions are then "
        "asked many at once, and, if one is named, of another server of the same model with other settings. Where the control "
        "differs from the reference nothing else can be told."
    ),
    duration_hint="samples x passes answers; an hour and a half at the defaults",
    expected_secs=5400,
    updated=_UPDATED,
    sensitivity=Sensitivity.CORRECTNESS,
    build=lazily("equality.scheduler", "SchedulerEquivalence"),
    needs_endpoint=True,
)

STATE_POISONING = Descriptor(
    id="state-poisoning",
    name="State poisoning",
    summary="Whether state that a server keeps between requests spoils later answers",
    detail=(
        "A conversation of four turns is replayed many times and set against its first round: an answer that ends otherwise or "
        "has half or twice the tokens has collapsed. Replays must have used the server's prefix cache, or nothing was tried. "
        "A tool call is then asked for along several ways, and must stay the same."
    ),
    duration_hint="two to three minutes",
    expected_secs=150,
    updated=_UPDATED,
    sensitivity=Sensitivity.CORRECTNESS,
    build=lazily("equality.poisoning", "StatePoisoning"),
    needs_endpoint=True,
    aliases=("ssm-state-poisoning-gate",),
)
