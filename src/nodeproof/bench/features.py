"""What an endpoint can do, found out by asking it, and kept with the record."""

import itertools

import msgspec

from nodeproof.bench.ask import Api, Ask
from nodeproof.bench.exchange import Exchange, Outcome, TokenSource
from nodeproof.bench.load.prompts import filler
from nodeproof.bench.reach import require_reached
from nodeproof.bench.session import Session

__all__ = ["Features", "Tokens", "count_tokens", "discover", "list_models"]

_SHORT, _LONG = 16, 272
_EOS_TOKENS = 48
_AT_ONCE = 4
_COUNTED_TOKENS = 24
_EARLY_ROLE_MS = 50.0


class Tokens(msgspec.Struct, frozen=True):
    """How many tokens words make on this server."""

    words_per_token: float = 1.0
    overhead: int = 0
    """Tokens of the template and of the mark in front of each prompt."""
    source: str = "estimated"
    """``tokenize``, ``usage``, or ``estimated``: one word taken for one token."""


class Features(msgspec.Struct, kw_only=True):
    """Answers to the questions of :func:`discover`. None = not asked or not told."""

    models: list[str] | None = None
    models_problem: str = ""
    include_usage: bool | None = None
    """A stream that asks for its usage gets it."""
    stream_options_refused: bool = False
    usage_always: bool | None = None
    """A stream that does not ask gets it, too."""
    streams: bool | None = None
    ignore_eos: str = "not asked"
    """``honoured`` (seen by its effect), ``ignored``, ``refused`` or ``not asked``."""
    tokenize: str = ""
    """Which form of ``/tokenize`` is answered: ``prompt`` or ``content``; empty = none."""
    role_chunk_lead_ms: float | None = None
    """How long before the first token the chunk with the role came."""
    concurrency: str = "not told"
    """What four requests at once showed: ``parallel``, ``serial`` (one after the other), ``cuts`` (some cut) or ``not told``."""
    server_timings: bool = False
    """The server tells times of its own."""
    tokens: Tokens = Tokens()
    notes: list[str] = []

    @property
    def usage(self) -> bool:
        """Whether streams can be had with a count of tokens."""
        return bool(self.include_usage or self.usage_always)


def list_models(session: Session) -> tuple[list[str] | None, str]:
    """Names of the models that are served; None and the reason when the list cannot be read."""
    status, body = session.get("/v1/models")
    if status != 200:
        return None, body.decode("utf-8", "replace")[:200] if status == 0 else f"status {status}"
    try:
        return [str(entry["id"]) for entry in msgspec.json.decode(body)["data"]], ""
    except (msgspec.DecodeError, KeyError, TypeError, IndexError):
        return None, f"not a list of models: {body[:80]!r}"


def discover(session: Session, model: str, api: Api = Api.CHAT, *, ask_ignore_eos: bool = False) -> Features:
    """Ask the endpoint what it can do: about ten short requests. Raises EndpointLostError when it cannot be reached."""
    features = Features()
    features.models, features.models_problem = list_models(session)
    first = require_reached(session.send(_short_ask(api)), session.where)
    if first.outcome is Outcome.STATUS and first.status in {400, 422} and "stream_options" in first.detail:
        features.stream_options_refused = True
        first = session.send(msgspec.structs.replace(_short_ask(api), include_usage=False))
    _note_stream(features, first)
    if first.ok and features.include_usage and api is not Api.RESPONSES:
        without = session.send(msgspec.structs.replace(_short_ask(api), include_usage=False))
        features.usage_always = without.ok and without.token_source is TokenSource.USAGE
    if first.ok:
        features.concurrency = _concurrency(session, api, include_usage=not features.stream_options_refused)
    if ask_ignore_eos:
        features.ignore_eos = _ignore_eos(session, api)
    features.tokenize, per_text = _tokenize_form(session, model)
    features.tokens = _tokens(session, features, api, model, per_text)
    return features


def count_tokens(session: Session, model: str, text: str, form: str) -> int | None:
    """Tokens of ``text`` by the server's own count; None when it does not tell."""
    body = msgspec.json.encode({"model": model, "prompt": text} if form == "prompt" else {"content": text})
    status, answer = session.post_json("/tokenize", body)
    if status != 200:
        return None
    try:
        found = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return None
    if not isinstance(found, dict):
        return None
    count, tokens = found.get("count"), found.get("tokens")
    if isinstance(count, int):
        return count
    return len(tokens) if isinstance(tokens, list) else None


def _short_ask(api: Api) -> Ask:
    return Ask(api=api, prompt="Name one colour.", max_tokens=8, extra={"temperature": 0})


def _note_stream(features: Features, first: Exchange) -> None:
    if not first.ok:
        features.notes.append(f"a short question was not answered: {first.outcome}: {first.detail}")
        return
    features.streams = first.streamed
    features.include_usage = not features.stream_options_refused and first.token_source is TokenSource.USAGE
    features.server_timings = first.server.ttft_ms is not None or first.server.decode_ms is not None
    if first.first_role_s and first.first_token_s:
        features.role_chunk_lead_ms = (first.first_token_s - first.first_role_s) * 1e3
    features.notes += first.anomalies
    if features.role_chunk_lead_ms is not None and features.role_chunk_lead_ms > _EARLY_ROLE_MS:
        lead_ms = features.role_chunk_lead_ms
        features.notes.append(f"the chunk with the role came {lead_ms:.0f} ms before the first token; TTFT counts the token")


def _concurrency(session: Session, api: Api, *, include_usage: bool) -> str:
    """Whether answers overlap in time when several are asked for at once."""
    ask = Ask(
        api=api,
        prompt="Count from one to thirty in words.",
        max_tokens=_COUNTED_TOKENS,
        include_usage=include_usage,
        extra={"temperature": 0},
    )
    exchanges = session.send_all([ask] * _AT_ONCE, concurrency=_AT_ONCE)
    if any(exchange.outcome in {Outcome.TRUNCATED, Outcome.NO_FINISH, Outcome.RESET, Outcome.ABORTED} for exchange in exchanges):
        return "cuts"
    spans = sorted((one.chunks_s[0], one.chunks_s[-1]) for one in exchanges if one.ok and len(one.chunks_s) > 1)
    if len(spans) < _AT_ONCE or any(begin == end for begin, end in spans):
        return "not told"
    apart = all(later[0] >= earlier[1] for earlier, later in itertools.pairwise(spans))
    return "serial" if apart else "parallel"


def _ignore_eos(session: Session, api: Api) -> str:
    ask = Ask(api=api, prompt="Answer with the word yes.", max_tokens=_EOS_TOKENS, extra={"temperature": 0, "ignore_eos": True})
    exchange = session.send(ask)
    if exchange.outcome is Outcome.STATUS and exchange.status in {400, 422}:
        return "refused"
    if exchange.outcome is Outcome.LENGTH and exchange.tokens >= _EOS_TOKENS:
        return "honoured"
    return "ignored" if exchange.ok else "not asked"


def _tokenize_form(session: Session, model: str) -> tuple[str, int]:
    """Which request ``/tokenize`` understands, and what it gives for a known text."""
    text = filler(0, _LONG)
    for form in ("prompt", "content"):
        count = count_tokens(session, model, text, form)
        if count:
            return form, count
    return "", 0


def _tokens(session: Session, features: Features, api: Api, model: str, per_text: int) -> Tokens:
    """Words and tokens set against each other: by the prompts' usage, with the template; else by ``/tokenize``."""
    counts = []
    for words in (_SHORT, _LONG):
        ask = Ask(
            api=api,
            prompt=f"calibration0.0 {filler(0, words)}",
            max_tokens=1,
            include_usage=not features.stream_options_refused,
            stream=bool(features.include_usage),
            extra={"temperature": 0},
        )
        counts.append(session.send(ask).usage.prompt_tokens)
    short, long = counts
    if short and long and long > short:
        per_word = (long - short) / (_LONG - _SHORT)
        return Tokens(1.0 / per_word, round(short - _SHORT * per_word), "usage")
    short_text = count_tokens(session, model, filler(0, _SHORT), features.tokenize) if features.tokenize else None
    if per_text and short_text and per_text > short_text:
        return Tokens((_LONG - _SHORT) / (per_text - short_text), 0, "tokenize")
    return Tokens()
