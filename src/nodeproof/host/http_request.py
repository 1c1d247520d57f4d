"""One HTTP/1.1 request head, strictly: what is not exactly right is refused, never guessed at (RFC 9112)."""

import re
from typing import NamedTuple

__all__ = ["MAX_HEAD_BYTES", "BadRequest", "Ends", "Request", "parse_head", "quality"]

MAX_HEAD_BYTES = 16 * 1024
_MAX_FIELDS = 100
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
Ends = tuple[tuple[str, int], tuple[str, int]]
"""Addresses of the client's and the server's end of a TCP connection."""
_VERSION = re.compile(rb"HTTP/1\.[01]")
_NOT_IN_HEAD = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class BadRequest(Exception):  # noqa: N818 - an answer to the client, not a failure of ours
    """The request is refused with this status."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(reason)


class Request(NamedTuple):
    """A request."""

    method: str
    path: str
    """As it was sent, without the query; always begins with a slash."""
    query: str
    headers: dict[str, str]
    """By lower-case name; repeated fields joined with commas."""
    keep_alive: bool
    body_bytes: int = 0
    """Length of the body that follows the head."""
    body: bytes = b""
    ends: Ends | None = None
    """Whose connection it came over, where the server was asked to tell."""

    def accepts_gzip(self) -> bool:
        """Whether the client asked for gzip."""
        weights = quality(self.headers.get("accept-encoding", ""))
        return weights.get("gzip", weights.get("*", 0.0)) > 0


def parse_head(head: bytes, most_body_bytes: int = 0) -> Request:
    """The request whose head, without the empty line at its end, is ``head``; its body is still to come. Raises BadRequest."""
    lines = head.split(b"\r\n")
    if any(_NOT_IN_HEAD.search(line) for line in lines):
        raise BadRequest(400, "control characters in the request head")
    method, target, version = _request_line(lines[0])
    headers = _fields(lines[1:])
    if version == "HTTP/1.1" and "host" not in headers:
        raise BadRequest(400, "no Host field")
    body_bytes = _body_bytes(headers, most_body_bytes)
    path, _, query = target.partition("?")
    tokens = {token.strip().lower() for token in headers.get("connection", "").split(",")}
    keep_alive = "close" not in tokens and (version == "HTTP/1.1" or "keep-alive" in tokens)
    return Request(method, path, query, headers, keep_alive, body_bytes)


def _body_bytes(headers: dict[str, str], most: int) -> int:
    length = headers.get("content-length", "0")
    if not most:
        if "transfer-encoding" in headers or length != "0":
            raise BadRequest(413, "no request here has a body")
        return 0
    if "transfer-encoding" in headers:
        raise BadRequest(411, "say how long the body is (Content-Length)")
    if "expect" in headers:
        raise BadRequest(417, "no expectation is met here; send the body with the head")
    if not (length.isascii() and length.isdecimal()):
        raise BadRequest(400, "Content-Length is no number")
    if len(length) > 12 or int(length) > most:
        raise BadRequest(413, f"a body has at most {most} bytes here")
    return int(length)


def _request_line(line: bytes) -> tuple[str, str, str]:
    parts = line.split(b" ")
    if len(parts) != 3 or _TOKEN.fullmatch(parts[0]) is None:
        raise BadRequest(400, "the first line is no request line")
    if _VERSION.fullmatch(parts[2]) is None:
        raise BadRequest(505 if parts[2].startswith(b"HTTP/") else 400, "only HTTP/1.0 and HTTP/1.1 are spoken here")
    target = parts[1].decode("latin-1")
    if target.lower().startswith("http://"):
        # The form that proxies use; the Host field still decides who is meant.
        target = "/" + target[7:].partition("/")[2]
    if not target.startswith("/"):
        raise BadRequest(400, "the target of a request begins with a slash")
    return parts[0].decode("ascii"), target.partition("#")[0], parts[2].decode("ascii")


def _fields(lines: list[bytes]) -> dict[str, str]:
    if len(lines) > _MAX_FIELDS:
        raise BadRequest(431, f"more than {_MAX_FIELDS} header fields")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or _TOKEN.fullmatch(name) is None:
            raise BadRequest(400, "a header field is not written as name: value")
        key = name.decode("ascii").lower()
        text = value.strip(b" \t").decode("latin-1")
        if key in headers:
            if key in {"host", "content-length"}:
                raise BadRequest(400, f"two {key} fields")
            text = f"{headers[key]}, {text}"
        headers[key] = text
    return headers


def quality(field: str) -> dict[str, float]:
    """Weights of a field such as ``gzip;q=0.5, br``, by lower-case value with its parameters other than ``q``."""
    weights = {}
    for item in field.split(","):
        parts = [part.strip() for part in item.split(";")]
        weight = 1.0
        kept = [parts[0].lower()]
        for part in parts[1:]:
            key, _, value = part.partition("=")
            if key.strip().lower() == "q":
                weight = _weight(value.strip())
            else:
                kept.append(part.replace(" ", "").lower())
        if kept[0]:
            weights[";".join(kept)] = weight
    return weights


def _weight(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0.0 <= value <= 1.0 else 0.0
