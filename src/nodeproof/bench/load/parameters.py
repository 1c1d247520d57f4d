"""Parameters of the benchmark ``load``, and the plan that a configuration means."""

import math
import secrets

from nodeproof.bench.ask import Api
from nodeproof.bench.client import Timeouts
from nodeproof.bench.features import Features
from nodeproof.bench.load.plan import Arrival, Lengths, LoadPlan, PromptPlan, Slo, Where
from nodeproof.errors import ParamError
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.params import Choice, Float, Int, ParamSpec, ParamValues, Text

__all__ = ["LOAD_PARAMETERS", "SYNTHETIC", "LoadSettings", "lengths_of"]

SYNTHETIC = "synthetic"
_ARRIVALS = ("poisson", "constant", "gamma", "ramp", "trace")
_DAY_S = 86400.0

LOAD_PARAMETERS = (
    ParamSpec("mode", "Loop", "closed: so many at once; open: so many a second", Choice(("closed", "open")), "closed"),
    ParamSpec(
        "concurrency", "Concurrency", "Closed: requests at once. Open: at most so many, 0 = no limit", Int(0, 1_000_000), 8
    ),
    ParamSpec("rate", "Rate", "Open: requests a second; of a trace, times faster than recorded", Float(0.0, 1e6), 0.0),
    ParamSpec("rate_end", "Rate at the end", "Open, ramp: requests a second at the end", Float(0.0, 1e6), 0.0),
    ParamSpec("arrival", "Arrival", "Open: how requests are spread in time", Choice(_ARRIVALS), "poisson"),
    ParamSpec("burstiness", "Burstiness", "Open, gamma: shape of the gaps; below 1 they come in bursts", Float(0.01, 100.0), 1.0),
    ParamSpec("requests", "Requests", "End after so many; 0 = by time alone", Int(0, 100_000_000), 0),
    ParamSpec("duration_s", "Duration", "Seconds during which requests begin", Float(0.5, 30 * _DAY_S), 30.0),
    ParamSpec("warmup_s", "Warm-up", "Seconds at the beginning that do not count", Float(0.0, _DAY_S), 5.0),
    ParamSpec("drain_s", "Drain", "Seconds that answers may still take after the last request began", Float(0.0, _DAY_S), 60.0),
    ParamSpec("repeats", "Repeats", "Measure so many times; their spread is the noise (A/A)", Int(1, 100), 1),
    ParamSpec(
        "input_tokens", "Input", "Tokens of a prompt: 512, uniform:100-200, normal:512,64 or lognormal:512,0.5", Text(), "256"
    ),
    ParamSpec("output_tokens", "Output", "Tokens of an answer at most, in the same forms", Text(), "128"),
    ParamSpec("data", "Data", f"File with conversations or a trace; {SYNTHETIC} = made up", Text(), SYNTHETIC),
    ParamSpec("turns", "Turns", "Questions of a conversation, each with all that was said before", Int(1, 1000), 1),
    ParamSpec("think_s", "Thinking time", "Seconds between an answer and the next question", Float(0.0, 3600.0), 0.0),
    ParamSpec("prefix_tokens", "Shared prefix", "Tokens at the beginning that prompts share", Int(0, 1 << 20), 0),
    ParamSpec("prefix_groups", "Prefix groups", "Number of different shared prefixes", Int(1, 1_000_000), 1),
    ParamSpec("api", "Interface", "What is spoken", Choice(tuple(str(api) for api in Api)), str(Api.CHAT)),
    ParamSpec("stream", "Stream", "Whether answers are to come as streams", Choice(("yes", "no")), "yes"),
    ParamSpec("ignore_eos", "Full length", "Ask for answers of full length (ignore_eos): auto = where the server does it",
              Choice(("auto", "yes", "no")), "auto"),
    ParamSpec("temperature", "Temperature", "Of the sampling", Float(0.0, 10.0), 0.0),
    ParamSpec("seed", "Seed", "Of lengths, fillers and arrivals", Int(0, (1 << 31) - 1), 0),
    ParamSpec("workers", "Workers", "Processes of the generator; 0 = as many as the load needs", Int(0, 1024), 0),
    ParamSpec("slo_ttft_ms", "SLO TTFT", "A good request's first token comes within; 0 = any", Float(0.0, 1e9), 0.0),
    ParamSpec("slo_tpot_ms", "SLO TPOT", "A good request's time an output token; 0 = any", Float(0.0, 1e9), 0.0),
    ParamSpec("slo_e2e_ms", "SLO E2E", "A good request is over within; 0 = any", Float(0.0, 1e9), 0.0),
    ParamSpec("min_attainment_pct", "Attainment", "Fails when fewer keep the SLO; 0 = not judged", Float(0.0, 100.0), 0.0),
    ParamSpec("max_error_pct", "Errors", "Fails when more requests fail", Float(0.0, 100.0), 1.0),
    ParamSpec("connect_timeout_s", "Connect limit", "Seconds for name, connection and TLS", Float(0.001, 3600.0), 10.0),
    ParamSpec("first_byte_timeout_s", "First-byte limit", "Seconds from request to first byte", Float(0.001, _DAY_S), 300.0),
    ParamSpec("idle_timeout_s", "Idle limit", "Seconds between two reads", Float(0.001, _DAY_S), 120.0),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of a whole request", Float(0.001, _DAY_S), 900.0),
)  # fmt: skip
_STREAMS_A_WORKER = 512
_RATE_A_WORKER = 1000.0


def lengths_of(key: str, text: str) -> Lengths:
    """A distribution of lengths as text. Raises ParamError."""
    kind, found, rest = text.partition(":")
    if not found:
        kind, rest = "fixed", text
    parts = rest.replace("-", ",").split(",")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    wanted = 1 if kind == "fixed" else 2
    if kind not in {"fixed", "uniform", "normal", "lognormal"} or len(numbers) != wanted or not all(map(math.isfinite, numbers)):
        raise ParamError(
            key, f"{key}: {text[:80]!r} is no length; write 512, uniform:100-200, normal:512,64 or lognormal:512,0.5"
        )
    a, b = numbers[0], numbers[1] if wanted == 2 else 0.0
    if not 1 <= a <= 1 << 20 or b < 0 or (kind == "uniform" and not a <= b <= 1 << 20):
        raise ParamError(key, f"{key}: {text[:80]!r}: lengths lie between 1 and {1 << 20} tokens, the smaller one first")
    return Lengths(kind, a, b)


class LoadSettings:
    """A configuration that was checked."""

    def __init__(self, values: ParamValues) -> None:
        """Raises ParamError for values that contradict each other."""
        self.values = values
        self.closed = values.text("mode") == "closed"
        self.api = Api(values.text("api"))
        self.data = "" if values.text("data") == SYNTHETIC else values.text("data")
        self.inputs = lengths_of("input_tokens", values.text("input_tokens"))
        self.outputs = lengths_of("output_tokens", values.text("output_tokens"))
        self.repeats = values.usize("repeats")
        self.slo = Slo(values.float("slo_ttft_ms"), values.float("slo_tpot_ms"), values.float("slo_e2e_ms"))
        keys = ("connect_timeout_s", "first_byte_timeout_s", "idle_timeout_s", "request_timeout_s")
        self.timeouts = Timeouts(*(values.float(key) for key in keys))
        self._check()

    def _check(self) -> None:
        values = self.values
        for wrong, key, problem in (
            (self.closed and values.usize("concurrency") < 1, "concurrency", "a closed loop needs at least one request at once"),
            (self.closed and values.float("rate") > 0, "rate", "a closed loop has no rate; mode=open has one"),
            (not self.closed and values.float("rate") <= 0, "rate", "an open loop needs a rate above 0"),
            (self.closed and values.float("rate_end") > 0, "rate_end", "only a ramp of an open loop has a rate at its end"),
            (
                not self.closed and (values.text("arrival") == "ramp") != (values.float("rate_end") > 0),
                "rate_end",
                "a ramp needs a rate at its end, and nothing else has one",
            ),
            (
                values.text("arrival") != "gamma" and values.float("burstiness") != 1.0,
                "burstiness",
                "only arrival=gamma has a burstiness",
            ),
            (not self.closed and values.text("arrival") == "trace" and not self.data, "data", "arrival=trace needs data=FILE"),
            (
                values.float("warmup_s") >= values.float("duration_s"),
                "warmup_s",
                f"a warm-up of {values.float('warmup_s'):g} s leaves nothing of {values.float('duration_s'):g} s to count",
            ),
            (
                values.float("min_attainment_pct") > 0 and not self.slo.stated,
                "min_attainment_pct",
                "there is no SLO to attain; give slo_ttft_ms, slo_tpot_ms or slo_e2e_ms",
            ),
            (
                values.usize("prefix_tokens") >= self.inputs.a and values.usize("prefix_tokens") > 0,
                "prefix_tokens",
                "the shared prefix must be shorter than the input",
            ),
            (self.slo.ttft_ms > 0 and values.text("stream") == "no", "slo_ttft_ms", "without streams there is no TTFT"),
            (self.slo.tpot_ms > 0 and values.text("stream") == "no", "slo_tpot_ms", "without streams there is no TPOT"),
        ):
            if wrong:
                raise ParamError(key, f"{key}: {problem}")

    def plan(self, target: TargetEndpoint, features: Features, *, nonce: str = "") -> LoadPlan:
        """What the workers do."""
        values = self.values
        return LoadPlan(
            where=Where(
                base_url=target.base_url,
                model=target.model,
                ca_file=target.ca_file,
                **self.timeouts._asdict(),
            ),
            prompts=PromptPlan(
                data=self.data,
                inputs=self.inputs,
                outputs=self.outputs,
                turns=values.usize("turns"),
                think_s=values.float("think_s"),
                prefix_tokens=values.usize("prefix_tokens"),
                prefix_groups=values.usize("prefix_groups"),
                words_per_token=features.tokens.words_per_token,
                overhead_tokens=features.tokens.overhead,
                nonce=nonce or f"{secrets.token_hex(4)}-",
            ),
            arrival=None if self.closed else self._arrival(),
            concurrency=values.usize("concurrency"),
            requests=values.usize("requests"),
            duration_s=values.float("duration_s"),
            warmup_s=values.float("warmup_s"),
            drain_s=values.float("drain_s"),
            api=self.api,
            stream=values.text("stream") == "yes",
            include_usage=not features.stream_options_refused,
            extra=self._extra(features),
            slo=self.slo,
            seed=values.usize("seed"),
            workers=self._workers(),
        )

    def _arrival(self) -> Arrival:
        values = self.values
        return Arrival(
            kind=values.text("arrival"),
            rate=values.float("rate"),
            rate_end=values.float("rate_end"),
            burstiness=values.float("burstiness"),
        )

    def _extra(self, features: Features) -> dict[str, object]:
        extra: dict[str, object] = {"temperature": self.values.float("temperature")}
        wish = self.values.text("ignore_eos")
        if wish == "yes" or (wish == "auto" and features.ignore_eos == "honoured"):
            extra["ignore_eos"] = True
        return extra

    def _workers(self) -> int:
        asked = self.values.usize("workers")
        if asked:
            return asked
        if self.closed:
            return -(-self.values.usize("concurrency") // _STREAMS_A_WORKER)
        top = max(self.values.float("rate"), self.values.float("rate_end"))
        return 1 if self.values.text("arrival") == "trace" else max(1, math.ceil(top / _RATE_A_WORKER))
