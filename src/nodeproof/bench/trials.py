"""Identities of the benchmarks that try an endpoint out: whether it lasts, what it bears, sees and does."""

from nodeproof.bench.catalogue import lazily
from nodeproof.model.hardware import Sensitivity
from nodeproof.runs.benchmark import Descriptor
from nodeproof.runs.benchmark_ids import aliases_of

__all__ = ["AGENTIC", "CHAOS", "MLPERF_AGENTIC", "SERVE_MATRIX", "SOAK", "TRIALS", "VIDEO", "VISION"]

SOAK = Descriptor(
    id="soak",
    name="Soak",
    summary="A load that lasts: drift of latency and rate, leaks of the server",
    detail=(
        "Sends a steady load for a stated time and judges whether TTFT, TPOT and the rate of output at the end are what they "
        "were at the beginning, with intervals; of a server on this machine also memory and descriptors of all its processes. "
        "Costs the endpoint the load for as long as it is asked for."
    ),
    duration_hint="duration_s, half an hour unless told otherwise",
    expected_secs=1830,
    updated="2026-12-01",
    sensitivity=Sensitivity.SPEED,
    build=lazily("soak.benchmark", "Soak"),
    needs_endpoint=True,
)

CHAOS = Descriptor(
    id="chaos",
    name="Chaos",
    summary="Clients that misbehave, and how long the server takes to recover",
    detail=(
        "Streams left in their middle, requests taken back at once, a prompt beyond any context, malformed requests, answers "
        "that nobody reads; after each the time to a healthy answer, and at the end what was left open. Meant for servers that "
        "serve nobody else meanwhile: it may bring a weak one down."
    ),
    duration_hint="half a minute to a few minutes",
    expected_secs=60,
    updated="2026-12-01",
    sensitivity=Sensitivity.CORRECTNESS,
    build=lazily("chaos.benchmark", "Chaos"),
    needs_confirmation=True,
    needs_endpoint=True,
)

VISION = Descriptor(
    id="vision",
    name="Vision fidelity",
    summary="Whether an endpoint sees the pictures it is shown, and no others",
    detail=(
        "Shows pictures drawn from a seed: prices by size against a rule, numbers, colours and counts to be read, different "
        "pictures at once, the same words with another picture, long prompts, earlier turns, both ways to answer, several "
        "choices; and asks the same without a picture. About forty requests."
    ),
    duration_hint="1 to 5 minutes",
    expected_secs=120,
    updated="2026-12-01",
    sensitivity=Sensitivity.CORRECTNESS,
    build=lazily("media.vision", "Vision"),
    aliases=aliases_of("vision"),
    needs_endpoint=True,
)

VIDEO = Descriptor(
    id="video",
    name="Video fidelity",
    summary="Whether an endpoint sees the videos it is shown, in their order, and no others",
    detail=(
        "Shows clips drawn from a seed, as MP4 and GIF: price by length, order forwards and backwards, a picture beside a clip, "
        "different clips at once, and the checks of vision; and asks the same without a clip. About thirty requests of up to a "
        "megabyte."
    ),
    duration_hint="1 to 5 minutes",
    expected_secs=70,
    updated="2026-12-01",
    sensitivity=Sensitivity.CORRECTNESS,
    build=lazily("media.video", "Video"),
    aliases=aliases_of("video"),
    needs_endpoint=True,
)

AGENTIC = Descriptor(
    id="agentic",
    name="Agentic web server",
    summary="Whether a model with tools gets a small web server written, tested, run and stopped",
    detail=(
        "Gives a model a task and three tools, and runs what it writes in a sandbox without network, other processes or files to "
        "change. Outcome (we start its server and ask it) and process (six steps) are judged apart. Runs commands that a model "
        "has written."
    ),
    duration_hint="minutes to a quarter of an hour",
    expected_secs=600,
    updated="2026-12-01",
    sensitivity=Sensitivity.SPEED,
    build=lazily("agentic.benchmark", "Agentic"),
    aliases=aliases_of("agentic"),
    needs_confirmation=True,
    needs_endpoint=True,
)

MLPERF_AGENTIC = Descriptor(
    id="mlperf-agentic",
    name="Recorded agents",
    summary="How far a model acts as recorded agents did; needs a file of recorded sessions",
    detail=(
        "Asks for every recorded turn with what was recorded before it, with fixed sampling, and compares intents (workflow) and "
        "shell commands (coding) with those recorded. Nothing that a model says is run. Needs dataset=FILE."
    ),
    duration_hint="by the size of the file",
    expected_secs=600,
    updated="2026-12-01",
    sensitivity=Sensitivity.CORRECTNESS,
    build=lazily("agentic.replay", "Replay"),
    aliases=aliases_of("mlperf-agentic"),
    needs_endpoint=True,
)

SERVE_MATRIX = Descriptor(
    id="serve-matrix",
    name="Serve matrix",
    summary="Whether every model of a plan comes up and does its work",
    detail=(
        "Examines every model that an endpoint lists, or starts those of a file one after the other: identity, coherence, code, "
        "a tool, recall from a long text, rate against its baseline. Starts the servers that the file names, and runs code that "
        "models have written, in a sandbox."
    ),
    duration_hint="a minute a model, and the time that each takes to start",
    expected_secs=600,
    updated="2026-12-01",
    sensitivity=Sensitivity.CORRECTNESS,
    build=lazily("matrix.benchmark", "Matrix"),
    needs_confirmation=True,
    needs_endpoint=True,
)

TRIALS = (AGENTIC, CHAOS, MLPERF_AGENTIC, SERVE_MATRIX, SOAK, VIDEO, VISION)
"""All of them."""
