"""A server whose answers a test makes up, and runs of benchmarks against it."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from nodeproof.bench.benchmarks import DESCRIPTORS
from nodeproof.bench.testing import Received, Script, ScriptServer, Step, chat_chunk, sse
from nodeproof.bench.testing.model import document
from nodeproof.bench.testing.script import Behaviour
from nodeproof.model.run import RunRecord
from nodeproof.runs.endpoint import Secret, TargetEndpoint
from nodeproof.runs.executor import BenchmarkExecutor
from nodeproof.runs.headless import HeadlessOptions, RunReporter, run_blocking
from nodeproof.runs.store import RunStore

__all__ = ["BY_ID", "Answering", "Ran", "Said", "last_text", "run_benchmark", "status"]

BY_ID = {name: descriptor for descriptor in DESCRIPTORS for name in (descriptor.id, *descriptor.aliases)}


class Said(NamedTuple):
    """One answer."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str | None = ""
    """Empty = what fits; None = the stream ends without one."""
    cached: int | None = None
    tokens: int | None = None
    """As the server counts; None = one a word."""


class Answering(Behaviour):
    """Answers chat questions with what a function makes of their bodies; also where it gives a script of its own."""

    def __init__(self, answer: Callable[[dict[str, Any]], Said | Script], *, delay_s: float = 0.0) -> None:
        self._answer = answer
        self._delay_s = delay_s
        self.bodies: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    def __call__(self, request: Received) -> Script:
        if request.method == "GET":
            if request.path == "/v1/models":
                return document({"object": "list", "data": [{"id": "m", "object": "model"}]})
            return document({"error": {"message": "no such route"}}, status=404)
        body: dict[str, Any] = msgspec.json.decode(request.body)
        if last_text(body) == "Answer with the word yes.":
            return self._stream(body, Said("yes"))
        self.bodies.append(body)
        found = self._answer(body)
        return found if isinstance(found, Script) else self._stream(body, found)

    def _stream(self, body: dict[str, Any], said: Said) -> Script:
        words = said.text.split(" ") if said.text else []
        events = [chat_chunk({"content": word if place == 0 else f" {word}"}) for place, word in enumerate(words)]
        for place, (name, arguments) in enumerate(said.calls):
            piece = {"index": place, "id": f"call-{place}", "function": {"name": name, "arguments": arguments}}
            events.append(chat_chunk({"tool_calls": [piece]}))
        finish = ("tool_calls" if said.calls else "stop") if said.finish == "" else said.finish
        if finish is not None:
            events.append(chat_chunk({}, finish=finish))
        if body.get("stream_options", {}).get("include_usage"):
            count = len(words) + len(said.calls) if said.tokens is None else said.tokens
            usage: dict[str, object] = {"prompt_tokens": 50, "completion_tokens": count, "total_tokens": 50 + count}
            if said.cached is not None:
                usage["prompt_tokens_details"] = {"cached_tokens": said.cached}
            events.append(
                sse({"id": "chatcmpl-0", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": usage})
            )
        if finish is not None:
            events.append(b"data: [DONE]\n\n")
        return Script(steps=[Step(self._delay_s, event) for event in events])


def last_text(body: Mapping[str, Any]) -> str:
    """The last message."""
    return str(body["messages"][-1]["content"])


def status(code: int, **headers: str) -> Script:
    """A refusal."""
    script = document({"error": {"message": "planted"}}, status=code)
    script.headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return script


class Ran(NamedTuple):
    """A run that is over."""

    record: RunRecord
    path: Path

    @property
    def verdict(self) -> tuple[str, str]:
        return str(self.record.verdict.kind), self.record.verdict.reason

    @property
    def metrics(self) -> dict[str, float]:
        return self.record.frame.metrics

    def lines(self, name: str) -> list[dict[str, Any]]:
        """A file of the record, line by line."""
        return [msgspec.json.decode(line) for line in (self.path / "files" / name).read_bytes().splitlines()]


def run_benchmark(
    home: Path,
    server: ScriptServer | str,
    name: str,
    *,
    should_cancel: Callable[[], bool] = lambda: False,
    key: str = "sk-planted",
    **params: Any,
) -> Ran:
    """Run a benchmark against a server."""
    executor = BenchmarkExecutor(home=str(home), store=RunStore(str(home / "runs")))
    target = TargetEndpoint.new(server if isinstance(server, str) else server.url, "m", key=Secret(key))
    outcome = run_blocking(
        executor,
        BY_ID[name],
        {param: str(value) for param, value in params.items()},
        RunReporter(),
        options=HeadlessOptions(target=target, poll_s=0.02),
        should_cancel=should_cancel,
    )
    return Ran(outcome.record, Path(outcome.saved_to))
