"""What a load run does, as its worker processes are told."""

import msgspec

from nodeproof.bench.ask import Api

__all__ = ["Arrival", "Lengths", "LoadPlan", "PromptPlan", "Slo", "Where", "read_plan"]


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint. The key is no part of it: workers take it from their environment."""

    base_url: str
    model: str
    ca_file: str = ""
    connect_s: float = 10.0
    first_byte_s: float = 300.0
    idle_s: float = 120.0
    total_s: float = 900.0


class Lengths(msgspec.Struct, frozen=True):
    """A distribution of lengths in tokens."""

    kind: str = "fixed"
    """``fixed a``, ``uniform a b``, ``normal a b`` (mean, deviation), ``lognormal a b`` (median, sigma of the logarithm)."""
    a: float = 128.0
    b: float = 0.0
    low: int = 1
    high: int = 1 << 20


class PromptPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Where questions come from."""

    data: str = ""
    """File with conversations or a trace; empty = synthesised."""
    inputs: Lengths = Lengths()
    outputs: Lengths = Lengths()
    turns: int = 1
    """Questions of a conversation; each holds all that was said before."""
    think_s: float = 0.0
    """From an answer to the next question of its conversation."""
    prefix_tokens: int = 0
    """Of each input, so many at its beginning are shared."""
    prefix_groups: int = 1
    """Number of different shared beginnings."""
    words_per_token: float = 1.0
    overhead_tokens: int = 0
    """What the server's template adds to each prompt."""
    nonce: str = ""
    """In front of what is not shared, so that no two runs ask the same."""
    distinct: int = 0
    """So many different prompts, asked in turn; 0 = each is asked once."""
    words: int = 0
    """Words of filler in each prompt, whatever :attr:`inputs` says; 0 = as many as make that length."""
    task: str = ""
    """What is asked for behind the filler; empty = nothing."""
    tag_digits: int = 0
    """Width of the number in front of each prompt, so that all are equally long; 0 = as wide as it is."""


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """When requests begin, in an open loop."""

    kind: str = "constant"
    """``constant``, ``poisson``, ``gamma``, ``ramp`` or ``trace``."""
    rate: float = 1.0
    """Requests a second, of all workers together."""
    rate_end: float = 0.0
    """Of a ramp, at its end."""
    burstiness: float = 1.0
    """Of gamma: shape of the gaps; 1 is Poisson, less comes in bursts."""


class Slo(msgspec.Struct, frozen=True):
    """Limits that a good request keeps, in milliseconds; 0 = none."""

    ttft_ms: float = 0.0
    tpot_ms: float = 0.0
    e2e_ms: float = 0.0

    @property
    def stated(self) -> bool:
        """Whether there is any."""
        return self.ttft_ms > 0 or self.tpot_ms > 0 or self.e2e_ms > 0


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run, or one step of it."""

    where: Where
    prompts: PromptPlan
    arrival: Arrival | None = None
    """None = closed loop."""
    concurrency: int = 1
    """Closed: so many at once. Open: at most so many, 0 = no limit."""
    requests: int = 0
    """End after so many, 0 = by time alone."""
    duration_s: float = 30.0
    warmup_s: float = 0.0
    """At the beginning; in the samples, not in the statistics."""
    warmup_requests: int = 0
    """The first so many do not count either; in a closed loop nothing else begins before they have all ended."""
    drain_s: float = 60.0
    """So long answers may still come after the last request was sent."""
    api: Api = Api.CHAT
    stream: bool = True
    include_usage: bool = True
    extra: dict[str, object] = {}
    slo: Slo = Slo()
    seed: int = 0
    cell: int = 0
    workers: int = 1
    epoch_s: float = 0.0
    """CLOCK_MONOTONIC from which all times of the samples count, and at which the run begins."""


def read_plan(data: bytes) -> LoadPlan:
    """A plan that was written as JSON."""
    return msgspec.json.decode(data, type=LoadPlan)
