"""Answers of inference servers from the field, and ways to cut and to serve them."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from nodeproof.bench.ask import Api
from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.response import ResponseReader

FOLDER = Path(__file__).parent.parent / "fixtures" / "endpoint"


class Write(NamedTuple):
    """One write of the server."""

    at_s: float
    data: bytes


class Case(NamedTuple):
    """One case."""

    name: str
    status: int
    content_type: str
    headers: dict[str, str]
    clean: bool
    writes: list[Write]
    right: dict[str, Any]

    @property
    def head(self) -> bytes:
        """Head of the response."""
        lines = [f"HTTP/1.1 {self.status} X", f"Content-Type: {self.content_type}", "Transfer-Encoding: chunked"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, "", ""]).encode()

    def wire(self) -> list[Write]:
        """The whole response as it goes over the wire, in its writes."""
        writes = [Write(write.at_s, b"%x\r\n%b\r\n" % (len(write.data), write.data)) for write in self.writes]
        last_s = writes[-1].at_s
        return [Write(0.0, self.head), *writes, *([Write(last_s, b"0\r\n\r\n")] if self.clean else [])]


def cases() -> list[Case]:
    """All cases of the field."""
    found = json.loads((FOLDER / "schedules.json").read_text(encoding="utf-8"))
    return [_case(name, entry) for name, entry in sorted(found.items())]


def _case(name: str, entry: dict[str, Any]) -> Case:
    body = (FOLDER / f"{name}.txt").read_bytes()
    writes, at_s, place = [], 0.0, 0
    for step in entry["schedule"]:
        at_s += step.get("sleep_s", 0.0)
        size = step.get("bytes", 0)
        if size:
            writes.append(Write(at_s, body[place : place + size]))
            place += size
        elif "each" in step:
            writes += [Write(at_s, body[at : at + 1]) for at in range(place, len(body))]
            place = len(body)
    assert place == len(body), f"{name}: the schedule writes {place} of {len(body)} bytes"
    http = entry["http"]
    clean = http["end"] == "clean terminal chunk"
    return Case(name, http["status"], http["content_type"], http["headers"], clean, writes, entry["right"])


def read(pieces: list[Write], *, api: Api = Api.CHAT, max_tokens: int | None = None, eof: bool = True) -> Exchange:
    """The exchange that comes of these pieces, each read at its time after 100 s."""
    exchange = Exchange(100.0)
    exchange.sent_s = 100.0
    reader = ResponseReader(exchange, api, max_tokens)
    for piece in pieces:
        reader.feed(piece.data, 100.0 + piece.at_s)
        if reader.complete:
            break
    if eof and not reader.complete:
        reader.eof(100.0 + pieces[-1].at_s, "the connection was closed")
    return exchange


def summary(exchange: Exchange) -> tuple[object, ...]:
    """Everything of an exchange that does not depend on where bytes were cut."""
    usage = exchange.usage
    return (
        exchange.outcome,
        exchange.detail,
        exchange.status,
        exchange.tokens,
        exchange.token_source,
        exchange.text,
        exchange.reasoning,
        [(call.id, call.name, call.arguments) for call in exchange.tool_calls],
        exchange.finish_reason,
        (usage.prompt_tokens, usage.completion_tokens, usage.cached_prompt_tokens, usage.reasoning_tokens),
        len(exchange.chunks_s),
        exchange.streamed,
        exchange.done_marker,
        exchange.comments,
        exchange.anomalies,
    )


def finished_exchange(scheduled_s: float, *, ok: bool = True) -> Exchange:
    """One that was sent when it was due, with five tokens 10 ms apart after 100 ms; or one that failed."""
    exchange = Exchange(scheduled_s)
    exchange.started_s = exchange.connected_s = exchange.sent_s = scheduled_s
    exchange.first_byte_s = exchange.first_token_s = exchange.first_content_s = scheduled_s + 0.1
    exchange.chunks_s.extend(exchange.first_token_s + 0.01 * place for place in range(5))
    exchange.end_s = exchange.chunks_s[-1]
    exchange.outcome, exchange.streamed, exchange.status = Outcome.LENGTH if ok else Outcome.STATUS, True, 200
    exchange.usage.completion_tokens, exchange.usage.prompt_tokens = 5, 7
    return exchange
