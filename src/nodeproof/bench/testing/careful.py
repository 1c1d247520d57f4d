"""Behaviours that look at requests as a good server does, or lose something with each as a bad one does."""

import os

import msgspec

from nodeproof.bench.testing.model import document
from nodeproof.bench.testing.script import Behaviour, Received, Script, Served

__all__ = ["Careful", "Leaky"]

_MAX_PROMPT_BYTES = 1 << 20


class Careful(Behaviour):
    """Another behaviour behind a check of every request: what is wrong with one is said with a status of 400 to 499."""

    def __init__(self, base: Behaviour, max_body_bytes: int = _MAX_PROMPT_BYTES) -> None:
        self.base = base
        self._max_body_bytes = max_body_bytes

    @property
    def slots(self) -> int | None:
        """Those of the base."""
        return self.base.slots

    def __call__(self, request: Received) -> Script:
        """A refusal, else the base's answer."""
        status, problem = self._judge(request)
        if problem:
            return document({"error": {"message": problem, "type": "invalid_request_error"}}, status=status)
        return self.base(request)

    def ended(self, served: Served) -> None:
        """Told to the base."""
        self.base.ended(served)

    def _judge(self, request: Received) -> tuple[int, str]:
        if request.method == "GET":
            return 200, ""
        if request.method != "POST":
            return 405, f"{request.method} is not allowed"
        if len(request.body) > self._max_body_bytes:
            return 413, f"the request is larger than {self._max_body_bytes} bytes"
        if not request.path.endswith("/chat/completions"):
            return (200, "") if request.path.endswith(("completions", "tokenize", "responses")) else (404, "no such route")
        return self._judge_chat(request)

    @staticmethod
    def _judge_chat(request: Received) -> tuple[int, str]:
        try:
            fields = msgspec.json.decode(request.body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            return 400, f"no JSON: {error}"
        messages = fields.get("messages") if isinstance(fields, dict) else None
        if not isinstance(messages, list) or not messages:
            return 422, "messages: expected a list of messages"
        limit = fields.get("max_tokens", 1)
        if not isinstance(limit, int) or limit < 1:
            return 422, "max_tokens: expected a number above 0"
        return 200, ""


class Leaky(Behaviour):
    """Another behaviour that loses memory and descriptors with each question."""

    def __init__(self, base: Behaviour, *, kib: int = 0, files: int = 0) -> None:
        """``kib``, ``files``: lost with each."""
        self.base = base
        self._kib, self._files = kib, files
        self._lost: list[object] = []

    @property
    def slots(self) -> int | None:
        """Those of the base."""
        return self.base.slots

    def __call__(self, request: Received) -> Script:
        """The base's answer."""
        if request.method == "POST":
            self._lost.append(b"\1" * (self._kib << 10))
            self._lost += [open(os.devnull, "rb") for _ in range(self._files)]  # noqa: SIM115 - kept open on purpose
        return self.base(request)

    def ended(self, served: Served) -> None:
        """Told to the base."""
        self.base.ended(served)

    def give_back(self) -> None:
        """End of the leak: close and forget what was lost."""
        for lost in self._lost:
            close = getattr(lost, "close", None)
            if close is not None:
                close()
        self._lost.clear()
