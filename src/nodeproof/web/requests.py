"""What a request holds, judged by its types; and why one is refused."""

import re
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec

from nodeproof.web.contract import MAX_BODY_BYTES
from nodeproof.web.http_messages import Request

__all__ = ["Refused", "body_of", "media_type", "path_of", "query_of", "read_body"]

_T = TypeVar("_T")
_MAX_PARAMETERS = 32
_INTEGER = re.compile(r"-?[0-9]{1,20}")


class Refused(Exception):  # noqa: N818 - an answer, not a failure
    """The answer is a problem with this status."""

    def __init__(self, status: int, error: str, detail: str = "", headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.error = error
        self.detail = detail
        self.headers = headers or {}
        super().__init__(detail or error)


def query_of(request: Request, kind: type[_T]) -> _T:
    """The parameters behind the question mark; those that ``kind`` does not know are passed over. Raises Refused."""
    try:
        pairs = parse_qsl(request.query, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except ValueError as error:
        raise Refused(400, "bad parameters", f"the query cannot be read: {error}") from None
    found: dict[str, str] = {}
    for name, text in pairs:
        if name in found:
            raise Refused(400, "bad parameters", f"{name[:80]!r} is given twice")
        found[name] = text
    for name in _integers(kind) & found.keys():
        if not _INTEGER.fullmatch(found[name]):
            raise Refused(400, "bad parameters", f"{name}: {found[name][:80]!r} is no whole number")
    return _converted(found, kind)


def _integers(kind: type) -> set[str]:
    """Names of the fields that hold whole numbers: msgspec would take ``1e1`` for one."""
    return {field.name for field in msgspec.structs.fields(kind) if getattr(field.type, "__origin__", field.type) is int}


def path_of(request: Request, kind: type[_T]) -> _T:
    """The parameters in the path. Raises Refused: nothing goes by a name that is none."""
    try:
        return _converted(request.path_parameters, kind)
    except Refused as refused:
        raise Refused(404, "not found", refused.detail) from None


def _converted(found: Mapping[str, str], kind: type[_T]) -> _T:
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(400, "bad parameters", str(error)) from None


def media_type(request: Request) -> str:
    """Of the body, without its parameters."""
    return request.header("content-type").partition(";")[0].strip().lower()


async def read_body(request: Request) -> bytes:
    """All of the body. Raises Refused when it is longer than it may be."""
    told = request.header("content-length")
    if told.isascii() and told.isdecimal() and int(told) > MAX_BODY_BYTES:
        raise _too_large()
    body = bytearray()
    async for part in request.body():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise _too_large()
    return bytes(body)


async def body_of(request: Request, kind: type[_T]) -> _T:
    """The body as JSON: one value, no unknown fields. Raises Refused."""
    raw = await read_body(request)
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, "bad request body", str(error)) from None


def _too_large() -> Refused:
    return Refused(413, "content too large", f"at most {MAX_BODY_BYTES} bytes", {"Connection": "close"})
