"""The Responses interface: typed events, and one object at the end that says how it ended."""

from array import array
from collections.abc import Callable

import msgspec

from nodeproof.bench.exchange import Exchange, Outcome, ToolCall
from nodeproof.bench.usage import read_usage

__all__ = ["Loose", "ResponsesReader"]

Loose = Callable[[bytes, Exchange], dict[str, object]]
_TEXT = frozenset({"response.output_text.delta", "response.refusal.delta"})
_THOUGHT = frozenset({"response.reasoning_text.delta", "response.reasoning_summary_text.delta", "response.reasoning.delta"})
_CALL = "response.function_call_arguments.delta"
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_decoder = msgspec.json.Decoder(dict[str, object])


class ResponsesReader:
    """Reads events and bodies of ``/v1/responses``."""

    def __init__(self, exchange: Exchange, loose: Loose) -> None:
        self._exchange = exchange
        self._loose = loose
        self._calls: dict[str, ToolCall] = {}

    def event(self, name: bytes, data: bytes, stamp_s: float) -> None:
        """One event of the stream."""
        exchange = self._exchange
        if data == b"[DONE]":
            exchange.done_marker = True
            return
        found = self._decode(data)
        kind = str(found.get("type") or name.decode("utf-8", "replace"))
        if not exchange.first_event_s:
            exchange.first_event_s = stamp_s
        if kind == "error" or found.get("error") is not None:
            exchange.fail(Outcome.SERVER_ERROR, f"the server reports an error: {_message(found)}")
        elif kind in _TEXT or kind in _THOUGHT or kind == _CALL:
            self._delta(kind, found, stamp_s)
        elif kind == "response.output_item.added":
            self._item(found.get("item"), found)
        elif kind in _ENDS:
            self._end(found.get("response"), text_too=False)

    def events(self, payloads: list[bytes], stamps: "array[float]") -> None:
        """Several events."""
        for payload, stamp_s in zip(payloads, stamps, strict=True):
            self.event(b"", payload, stamp_s)

    def body(self, data: bytes) -> None:
        """One complete answer."""
        self._end(self._decode(data), text_too=True)

    def _decode(self, data: bytes) -> dict[str, object]:
        try:
            return _decoder.decode(data)
        except (msgspec.MsgspecError, RecursionError):
            return self._loose(data, self._exchange)

    def _delta(self, kind: str, found: dict[str, object], stamp_s: float) -> None:
        exchange, piece = self._exchange, found.get("delta")
        if not isinstance(piece, str) or not piece:
            return
        if kind in _TEXT:
            exchange.add_text(piece)
            exchange.first_content_s = exchange.first_content_s or stamp_s
        elif kind in _THOUGHT:
            exchange.add_reasoning(piece)
            exchange.first_reasoning_s = exchange.first_reasoning_s or stamp_s
        else:
            self._call(str(found.get("item_id"))).arguments += piece
            exchange.first_tool_s = exchange.first_tool_s or stamp_s
        exchange.first_token_s = exchange.first_token_s or stamp_s
        exchange.chunks_s.append(stamp_s)

    def _item(self, item: object, found: dict[str, object]) -> None:
        if isinstance(item, dict) and item.get("type") == "function_call":
            call = self._call(str(item.get("id") or found.get("item_id")))
            call.name, call.id = str(item.get("name") or ""), str(item.get("call_id") or "")

    def _call(self, key: str) -> ToolCall:
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = ToolCall()
            self._exchange.tool_calls.append(call)
        return call

    def _end(self, response: object, *, text_too: bool) -> None:
        exchange = self._exchange
        if not isinstance(response, dict):
            return
        exchange.model = str(response.get("model") or "")
        usage = response.get("usage")
        if isinstance(usage, dict):
            read_usage(exchange, usage)
        if text_too:
            self._output(response.get("output"))
        status = response.get("status")
        if status == "failed" or (response.get("error") is not None and status != "completed"):
            exchange.fail(Outcome.SERVER_ERROR, f"the server reports an error: {_message(response)}")
        elif status == "incomplete":
            details = response.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, dict) else None
            exchange.finish_reason = "length" if reason == "max_output_tokens" else str(reason or "incomplete")
        elif status == "completed":
            exchange.finish_reason = "tool_calls" if exchange.tool_calls and not exchange.text else "stop"
        elif status is not None:
            exchange.finish_reason = str(status)

    def _output(self, output: object) -> None:
        exchange = self._exchange
        for item in output if isinstance(output, list) else []:
            if not isinstance(item, dict):
                continue
            if item.get("type") == "function_call":
                self._item(item, item)
                self._call(str(item.get("id"))).arguments += str(item.get("arguments") or "")
            for part in (
                (item.get("content") or item.get("summary") or []) if item.get("type") in {"message", "reasoning"} else []
            ):
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    (exchange.add_text if item["type"] == "message" else exchange.add_reasoning)(part["text"])


def _message(found: dict[str, object]) -> str:
    error = found.get("error")
    if isinstance(error, dict):
        error = error.get("message") or error
    return str(error or found.get("message") or "without a message")[:300]
