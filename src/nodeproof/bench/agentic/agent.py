"""A model at work: it is told the task and the tools, and asked until it has nothing more to do."""

import time
from collections.abc import Callable

import msgspec

from nodeproof.bench.agentic.tools import TOOLS, Workbench
from nodeproof.bench.ask import Ask
from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.session import Session

__all__ = ["SYSTEM", "TASK", "Work", "work"]

SYSTEM = (
    "You are a careful software engineer. You work in an empty project directory on a machine without network, by the tools you "
    "are given. Do what is asked step by step, look at the results of your commands, and mend what does not work. "
    "When all is done, say so in one sentence and call no tool."
)
TASK = """Write a small HTTP server, test it, try it out, and stop it again.

* GET /ping is answered with status 200 and the body pong.
* It listens on 127.0.0.1, on the port that the environment variable PORT names.
* Use any language that this machine has. Nothing can be downloaded.
* run.sh in the project directory starts the server and stays in the foreground: it will be run as `PORT=12345 bash run.sh`.
* build.sh, if the server has to be built first, builds it.
* test.sh runs the tests that you write for it, and exits with 0 only when they pass.

Then run test.sh, start the server in the background with a port of your choice, ask it for /ping with a client such as curl, and
stop it, so that nothing of yours goes on running.
"""
_REFUSED = frozenset({400, 404, 405, 422, 501})


class Work(msgspec.Struct, kw_only=True):
    """What a model did."""

    turns: int = 0
    """Answers that came."""
    calls: int = 0
    """Calls of tools."""
    agent_s: float = 0.0
    """Time of the answers, without that of the tools."""
    tokens: int = 0
    finished: bool = False
    """It said that it is done; otherwise it ran out of turns or time."""
    failure: str = ""
    """Why no whole answer came; nothing is proven then."""
    refused: bool = False
    """The endpoint takes no tools."""
    messages: list[dict[str, object]] = []


def work(
    session: Session,
    bench: Workbench,
    done: Work,
    *,
    task: str = TASK,
    max_turns: int,
    max_tokens: int,
    temperature: float,
    tell: Callable[[Work], None],
    left_s: Callable[[], float],
) -> None:
    """Let the model work, and note it in ``done`` as it goes.

    ``tell`` is called after each turn; when nothing is ``left_s``, it ends.

    Raises SandboxError, RunCancelled.
    """
    done.messages += [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]
    while done.turns < max_turns and left_s() > 0:
        begun_s = time.monotonic()
        extra: dict[str, object] = {"tools": list(TOOLS), "tool_choice": "auto", "temperature": temperature}
        exchange = session.send(Ask(messages=tuple(done.messages), max_tokens=max_tokens, extra=extra))
        done.agent_s += time.monotonic() - begun_s
        if not exchange.ok:
            done.refused = done.turns == 0 and exchange.outcome is Outcome.STATUS and exchange.status in _REFUSED
            done.failure = f"{exchange.outcome}: {exchange.detail}"[:300]
            return
        done.turns += 1
        done.tokens += exchange.tokens
        done.messages.append(_said(exchange, done.turns))
        tell(done)
        if not exchange.tool_calls:
            done.finished = exchange.outcome is not Outcome.LENGTH
            return
        for place, call in enumerate(exchange.tool_calls):
            done.calls += 1
            result = bench.call(call.name, call.arguments)
            done.messages.append({"role": "tool", "tool_call_id": _call_id(call.id, done.turns, place), "content": result})


def _said(exchange: Exchange, turn: int) -> dict[str, object]:
    """An answer as the next request repeats it."""
    message: dict[str, object] = {"role": "assistant", "content": exchange.text}
    if exchange.tool_calls:
        message["tool_calls"] = [
            {
                "id": _call_id(call.id, turn, place),
                "type": "function",
                "function": {"name": call.name, "arguments": _sound(call.arguments)},
            }
            for place, call in enumerate(exchange.tool_calls)
        ]
    return message


def _sound(arguments: str) -> str:
    """Arguments that a server can read again: of what is no JSON, nothing."""
    try:
        msgspec.json.decode(arguments or "{}", type=dict[str, object])
    except msgspec.MsgspecError:
        return "{}"
    return arguments or "{}"


def _call_id(given: str, turn: int, place: int) -> str:
    return given or f"call-{turn}-{place}"
