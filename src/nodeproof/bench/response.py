"""One HTTP response being read: head, framing, events, and the end, judged as strictly as a measurement needs."""

import datetime as dt
import email.utils
import time
from array import array
from typing import TYPE_CHECKING

import httptools

from nodeproof.bench.answers import AnswerReader, MalformedError, conclude, reader_for
from nodeproof.bench.ask import Api
from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.sse import SseOverflow, SseSplitter

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MAX_BODY_BYTES", "ResponseReader"]

MAX_BODY_BYTES = 64 << 20
_MAX_ERROR_BYTES = 64 << 10
_EXCERPT_BYTES = 320
_MAX_HEAD_BYTES = 256 << 10
_KEPT_HEADERS = frozenset(
    {b"content-type", b"content-encoding", b"retry-after", b"location", b"transfer-encoding", b"content-length"}
)


class ResponseReader:
    """Reads the answer to one request into its exchange. The methods that begin with ``on_`` are called by httptools."""

    def __init__(self, exchange: Exchange, api: Api, max_tokens: int | None) -> None:
        self.complete = False
        """Whether all of it has come."""
        self.keep_alive = False
        """Once complete: whether the connection can be used again."""
        self._exchange = exchange
        self._max_tokens = max_tokens
        self._bodies: list[bytes] = []
        self.on_body = self._bodies.append
        """Called by the parser, without a frame of Python in between; what it collects is taken after each feed."""
        self._parser = httptools.HttpResponseParser(self)
        self._message_complete = False
        self._headers: dict[bytes, bytes] = {}
        self._stamp_s = 0.0
        self._head_bytes = 0
        self._head_done = False
        self._framed = False
        self._answer: AnswerReader = reader_for(api, exchange)
        self._events: SseSplitter | None = None
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._take: Callable[[bytes], None] = self._sniff

    @property
    def head_done(self) -> bool:
        """Whether the head has come."""
        return self._head_done

    @property
    def streams(self) -> bool:
        """Whether events come now, which may be decoded later as long as they keep their stamps."""
        return self._events is not None

    @property
    def ended_within(self) -> bool:
        """Whether the marker of the end has come, though the connection shows no end."""
        exchange = self._exchange
        return exchange.done_marker and exchange.finish_reason is not None

    def feed(self, data: bytes, stamp_s: float) -> None:
        """What was read at ``stamp_s``."""
        exchange = self._exchange
        self._stamp_s = stamp_s
        exchange.received_bytes += len(data)
        if not exchange.first_byte_s:
            exchange.first_byte_s = stamp_s
        if not self._head_done:
            self._head_bytes += len(data)
        self._parse(data)
        if self._head_bytes > _MAX_HEAD_BYTES and not self._head_done:
            exchange.fail(Outcome.OVERSIZE, f"the head of the response is larger than {_MAX_HEAD_BYTES} bytes")
            self.complete = True

    def feed_together(self, pieces: list[bytes], stamps: "array[float]") -> None:
        """What was read at several moments of a stream."""
        if len(pieces) > 1 and all(piece.endswith(b"\n\n\r\n") and piece.count(b"\r\n") == 2 for piece in pieces):
            # Each piece is one chunk of HTTP: the bodies come in the same number and order.
            raw = b"".join(pieces)
            self._exchange.received_bytes += len(raw)
            self._stamp_s = stamps[-1]
            self._parse(raw, stamps)
            return
        for data, stamp_s in zip(pieces, stamps, strict=True):
            if self.complete:
                return
            self.feed(data, stamp_s)

    def _parse(self, data: bytes, stamps: "array[float] | None" = None) -> None:
        bodies = self._bodies
        try:
            try:
                self._parser.feed_data(data)
            finally:
                if bodies:
                    self._take_bodies(bodies, stamps)
                    bodies.clear()
            if self._message_complete:
                self._complete()
        except (httptools.HttpParserError, MalformedError, SseOverflow) as error:
            self._fail_of(error)

    def _take_bodies(self, bodies: list[bytes], stamps: "array[float] | None") -> None:
        if self._take_plain(bodies, stamps):
            return
        if stamps is None or len(bodies) != len(stamps):
            if stamps is not None:
                self._exchange.odd("chunks of HTTP that were not written as they are framed: some stamps are late")
            for body in bodies:
                self._take(body)
            return
        last_s = self._stamp_s
        for body, stamp_s in zip(bodies, stamps, strict=True):
            self._stamp_s = stamp_s
            self._take(body)
        self._stamp_s = last_s

    def _take_plain(self, bodies: list[bytes], stamps: "array[float] | None") -> bool:
        """Take events that are one line of data each, without looking at every line; whether they are that.

        With ``stamps``, each body must be one event; without, all share the stamp of their read.
        """
        if self._events is None or len(bodies) == 1 or not self._events.idle:
            return False
        joined = b"".join(bodies)
        count = joined.count(b"\n\ndata: ") + 1
        plain = joined.startswith(b"data: ") and joined.endswith(b"\n\n") and joined.count(b"\n") == 2 * count
        if not plain or b"\r" in joined or (stamps is not None and not count == len(stamps) == len(bodies)):
            return False
        self._events.passed()
        shared = array("d", [self._stamp_s]) * count if stamps is None else stamps
        self._answer.events(joined[6:-2].split(b"\n\ndata: "), shared)
        return True

    def eof(self, stamp_s: float, why: str) -> None:
        """The connection ended; ``why`` in words."""
        exchange = self._exchange
        if self.complete:
            return
        self._stamp_s = stamp_s
        if not exchange.first_byte_s:
            exchange.fail(Outcome.RESET, f"{why} before the answer began")
        elif not self._head_done:
            exchange.fail(Outcome.TRUNCATED, f"{why} within the head of the answer")
        elif self._framed and not self.ended_within:
            self._last_words()
            reason = "" if exchange.finish_reason else ", without a finish_reason"
            exchange.fail(Outcome.TRUNCATED, f"{why} within the answer, after {len(exchange.chunks_s)} chunks{reason}")
        else:
            if self._framed:
                exchange.odd("the body was not ended as HTTP wants it")
            self._finish()
        self.complete = True
        exchange.end_s = exchange.end_s or stamp_s

    # Called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field."""
        key = name.lower()
        if key in _KEPT_HEADERS:
            self._headers[key] = value.strip()

    def on_headers_complete(self) -> None:
        """The head is there: decide what may follow it."""
        status = self._parser.get_status_code()
        if status < 200:  # an interim answer; the real one follows
            return
        exchange, headers = self._exchange, self._headers
        self._head_done = True
        exchange.status = status
        self._framed = b"content-length" in headers or b"chunked" in headers.get(b"transfer-encoding", b"").lower()
        encoding = headers.get(b"content-encoding", b"identity").lower()
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if encoding not in {b"identity", b""}:
            exchange.fail(Outcome.ENCODED, f"Content-Encoding {_latin(encoding)} though identity was asked for")
            self._take = self._ignore
        elif status != 200:
            self._take = self._keep_error
        elif kind == b"text/event-stream":
            self._begin_events()
        elif kind in {b"application/json", b"application/problem+json"}:
            self._take = self._keep
        elif kind in {b"", b"text/plain", b"application/octet-stream", b"application/x-ndjson"}:
            self._take = self._sniff
        else:
            self._take = self._keep_error
            exchange.odd(f"Content-Type {_latin(kind)}")

    def on_message_complete(self) -> None:
        """The end as HTTP tells it."""
        self._message_complete = self._head_done
        self.keep_alive = self._parser.should_keep_alive()

    def _complete(self) -> None:
        self._finish()
        self.complete = True
        self._exchange.end_s = self._stamp_s

    # Ways to take the body

    def _begin_events(self) -> None:
        self._events = SseSplitter(MAX_BODY_BYTES)
        self._exchange.streamed = True
        self._take = self._take_events

    def _take_events(self, data: bytes) -> None:
        answer, stamp_s = self._answer, self._stamp_s
        for name, event in self._events.feed(data):  # type: ignore[union-attr]  # set with this way
            answer.event(name, event, stamp_s)

    def _keep(self, data: bytes) -> None:
        self._body_bytes += len(data)
        if self._body_bytes > MAX_BODY_BYTES:
            raise SseOverflow(f"the body is larger than {MAX_BODY_BYTES} bytes")
        self._body.append(data)

    def _keep_error(self, data: bytes) -> None:
        if self._body_bytes < _MAX_ERROR_BYTES:
            self._keep(data)

    def _ignore(self, data: bytes) -> None:
        """Nothing of it can be read."""

    def _sniff(self, data: bytes) -> None:
        """No type was given: an object begins with a brace, a stream with a field."""
        start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        if start in {b"{", b"["}:
            self._take = self._keep
        else:
            self._begin_events()
        self._exchange.odd("no Content-Type that says what follows")
        self._take(data)

    # The end

    def _finish(self) -> None:
        exchange = self._exchange
        body = b"".join(self._body)
        if exchange.status != 200:
            self._bad_status(body)
        elif self._events is not None:
            self._last_words()
            conclude(exchange, self._max_tokens)
        elif self._take == self._keep:
            try:
                self._answer.body(body)
            except MalformedError as error:
                exchange.fail(Outcome.MALFORMED, str(error))
            conclude(exchange, self._max_tokens)
        elif self._take == self._sniff:
            exchange.fail(Outcome.EMPTY, "status 200 with an empty body")
        else:
            kind = _latin(self._headers.get(b"content-type", b""))
            exchange.fail(Outcome.WRONG_TYPE, f"status 200 with Content-Type {kind}: {_excerpt(body)}")

    def _last_words(self) -> None:
        """Events that lack only their empty line."""
        if self._events is None:
            return
        self._exchange.comments = self._events.comments
        try:
            for name, event in self._events.finish():
                self._answer.event(name, event, self._stamp_s)
        except MalformedError:
            self._exchange.odd("a piece of an event at the end")

    def _bad_status(self, body: bytes) -> None:
        exchange, status = self._exchange, self._exchange.status
        exchange.retry_after_s = _retry_after(self._headers.get(b"retry-after"))
        if 300 <= status < 400:
            place = _latin(self._headers.get(b"location", b"nowhere"))[:200]
            exchange.fail(Outcome.REDIRECT, f"status {status} to {place}; redirections are not followed: name the right address")
            return
        wait = "" if exchange.retry_after_s is None else f", retry after {exchange.retry_after_s:g} s"
        exchange.fail(Outcome.STATUS, f"status {status}{wait}: {_excerpt(body) or 'no body'}")

    def _fail_of(self, error: Exception) -> None:
        exchange = self._exchange
        if isinstance(error, SseOverflow):
            exchange.fail(Outcome.OVERSIZE, str(error))
        elif isinstance(error, MalformedError):
            exchange.fail(Outcome.MALFORMED, str(error))
        else:
            exchange.fail(Outcome.MALFORMED, f"the answer is no HTTP: {error}")
        self.complete = True
        exchange.end_s = self._stamp_s


def _latin(value: bytes) -> str:
    return value.decode("latin-1")[:200]


def _excerpt(body: bytes) -> str:
    """The beginning of a body on one line."""
    return " ".join(body[:_EXCERPT_BYTES].decode("utf-8", "ignore").split())


def _retry_after(value: bytes | None) -> float | None:
    """Seconds of a ``Retry-After`` field, which is a number or a date; None when it is neither."""
    if value is None:
        return None
    text = value.decode("latin-1").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return max(0.0, moment.timestamp() - time.time())
