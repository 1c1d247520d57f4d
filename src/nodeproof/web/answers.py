"""HTTP answers: JSON with a strong ETag and gzip, made once a version of the directory; problems as RFC 9457 has them."""

import gzip
import os
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from nodeproof.web.feed import View
from nodeproof.web.http_messages import Request, Response

__all__ = ["Body", "Kept", "answer", "problem"]

_GZIP_FROM_BYTES = 600
_GZIP_LEVEL = 4
_RUN = os.urandom(6).hex()
_64_BITS = (1 << 64) - 1
"""Python hashes bytes with SipHash and a secret of the process: as good as a digest for telling contents of one process apart,
without hashlib, which brings three megabytes of OpenSSL along."""
_encode = msgspec.json.Encoder().encode


class Body(NamedTuple):
    """One content with its two forms."""

    plain: bytes
    packed: bytes | None
    """Gzipped, where that is worth it."""
    media_type: str
    etag: str

    @classmethod
    def of(cls, plain: bytes, media_type: str, *, level: int = _GZIP_LEVEL) -> "Body":
        """Pack and mark ``plain``."""
        packed = gzip.compress(plain, level, mtime=0) if len(plain) >= _GZIP_FROM_BYTES else None
        return cls(plain, packed, media_type, f'"{_RUN}-{len(plain):x}-{hash(plain) & _64_BITS:x}"')


class Kept:
    """The document that ``make`` makes of a view, kept until the view changes."""

    def __init__(self, make: Callable[[View], object | None], *, ages: bool = False) -> None:
        """``ages``: the document tells ages, which change while the files do not."""
        self._make = make
        self._ages = ages
        self._version = -1
        self._body: Body | None = None

    def body(self, view: View) -> Body | None:
        """The document; None when the view has no verdict yet."""
        if self._ages or view.version != self._version:
            document = self._make(view)
            self._body = None if document is None else Body.of(_encode(document), "application/json")
            self._version = view.version
        return self._body


def answer(request: Request, body: Body, *, cache_control: str = "no-cache") -> Response:
    """``body`` in the form that the client takes; 304 when it has it already."""
    headers = {"ETag": body.etag, "Cache-Control": cache_control, "Vary": "Accept-Encoding"}
    known = request.header("if-none-match")
    if known == "*" or body.etag in {tag.strip().removeprefix("W/") for tag in known.split(",")}:
        return Response(status=304, headers=headers)
    if body.packed is not None and _takes_gzip(request.header("accept-encoding")):
        return Response(body.packed, media_type=body.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(body.plain, media_type=body.media_type, headers=headers)


def _takes_gzip(accept: str) -> bool:
    for choice in accept.lower().split(","):
        name, _, weight = choice.replace(" ", "").partition(";")
        if name in {"gzip", "*"}:
            return weight not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


def problem(status: int, error: str, detail: str = "", headers: dict[str, str] | None = None, **more: object) -> Response:
    """An RFC 9457 problem that also has the reference's ``error``."""
    content = {"type": "about:blank", "title": error, "status": status, "detail": detail or error, "error": error, **more}
    return Response(
        _encode(content),
        status=status,
        media_type="application/problem+json",
        headers={"Cache-Control": "no-store", **(headers or {})},
    )
