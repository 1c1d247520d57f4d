"""What is asked of an endpoint: one request of one of its three interfaces, as the bytes of its body."""

from enum import StrEnum

import msgspec

__all__ = ["Api", "Ask"]


class Api(StrEnum):
    """The interfaces of an OpenAI-compatible server that answer questions."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    RESPONSES = "responses"

    @property
    def path(self) -> str:
        """Below the base address."""
        return _PATHS[self]


_PATHS = {Api.CHAT: "/v1/chat/completions", Api.COMPLETIONS: "/v1/completions", Api.RESPONSES: "/v1/responses"}
_encoder = msgspec.json.Encoder()


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request. Field names of the body are the interface's own."""

    api: Api = Api.CHAT
    messages: tuple[dict[str, object], ...] = ()
    """For chat, and as ``input`` of responses."""
    prompt: str | list[int] = ""
    """For completions; for the others, when there are no messages, the one message of a user."""
    max_tokens: int | None = None
    """Limit of the answer; None = the server's own."""
    stream: bool = True
    include_usage: bool = True
    """Ask for the usage of a stream (``stream_options``); servers that do not know it are found out by ``features``."""
    extra: dict[str, object] = {}
    """Further fields of the body (``temperature``, ``seed``, ``ignore_eos``, ``tools``); they win over ours."""

    def body(self, model: str) -> bytes:
        """The JSON that is sent."""
        fields: dict[str, object] = {"model": model, **self._question(), "stream": self.stream}
        if self.max_tokens is not None:
            fields["max_output_tokens" if self.api is Api.RESPONSES else "max_tokens"] = self.max_tokens
        if self.stream and self.include_usage and self.api is not Api.RESPONSES:
            fields["stream_options"] = {"include_usage": True}
        return _encoder.encode({**fields, **self.extra})

    def _question(self) -> dict[str, object]:
        if self.api is Api.COMPLETIONS:
            return {"prompt": self.prompt}
        key = "input" if self.api is Api.RESPONSES else "messages"
        return {key: self.messages or ({"role": "user", "content": self.prompt},)}
