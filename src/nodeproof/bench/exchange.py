"""What came of one request: how it ended, every time stamp, what was said, and what the server counted.

Times are seconds of CLOCK_MONOTONIC **of the client**, taken when a socket was read or written; 0.0 = it never came to that.
Whatever the server says of its own times stands in :attr:`Exchange.server` and is labelled so wherever it is shown.
"""

from array import array
from enum import StrEnum

__all__ = ["Exchange", "Outcome", "ServerTimes", "TokenSource", "ToolCall", "Usage"]


class Outcome(StrEnum):
    """How a request ended. Only the first three enter statistics of speed."""

    STOP = "stop"
    """The answer ended by itself."""
    LENGTH = "length"
    """It reached its limit of tokens."""
    TOOL_CALLS = "tool_calls"
    """It ended with calls of tools."""
    FILTERED = "filtered"
    """A content filter ended it."""
    ABORTED = "aborted"
    """The server says that it gave up (``finish_reason: abort``, ``cancelled``)."""
    NO_FINISH = "no_finish"
    """The stream ended as it should, but nothing said why the answer ends: it may have been cut."""
    TRUNCATED = "truncated"
    """The connection ended within the answer."""
    SERVER_ERROR = "server_error"
    """An error object under status 200, before or within the answer."""
    STATUS = "status"
    """An HTTP status other than 200."""
    REDIRECT = "redirect"
    """A redirection, which is never followed: the number would be another server's."""
    WRONG_TYPE = "wrong_type"
    """Neither an event stream nor JSON (a proxy's HTML page)."""
    ENCODED = "encoded"
    """A content encoding that was not asked for and is not read."""
    MALFORMED = "malformed"
    """Bytes that are no HTTP, no events or no JSON."""
    EMPTY = "empty"
    """A complete answer without any content."""
    OVERSIZE = "oversize"
    """More than the limit of the client."""
    DNS = "dns"
    """The host's name could not be resolved."""
    CONNECT = "connect"
    """No connection could be made."""
    TLS = "tls"
    """The server's certificate is not to be trusted, or no encryption could be agreed on."""
    RESET = "reset"
    """The connection ended before anything of the answer came."""
    CONNECT_TIMEOUT = "connect_timeout"
    FIRST_BYTE_TIMEOUT = "first_byte_timeout"
    IDLE_TIMEOUT = "idle_timeout"
    TOTAL_TIMEOUT = "total_timeout"
    CANCELLED = "cancelled"
    """We stopped it."""
    PENDING = "pending"
    EXHAUSTED = "exhausted"
    """This machine had no socket, port or descriptor left for it: the client's limit, not the server's."""

    @property
    def ok(self) -> bool:
        """Whether the answer is whole."""
        return self in _WHOLE


_WHOLE = frozenset({Outcome.STOP, Outcome.LENGTH, Outcome.TOOL_CALLS})


class TokenSource(StrEnum):
    """Who counted the tokens of the answer."""

    USAGE = "usage"
    """The server."""
    CHUNKS = "chunks"
    """We: one a chunk that carried something, since the server gave no usage. Wrong where a chunk holds several."""
    NONE = "none"
    """Nobody: there was no stream and no usage."""


class Usage:
    """What the server counted. None = not said."""

    __slots__ = ("accepted_prediction_tokens", "cached_prompt_tokens", "completion_tokens", "prompt_tokens", "reasoning_tokens")

    def __init__(self) -> None:
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.cached_prompt_tokens: int | None = None
        self.reasoning_tokens: int | None = None
        self.accepted_prediction_tokens: int | None = None


class ServerTimes:
    """What the server says of its own times, in milliseconds of its own clock. None = not said."""

    __slots__ = ("decode_ms", "tokens_per_s", "total_ms", "ttft_ms")

    def __init__(self) -> None:
        self.ttft_ms: float | None = None
        self.decode_ms: float | None = None
        self.total_ms: float | None = None
        self.tokens_per_s: float | None = None


class ToolCall:
    """One call of a tool, put together from its deltas; the arguments are left as the text that came."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments = ""


class Exchange:
    """One request and its answer."""

    __slots__ = (
        "_reasoning",
        "_text",
        "anomalies",
        "chunks_s",
        "comments",
        "connected_s",
        "detail",
        "done_marker",
        "end_s",
        "finish_reason",
        "first_byte_s",
        "first_content_s",
        "first_event_s",
        "first_reasoning_s",
        "first_role_s",
        "first_token_s",
        "first_tool_s",
        "id",
        "model",
        "outcome",
        "received_bytes",
        "retry_after_s",
        "reused",
        "scheduled_s",
        "sent_s",
        "server",
        "started_s",
        "status",
        "streamed",
        "tool_calls",
        "usage",
        "usage_tokens",
    )

    def __init__(self, scheduled_s: float) -> None:
        self.outcome = Outcome.PENDING
        self.detail = ""
        """What went wrong, in words: thing and place."""
        self.status = 0
        """Of HTTP; 0 = no head came."""
        self.retry_after_s: float | None = None
        self.scheduled_s = scheduled_s
        """When it was meant to begin: latencies from here hold the client's own delay."""
        self.started_s = 0.0
        """When the client began with it."""
        self.connected_s = 0.0
        """When it had a connection; with :attr:`reused`, an old one."""
        self.sent_s = 0.0
        """Just before its first byte was written."""
        self.first_byte_s = 0.0
        self.first_event_s = 0.0
        self.first_role_s = 0.0
        """First chunk with a role: on some servers long before any token."""
        self.first_reasoning_s = 0.0
        self.first_content_s = 0.0
        """First text for the reader."""
        self.first_tool_s = 0.0
        self.first_token_s = 0.0
        """First of reasoning, content and tool call."""
        self.end_s = 0.0
        """When the last byte came."""
        self.chunks_s = array("d")
        """Stamp of each chunk that carried a token, in order."""
        self.usage_tokens = array("q")
        """With continuous usage: completion tokens counted so far, one a chunk."""
        self.reused = False
        self.streamed = False
        """Whether the answer came as a stream; a server that ignores ``stream`` gives one body, without a TTFT."""
        self.received_bytes = 0
        self.comments = 0
        self.done_marker = False
        self.finish_reason: str | None = None
        self.id = ""
        """The server's own name of the answer."""
        self.model = ""
        self.usage = Usage()
        self.server = ServerTimes()
        self.tool_calls: list[ToolCall] = []
        self.anomalies: list[str] = []
        """Odd things that did not make it a failure, a few words each."""
        self._text: list[str] = []
        self._reasoning: list[str] = []

    @property
    def ok(self) -> bool:
        """Whether the answer is whole."""
        return self.outcome.ok

    @property
    def text(self) -> str:
        """The answer."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """What the model thought aloud."""
        return "".join(self._reasoning)

    @property
    def token_source(self) -> TokenSource:
        """Who counted :attr:`tokens`."""
        if self.usage.completion_tokens is not None:
            return TokenSource.USAGE
        return TokenSource.CHUNKS if self.streamed else TokenSource.NONE

    @property
    def tokens(self) -> int:
        """Completion tokens by :attr:`token_source`."""
        counted = self.usage.completion_tokens
        return len(self.chunks_s) if counted is None else counted

    @property
    def ttft_s(self) -> float | None:
        """From the first byte sent to the chunk with the first token; None when no token came as a stream."""
        return self.first_token_s - self.sent_s if self.first_token_s else None

    @property
    def scheduled_ttft_s(self) -> float | None:
        """The same from the intended start."""
        return self.first_token_s - self.scheduled_s if self.first_token_s else None

    @property
    def e2e_s(self) -> float:
        """From the first byte sent to the last one read."""
        return self.end_s - self.sent_s

    @property
    def tpot_s(self) -> float | None:
        """Time an output token after the first, from the first token to the last chunk with one; None below two tokens."""
        if not self.first_token_s or self.tokens < 2 or len(self.chunks_s) < 2:
            return None
        return (self.chunks_s[-1] - self.first_token_s) / (self.tokens - 1)

    @property
    def one_token_a_chunk(self) -> bool:
        """Whether gaps between chunks are gaps between tokens, as far as the server's count can tell."""
        return self.usage.completion_tokens == len(self.chunks_s)

    def add_text(self, text: str) -> None:
        """A piece of the answer."""
        self._text.append(text)

    def add_reasoning(self, text: str) -> None:
        """A piece of the thinking."""
        self._reasoning.append(text)

    def odd(self, what: str) -> None:
        """Note an anomaly, once."""
        if what not in self.anomalies:
            self.anomalies.append(what)

    def fail(self, outcome: Outcome, detail: str) -> None:
        """End it so, unless it has ended already."""
        if self.outcome is Outcome.PENDING:
            self.outcome = outcome
            self.detail = detail
