"""What the bodies and events of the three interfaces mean, written into an :class:`~nodeproof.bench.exchange.Exchange`.

The common shape of an event is decoded by type, which costs a third of a microsecond. Whatever does not fit it (NaN, numbers
where texts belong, lists of parts) is read again without types and taken for what it can be; only what is no JSON at all is
malformed.
"""

import json
from array import array
from typing import Protocol

import msgspec

from nodeproof.bench.ask import Api
from nodeproof.bench.exchange import Exchange, Outcome, ToolCall
from nodeproof.bench.responses_api import ResponsesReader
from nodeproof.bench.usage import read_timings, read_usage

__all__ = ["AnswerReader", "ChatReader", "MalformedError", "conclude", "loose_object", "reader_for"]

_DONE = b"[DONE]"
_FINISH = {
    "stop": Outcome.STOP,
    "eos": Outcome.STOP,
    "eos_token": Outcome.STOP,
    "end_turn": Outcome.STOP,
    "stop_sequence": Outcome.STOP,
    "length": Outcome.LENGTH,
    "max_tokens": Outcome.LENGTH,
    "tool_calls": Outcome.TOOL_CALLS,
    "tool_use": Outcome.TOOL_CALLS,
    "function_call": Outcome.TOOL_CALLS,
    "content_filter": Outcome.FILTERED,
    "abort": Outcome.ABORTED,
    "aborted": Outcome.ABORTED,
    "cancelled": Outcome.ABORTED,
    "error": Outcome.ABORTED,
}


class MalformedError(ValueError):
    """Data that is no JSON object."""


class AnswerReader(Protocol):
    """Reads the answers of one interface."""

    def event(self, name: bytes, data: bytes, stamp_s: float) -> None:
        """One event of a stream, read at ``stamp_s``. Raises MalformedError."""
        ...

    def events(self, payloads: list[bytes], stamps: "array[float]") -> None:
        """Several events without a name, each with its stamp. Raises MalformedError."""
        ...

    def body(self, data: bytes) -> None:
        """The one body of an answer without a stream. Raises MalformedError."""
        ...


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _Tool(msgspec.Struct, gc=False):
    index: int = 0
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    role: str | None = None
    tool_calls: list[_Tool] | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    message: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None
    index: int = 0
    usage: dict[str, object] | None = None


class _Chunk(msgspec.Struct, gc=False, rename={"kind": "object"}):
    id: str | None = None
    choices: list[_Choice] | None = None
    usage: dict[str, object] | None = None
    timings: dict[str, object] | None = None
    error: object = None
    kind: str | None = None
    message: str | None = None
    model: str | None = None
    x_groq: dict[str, object] | None = None


_decode_chunk = msgspec.json.Decoder(_Chunk).decode


class ChatReader:
    """Chat and completions, which differ in where the text stands."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._tools: dict[int, ToolCall] = {}

    def event(self, name: bytes, data: bytes, stamp_s: float) -> None:
        """One event of the stream."""
        exchange = self._exchange
        if data == _DONE:
            exchange.done_marker = True
            return
        chunk = self._chunk(data)
        if chunk.error is not None or chunk.kind == "error" or name == b"error":
            exchange.fail(Outcome.SERVER_ERROR, _error_text(chunk, data))
            return
        if not exchange.first_event_s:
            exchange.first_event_s = stamp_s
            exchange.model, exchange.id = chunk.model or "", chunk.id or ""
        counted = bool(chunk.choices) and self._choices(chunk.choices, stamp_s)
        if chunk.usage is not None or chunk.timings is not None or chunk.x_groq is not None:
            self._counts(chunk)
            if counted:
                exchange.usage_tokens.append(exchange.usage.completion_tokens or 0)

    def events(self, payloads: list[bytes], stamps: "array[float]") -> None:
        """Several events; those that bring a piece of text and nothing else are taken without much ado."""
        exchange = self._exchange
        add_text, add_stamp = exchange.add_text, exchange.chunks_s.append
        plain = exchange.first_content_s > 0
        for payload, stamp_s in zip(payloads, stamps, strict=True):
            try:
                chunk = _decode_chunk(payload)
            except (msgspec.MsgspecError, RecursionError):
                self.event(b"", payload, stamp_s)
                continue
            text = _plain_text(chunk) if plain else ""
            if text:
                add_text(text)
                add_stamp(stamp_s)
            else:
                self.event(b"", payload, stamp_s)
                plain = exchange.first_content_s > 0

    def body(self, data: bytes) -> None:
        """One complete answer."""
        exchange = self._exchange
        chunk = self._chunk(data)
        if chunk.error is not None or chunk.kind == "error":
            exchange.fail(Outcome.SERVER_ERROR, _error_text(chunk, data))
            return
        exchange.model, exchange.id = chunk.model or "", chunk.id or ""
        for choice in chunk.choices or []:
            if choice.index == 0:
                self._take(choice.message, choice.text)
                exchange.finish_reason = choice.finish_reason or exchange.finish_reason
        self._counts(chunk)

    def _chunk(self, data: bytes) -> _Chunk:
        try:
            return _decode_chunk(data)
        except (msgspec.MsgspecError, RecursionError):
            return _loose_chunk(data, self._exchange)

    def _choices(self, choices: list[_Choice] | None, stamp_s: float) -> bool:
        """Take over all choices; whether one of them brought a token."""
        exchange = self._exchange
        counted = len(exchange.chunks_s)
        for choice in choices or ():
            if choice.index != 0:
                exchange.odd("several choices")
                continue
            delta = choice.delta
            if delta is not None and delta.role and not exchange.first_role_s:
                exchange.first_role_s = stamp_s
            if self._take(delta, choice.text, stamp_s):
                exchange.chunks_s.append(stamp_s)
                if not exchange.first_token_s:
                    exchange.first_token_s = stamp_s
            if choice.finish_reason is not None:
                exchange.finish_reason = choice.finish_reason
            if choice.usage is not None:
                read_usage(exchange, choice.usage)
        return len(exchange.chunks_s) > counted

    def _take(self, delta: _Delta | None, text: str | None, stamp_s: float = 0.0) -> bool:
        """Take over what a choice brings; whether that is anything."""
        exchange = self._exchange
        found = False
        if text:
            exchange.add_text(text)
            found = True
        elif delta is not None:
            content = delta.content or delta.refusal
            if content:
                exchange.add_text(content)
                text, found = content, True
            thought = delta.reasoning_content or delta.reasoning
            if thought:
                exchange.add_reasoning(thought)
                found = True
                if not exchange.first_reasoning_s:
                    exchange.first_reasoning_s = stamp_s
            if delta.tool_calls:
                self._call(delta.tool_calls)
                found = True
                if not exchange.first_tool_s:
                    exchange.first_tool_s = stamp_s
        if text and not exchange.first_content_s:
            exchange.first_content_s = stamp_s
        return found

    def _call(self, pieces: list[_Tool]) -> None:
        for piece in pieces:
            call = self._tools.get(piece.index)
            if call is None:
                call = self._tools[piece.index] = ToolCall()
                self._exchange.tool_calls.append(call)
            call.id = call.id or piece.id or ""
            if piece.function is not None:
                call.name += piece.function.name or ""
                call.arguments += piece.function.arguments or ""

    def _counts(self, chunk: _Chunk) -> None:
        exchange = self._exchange
        usage = chunk.usage
        if usage is None and chunk.x_groq is not None and isinstance(chunk.x_groq.get("usage"), dict):
            usage = _dict(chunk.x_groq["usage"])
        if usage is not None:
            read_usage(exchange, usage)
        if chunk.timings is not None:
            read_timings(exchange, chunk.timings)


def _plain_text(chunk: _Chunk) -> str:
    """The text of a chunk that brings a piece of text and nothing else; empty for any other."""
    choices = chunk.choices
    if choices is None or len(choices) != 1 or chunk.usage is not None or chunk.error is not None or chunk.kind == "error":
        return ""
    choice = choices[0]
    if choice.index or choice.finish_reason is not None or choice.usage is not None:
        return ""
    delta = choice.delta
    if delta is None:
        return choice.text or ""
    if choice.text or delta.reasoning_content or delta.reasoning or delta.refusal or delta.tool_calls or delta.role:
        return ""
    return delta.content or ""


def reader_for(api: Api, exchange: Exchange) -> AnswerReader:
    """The reader of an interface."""
    return ResponsesReader(exchange, loose_object) if api is Api.RESPONSES else ChatReader(exchange)


def conclude(exchange: Exchange, max_tokens: int | None) -> None:
    """Judge an answer whose last byte has come."""
    _doubt_usage(exchange, max_tokens)
    reason = exchange.finish_reason
    if reason is None:
        said = " (though [DONE] came)" if exchange.done_marker else ""
        exchange.fail(Outcome.NO_FINISH, f"the answer ended without a finish_reason{said}")
        return
    outcome = _FINISH.get(reason)
    if outcome is None:
        exchange.fail(Outcome.NO_FINISH, f"finish_reason {reason[:40]!r} is none that is known")
    elif not outcome.ok:
        exchange.fail(outcome, f"the server ended the answer with finish_reason {reason}")
    elif not (exchange.chunks_s or exchange.tool_calls or exchange.text or exchange.reasoning):
        exchange.fail(Outcome.EMPTY, f"finish_reason {reason}, but the answer holds nothing")
    elif exchange.outcome is Outcome.PENDING:
        exchange.outcome = outcome


def _doubt_usage(exchange: Exchange, max_tokens: int | None) -> None:
    """A count that cannot be is not believed; one that is odd is told."""
    counted, seen = exchange.usage.completion_tokens, len(exchange.chunks_s)
    if counted is None:
        return
    if counted < 1 <= seen or (max_tokens is not None and counted > max_tokens + 1):
        exchange.odd(f"usage says {counted} completion tokens: not believed")
        exchange.usage.completion_tokens = None
    elif counted < seen:
        exchange.odd("fewer tokens in usage than chunks that carried any")


def loose_object(data: bytes, exchange: Exchange) -> dict[str, object]:
    """A JSON object that the strict reader refuses. Raises MalformedError when there is none."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise MalformedError(f"no JSON: {data[:120]!r}") from None
    if not isinstance(found, dict):
        raise MalformedError(f"JSON, but no object: {data[:120]!r}")
    exchange.odd("JSON of an unusual shape")
    return found


def _loose_chunk(data: bytes, exchange: Exchange) -> _Chunk:
    found = loose_object(data, exchange)
    choices = found.get("choices")
    return _Chunk(
        id=_text(found.get("id")),
        choices=[_loose_choice(choice) for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else None,
        usage=_dict(found.get("usage")),
        timings=_dict(found.get("timings")),
        error=found.get("error"),
        kind=_text(found.get("object")),
        message=_text(found.get("message")),
        model=_text(found.get("model")),
        x_groq=_dict(found.get("x_groq")),
    )


def _loose_choice(choice: dict[str, object]) -> _Choice:
    index = choice.get("index")
    return _Choice(
        delta=_loose_delta(choice.get("delta")),
        message=_loose_delta(choice.get("message")),
        text=_text(choice.get("text")),
        finish_reason=_text(choice.get("finish_reason")),
        index=index if isinstance(index, int) else 0,
        usage=_dict(choice.get("usage")),
    )


def _loose_delta(delta: object) -> _Delta | None:
    if not isinstance(delta, dict):
        return None
    tools = delta.get("tool_calls")
    return _Delta(
        content=_text(delta.get("content")),
        reasoning_content=_text(delta.get("reasoning_content")),
        reasoning=_text(delta.get("reasoning")),
        refusal=_text(delta.get("refusal")),
        role=_text(delta.get("role")),
        tool_calls=[_loose_tool(tool) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else None,
    )


def _loose_tool(tool: dict[str, object]) -> _Tool:
    index, function = tool.get("index"), tool.get("function")
    return _Tool(
        index=index if isinstance(index, int) else 0,
        id=_text(tool.get("id")),
        function=_Function(_text(function.get("name")), _text(function.get("arguments"))) if isinstance(function, dict) else None,
    )


def _dict(value: object) -> dict[str, object] | None:
    return value if isinstance(value, dict) else None


def _text(value: object) -> str | None:
    """A text; of a list of parts, their texts; of anything else that is not null, its JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(str(part["text"]) for part in value if isinstance(part, dict) and isinstance(part.get("text"), str))
    return json.dumps(value)


def _error_text(chunk: _Chunk, data: bytes) -> str:
    error = chunk.error
    if isinstance(error, dict):
        error = error.get("message") or error
    text = str(error or chunk.message or data[:200].decode("utf-8", "replace"))
    return f"the server reports an error: {text[:300]}"
