"""A behaviour that acts like a model server: queue, prefill, decode, usage, prefix cache, lists, token counts."""

import itertools
from collections.abc import Callable, Iterator, Mapping

import msgspec

from nodeproof.bench.testing.script import Behaviour, Received, Script, Served, Step

__all__ = ["Model", "Rules", "document"]

_encode = msgspec.json.Encoder().encode
_WORD = " tok"


class Model(Behaviour):
    """Answers like a server of one model, with times that are known."""

    def __init__(
        self,
        *,
        name: str = "m",
        ttft_s: float = 0.02,
        tpot_s: float = 0.005,
        tokens: int | None = None,
        slots: int | None = None,
        role_at_s: float | None = None,
        usage: str = "asked",
        prefill_s_per_token: float = 0.0,
        prefix_cache: bool = False,
        tokens_per_chunk: int = 1,
        honours_ignore_eos: bool = True,
        tokenize: bool = True,
        answers: Mapping[str, str] | None = None,
        times: bool = False,
        accepted_share: float | None = None,
    ) -> None:
        """``tokens``: where the model itself would stop (default: at ``max_tokens``). ``slots``: batch size; the rest queues.

        ``role_at_s``: a chunk with the role goes out then (default: with the first token). ``usage``: ``asked`` (as a stream asks
        for it), ``always``, ``continuous`` or ``never``. ``answers``: text by a part of the last message.
        ``times``: the usage tells times of the server's own. ``accepted_share``: so much of each answer was drafted and accepted.
        """
        self.name = name
        self.ttft_s, self.tpot_s = ttft_s, tpot_s
        self.tokens = tokens
        self.role_at_s = role_at_s
        self.usage = usage
        self.prefill_s_per_token = prefill_s_per_token
        self.prefix_cache = prefix_cache
        self.tokens_per_chunk = tokens_per_chunk
        self.honours_ignore_eos = honours_ignore_eos
        self.tokenize = tokenize
        self.answers = dict(answers or {})
        self.times = times
        self.accepted_share = accepted_share
        self.asked = 0
        """Questions so far."""
        self._slots = slots
        self._seen: list[list[str]] = []

    @property
    def slots(self) -> int | None:
        """Batch size."""
        return self._slots

    def __call__(self, request: Received) -> Script:
        """The answer."""
        path = request.path.partition("?")[0]
        if request.method == "GET":
            return self._get(path)
        fields = request.json()
        if path == "/tokenize":
            return self._tokenize(fields)
        if path in {"/v1/chat/completions", "/v1/completions"}:
            self.asked += 1
            return self._answer(request, fields, chat=path.startswith("/v1/chat"))
        return document({"error": {"message": f"no route {path}"}}, status=404)

    def ended(self, served: Served) -> None:
        """Nothing to note."""

    def _get(self, path: str) -> Script:
        if path == "/v1/models":
            return document({"object": "list", "data": [{"id": self.name, "object": "model", "max_model_len": 131072}]})
        if path == "/health":
            return document({"status": "ok"})
        return document({"error": {"message": f"no route {path}"}}, status=404)

    def _tokenize(self, fields: dict[str, object]) -> Script:
        if not self.tokenize:
            return document({"error": {"message": "no route /tokenize"}}, status=404)
        text = str(fields.get("prompt", fields.get("content", "")))
        count = len(text.split())
        return document({"count": count, "tokens": list(range(count))})

    def _answer(self, request: Received, fields: dict[str, object], *, chat: bool) -> Script:
        words = _prompt_of(fields).split()
        cached = self._cached(words)
        limit = fields.get("max_tokens", fields.get("max_completion_tokens"))
        limit = limit if isinstance(limit, int) else 16
        text = next((answer for part, answer in self.answers.items() if part in " ".join(words)), None)
        pieces = self._pieces(text, limit, eos=not (fields.get("ignore_eos") is True and self.honours_ignore_eos))
        counts: dict[str, object] = {
            "prompt_tokens": len(words) + 4,
            "completion_tokens": sum(count for _, count in pieces),
            "total_tokens": len(words) + 4 + sum(count for _, count in pieces),
        }
        if self.prefix_cache:
            counts["prompt_tokens_details"] = {"cached_tokens": cached}
        if self.accepted_share is not None:
            accepted = int(self.accepted_share * sum(count for _, count in pieces))
            counts["completion_tokens_details"] = {"accepted_prediction_tokens": accepted}
        finish = "stop" if sum(count for _, count in pieces) < limit or text is not None else "length"
        first_s = self.ttft_s + self.prefill_s_per_token * max(0, len(words) + 4 - cached)
        if self.times:
            counts |= self._own_times(first_s, sum(count for _, count in pieces))
        if fields.get("stream") is not True:
            last_s = first_s + self.tpot_s * max(0, sum(count for _, count in pieces) - 1)
            whole = "".join(piece for piece, _ in pieces)
            body: dict[str, object] = {"message": {"role": "assistant", "content": whole}} if chat else {"text": whole}
            choice = {"index": 0, **body, "finish_reason": finish}
            answer = {"id": f"chatcmpl-{request.number}", "model": self.name, "choices": [choice]}
            return document(answer if self.usage == "never" else {**answer, "usage": counts}, at_s=last_s, slot=True)
        asked = fields.get("stream_options")
        with_usage = self.usage == "always" or (
            self.usage in {"asked", "continuous"} and isinstance(asked, dict) and bool(asked.get("include_usage"))
        )
        return Script(
            steps=self._stream(request.number, pieces, first_s, finish, counts if with_usage else None, chat=chat), slot=True
        )

    def _own_times(self, first_s: float, tokens: int) -> dict[str, object]:
        """Extensions that some servers have in their usage."""
        decode_s = self.tpot_s * max(0, tokens - 1)
        times: dict[str, object] = {"time_to_first_token_ms": first_s * 1e3, "decode_time_ms": decode_s * 1e3}
        return times | ({"response_token/s": (tokens - 1) / decode_s} if decode_s > 0 else {})

    def _pieces(self, text: str | None, limit: int, *, eos: bool) -> list[tuple[str, int]]:
        """Text and tokens of each chunk."""
        if text is not None:
            words = text.split(" ")[:limit]
            return [(word if n == 0 else " " + word, 1) for n, word in enumerate(words)]
        count = min(limit, self.tokens) if self.tokens is not None and eos else limit
        step = self.tokens_per_chunk
        return [(_WORD * min(step, count - at), min(step, count - at)) for at in range(0, count, step)]

    def _stream(
        self,
        number: int,
        pieces: list[tuple[str, int]],
        first_s: float,
        finish: str,
        usage: dict[str, object] | None,
        *,
        chat: bool,
    ) -> Iterator[Step]:
        kind = "chat.completion.chunk" if chat else "text_completion"
        start = b'data: {"id":"chatcmpl-%d","object":"%b","created":1700000000,"model":%b,"choices":' % (
            number,
            kind.encode(),
            _encode(self.name),
        )
        open_, close = (b'[{"index":0,"delta":{"content":', b"}") if chat else (b'[{"index":0,"text":', b"")
        if self.role_at_s is not None and chat:
            yield Step(
                self.role_at_s, start + b'[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
            )
        at_s, done = first_s, 0
        for text, count in pieces:
            done += count
            tail = b',"finish_reason":null}]'
            if self.usage == "continuous" and usage is not None:
                tail += b',"usage":' + _encode({**usage, "completion_tokens": done})
            yield Step(at_s, start + open_ + _encode(text) + close + tail + b"}\n\n")
            at_s += self.tpot_s * count
        at_s = max(first_s, at_s - self.tpot_s)
        last = b'[{"index":0,"delta":{},"finish_reason":%b}]}\n\n' if chat else b'[{"index":0,"text":"","finish_reason":%b}]}\n\n'
        tail = start + last % _encode(finish)
        if usage is not None:
            tail += start + b'[],"usage":' + _encode(usage) + b"}\n\n"
        yield Step(at_s, tail + b"data: [DONE]\n\n")

    def _cached(self, words: list[str]) -> int:
        """Tokens of the longest prefix that an earlier prompt had, too."""
        if not self.prefix_cache:
            return 0
        best = 0
        for earlier in self._seen:
            common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(earlier, words, strict=False)))
            best = max(best, common)
        self._seen.append(words)
        return best


class Rules(Behaviour):
    """Another behaviour with exceptions: ``rules`` are asked in their order, and the first one that gives a script decides."""

    def __init__(self, base: Behaviour, *rules: Callable[[Received], Script | None]) -> None:
        self.base = base
        self.rules = rules

    @property
    def slots(self) -> int | None:
        """Those of the base."""
        return self.base.slots

    def __call__(self, request: Received) -> Script:
        """The first rule's, else the base's."""
        for rule in self.rules:
            script = rule(request)
            if script is not None:
                return script
        return self.base(request)

    def ended(self, served: Served) -> None:
        """Told to the base."""
        self.base.ended(served)


def document(value: object, *, status: int = 200, at_s: float = 0.0, slot: bool = False) -> Script:
    """A JSON answer."""
    step = Step(at_s, _encode(value))
    return Script(steps=[step], status=status, content_type="application/json", chunked=False, slot=slot)


def _prompt_of(fields: dict[str, object]) -> str:
    prompt = fields.get("prompt")
    if isinstance(prompt, str):
        return prompt
    messages = fields.get("messages")
    if not isinstance(messages, list):
        return ""
    return " ".join(str(message.get("content", "")) for message in messages if isinstance(message, dict))
