"""Requests that no server should take, each wrong in one way."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

__all__ = ["MALFORMED", "Malformed", "head"]


class Malformed(NamedTuple):
    """One kind of bad request."""

    name: str
    build: Callable[[str, str], bytes]
    """Bytes for a ``Host`` with path prefix and key line (see :func:`head`), and a model."""
    ends: bool = False
    """Our direction is closed after it: the request says that more will come, and none does."""


def head(fields: str, length: int | None, *, method: str = "POST", path: str = "/v1/chat/completions", more: str = "") -> bytes:
    """Head of a request. ``fields``: prefix of the path, a blank, and the lines that every request has."""
    prefix, _, lines = fields.partition(" ")
    size = "" if length is None else f"Content-Length: {length}\r\n"
    return f"{method} {prefix}{path} HTTP/1.1\r\n{lines}Content-Type: application/json\r\n{size}{more}\r\n".encode("latin-1")


def _with(body: Callable[[str], bytes]) -> Callable[[str, str], bytes]:
    def build(fields: str, model: str) -> bytes:
        data = body(model)
        return head(fields, len(data)) + data

    return build


def _json(model: str, **fields: object) -> bytes:
    return msgspec.json.encode({"model": model, "messages": [{"role": "user", "content": "x"}], "max_tokens": 4, **fields})


def _short(fields: str, model: str) -> bytes:
    data = _json(model)
    return head(fields, len(data) + 4096) + data


def _bad_chunk(fields: str, model: str) -> bytes:
    del model
    return head(fields, None, more="Transfer-Encoding: chunked\r\n") + b"zz\r\nrubbish\r\n"


def _long_head(fields: str, model: str) -> bytes:
    data = _json(model)
    return head(fields, len(data), more=f"X-Filler: {'x' * (1 << 20)}\r\n") + data


def _two_lengths(fields: str, model: str) -> bytes:
    data = _json(model)
    return head(fields, len(data), more=f"Content-Length: {len(data) + 7}\r\n") + data


MALFORMED = (
    Malformed("no-json", _with(lambda _: b"this is no JSON")),
    Malformed("cut-json", _with(lambda model: _json(model)[:-9])),
    Malformed("deep-json", _with(lambda _: b'{"messages":' + b"[" * 100_000)),
    Malformed("bad-utf8", _with(lambda model: _json(model).replace(b'"x"', b'"\xff\xfe\xc3"'))),
    Malformed("empty-body", _with(lambda _: b"")),
    Malformed("wrong-types", _with(lambda model: _json(model, messages=7, max_tokens="many"))),
    Malformed("no-messages", _with(lambda model: msgspec.json.encode({"model": model}))),
    Malformed("negative-tokens", _with(lambda model: _json(model, max_tokens=-5))),
    Malformed("not-a-number", _with(lambda model: _json(model, temperature=0).replace(b'"temperature":0', b'"temperature":NaN'))),
    Malformed("wrong-method", lambda fields, _: head(fields, 0, method="DELETE")),
    Malformed("no-such-route", lambda fields, _: head(fields, 0, path="/v1/no-such-route")),
    Malformed("two-lengths", _two_lengths),
    Malformed("bad-chunk", _bad_chunk, ends=True),
    Malformed("short-body", _short, ends=True),
    Malformed("long-head", _long_head),
    Malformed("no-http", lambda _fields, _model: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 no HTTP \x00\r\n\r\n", ends=True),
)
