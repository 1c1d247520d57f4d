"""Bytes of answers in the shapes that servers use."""

from collections.abc import Sequence

import msgspec

__all__ = ["chat_chunk", "chat_stream", "completion", "sse"]

_encode = msgspec.json.Encoder().encode


def sse(value: object) -> bytes:
    """One event with ``value`` as JSON."""
    return b"data: " + _encode(value) + b"\n\n"


def chat_chunk(delta: object = None, *, finish: str | None = None, answer_id: str = "chatcmpl-0", **more: object) -> bytes:
    """One event of a chat stream; ``more`` are further fields of the chunk."""
    choice = {"index": 0, "delta": delta if delta is not None else {}, "finish_reason": finish}
    chunk = {"id": answer_id, "object": "chat.completion.chunk", "created": 1700000000, "model": "m", "choices": [choice]}
    return sse({**chunk, **more})


def chat_stream(words: Sequence[str], *, finish: str | None = "stop", usage: bool = True, done: bool = True) -> list[bytes]:
    """The events of a whole chat stream, one token an event."""
    events = [chat_chunk({"role": "assistant", "content": ""}), *(chat_chunk({"content": word}) for word in words)]
    if finish is not None:
        events.append(chat_chunk({}, finish=finish))
    if usage:
        counts = {"prompt_tokens": 10, "completion_tokens": len(words), "total_tokens": 10 + len(words)}
        events.append(sse({"id": "chatcmpl-0", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": counts}))
    if done:
        events.append(b"data: [DONE]\n\n")
    return events


def completion(text: str, tokens: int, *, prompt_tokens: int = 10, finish: str = "stop") -> bytes:
    """A chat answer without a stream."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": tokens, "total_tokens": prompt_tokens + tokens}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return _encode({"id": "chatcmpl-0", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})
