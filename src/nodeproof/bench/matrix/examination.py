"""What every model goes through: identity, coherence, code, a tool, recall from a long text, and its rate."""

import random
import statistics
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from nodeproof.bench.ask import Ask
from nodeproof.bench.coherence import QUESTIONS, accepts
from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.features import list_models
from nodeproof.bench.load.prompts import filler
from nodeproof.bench.session import Session
from nodeproof.host.sandbox import Sandbox

__all__ = ["Bar", "Examined", "Result", "code_of", "examine"]

_REFUSED = frozenset({400, 404, 405, 422, 501})
_RATE_RUNS = 3
_RATE_TOKENS = 128
_RECALL_WORDS = 6000
_CODE_S = 20.0
_NO_PROGRAM = 127
"""What a shell ends with when there is no such program."""


class Bar(StrEnum):
    """How one check came out."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    NOT_OFFERED = "not offered"
    ERROR = "error"
    """It could not be told."""


class Result(msgspec.Struct, frozen=True):
    """One check of one model."""

    bar: Bar
    detail: str = ""


class Examined(msgspec.Struct, kw_only=True):
    """One model."""

    model: str
    problem: str = ""
    """Why it was not examined at all."""
    identity: Result = Result(Bar.ERROR, "not examined")
    coherence: Result = Result(Bar.ERROR, "not examined")
    code: Result = Result(Bar.ERROR, "not examined")
    tool: Result = Result(Bar.ERROR, "not examined")
    recall: Result = Result(Bar.ERROR, "not examined")
    """Reported, never judged."""
    output_tok_s: float | None = None


def examine(
    session: Session, model: str, seed: int, make_sandbox: Callable[[], Sandbox], tell: Callable[[str], None]
) -> Examined:
    """All of it. Raises RunCancelled."""
    found = Examined(model=model)
    tell("identity")
    found.identity = _identity(session, model)
    tell("coherence")
    found.coherence = _coherence(session)
    tell("code")
    found.code = _code(session, make_sandbox)
    tell("tool")
    found.tool = _tool(session, seed)
    tell("recall")
    found.recall = _recall(session, seed)
    tell("rate")
    found.output_tok_s = _rate(session)
    return found


def _ask(session: Session, prompt: str, max_tokens: int, **extra: object) -> Exchange:
    return session.send(Ask(prompt=prompt, max_tokens=max_tokens, extra={"temperature": 0, **extra}))


def _bad(exchange: Exchange) -> Result | None:
    """What an answer that is none says."""
    if exchange.ok:
        return None
    refused = exchange.outcome is Outcome.STATUS and exchange.status in _REFUSED
    return Result(Bar.NOT_OFFERED if refused else Bar.ERROR, f"{exchange.outcome}: {exchange.detail}"[:200])


def _identity(session: Session, model: str) -> Result:
    """The list names it, and what answers says that it is it. A server that answers to any name is found out so."""
    exchange = _ask(session, "Answer with the word yes.", 16)
    bad = _bad(exchange)
    if bad is not None:
        return Result(Bar.ERROR, bad.detail)
    models, problem = list_models(session)
    if models is not None and model not in models:
        return Result(Bar.FAIL, f"the endpoint serves {', '.join(models[:3]) or 'nothing'}, not {model}")
    if exchange.model and exchange.model != model:
        return Result(Bar.FAIL, f"what answers calls itself {exchange.model[:80]}")
    if models is None and not exchange.model:
        return Result(Bar.ERROR, f"neither list nor answer says which model it is ({problem})")
    return Result(Bar.PASS)


def _coherence(session: Session) -> Result:
    wrong, run = [], 0
    for known in QUESTIONS:
        exchange = _ask(session, known.question, 96)
        if not exchange.ok:
            continue
        run += 1
        if not (accepts(known.terms, exchange.text) or accepts(known.terms, exchange.reasoning)):
            wrong.append(f"{known.label}: {' '.join(exchange.text.split())[:60]!r}")
    if run < len(QUESTIONS):
        return Result(Bar.ERROR, f"{run} of {len(QUESTIONS)} questions were answered")
    return Result(Bar.FAIL, "; ".join(wrong)) if wrong else Result(Bar.PASS)


def _code(session: Session, make_sandbox: Callable[[], Sandbox]) -> Result:
    """A function is written, and run on cases in a sandbox."""
    prompt = (
        "Write a Python function `runs(text)` that returns the lengths of the runs of equal characters in text as a list, for "
        "example [2, 1, 3] for 'aabccc' and [] for ''. Answer with one code block and nothing else."
    )
    exchange = _ask(session, prompt, 1024)
    bad = _bad(exchange)
    if bad is not None:
        return Result(Bar.ERROR, bad.detail)
    with make_sandbox() as sandbox:
        sandbox.write("answer.py", code_of(exchange.text).encode())
        sandbox.write("check.py", _CODE_CHECK)
        done = sandbox.run("python3 check.py", timeout_s=_CODE_S, limit_bytes=2000)
    output = done.output.decode("utf-8", "replace").strip().rpartition("\n")[2]
    if done.exit_code == _NO_PROGRAM:
        return Result(Bar.ERROR, f"this machine has no python3 to run it: {output[:120]}")
    if done.timed_out:
        return Result(Bar.FAIL, f"it did not end within {_CODE_S:g} s")
    return Result(Bar.PASS) if done.exit_code == 0 and output.endswith("all cases hold") else Result(Bar.FAIL, output[-160:])


_CODE_CHECK = b"""from answer import runs

for text, wanted in (("aabccc", [2, 1, 3]), ("", []), ("a", [1]), ("abab", [1, 1, 1, 1]), ("zzzz", [4])):
    found = list(runs(text))
    assert found == wanted, f"runs({text!r}) is {found}, not {wanted}"
print("all cases hold")
"""


def code_of(text: str) -> str:
    """The code of an answer: its longest fenced block, else all of it."""
    parts = text.split("```")
    blocks = [part.partition("\n")[2] if "\n" in part else part for part in parts[1::2]]
    return max(blocks, key=len) if blocks else text


def _tool(session: Session, seed: int) -> Result:
    """One tool must be called with what the question says."""
    city = random.Random(f"tool-{seed}").choice(("Lisbon", "Nairobi", "Osaka", "Quito", "Tallinn"))  # noqa: S311 - no secret
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": schema}}
    exchange = _ask(session, f"How is the weather in {city}? Use the tool.", 256, tools=[tool], tool_choice="auto")
    bad = _bad(exchange)
    if bad is not None:
        return bad
    for call in exchange.tool_calls:
        try:
            fields = msgspec.json.decode(call.arguments or "{}", type=dict[str, Any])
        except msgspec.MsgspecError:
            return Result(Bar.FAIL, f"the arguments are no JSON: {call.arguments[:80]!r}")
        if call.name == "get_weather" and city.lower() in str(fields.get("city", "")).lower():
            return Result(Bar.PASS)
    said = ", ".join(f"{call.name}({call.arguments[:60]})" for call in exchange.tool_calls) or "no tool"
    return Result(Bar.FAIL, f"called {said} where get_weather for {city} was asked for")


def _recall(session: Session, seed: int) -> Result:
    """A number in the middle of a long text."""
    number = str(random.Random(f"recall-{seed}").randint(10000, 99999))  # noqa: S311 - no secret
    half = _RECALL_WORDS // 2
    prompt = (
        f"{filler(seed % 991, half)}. The number of the locker is {number}. {filler(seed % 983 + 7, half)}. "
        "Which number does the locker have? Answer with the number alone."
    )
    exchange = _ask(session, prompt, 64)
    bad = _bad(exchange)
    if bad is not None:
        return bad
    if number in exchange.text:
        return Result(Bar.PASS)
    return Result(Bar.FAIL, f"answered {' '.join(exchange.text.split())[:60]!r} where {number} was written")


def _rate(session: Session) -> float | None:
    """Output tokens a second of single answers: the median; None when none could be timed."""
    rates = []
    for _ in range(_RATE_RUNS):
        exchange = _ask(session, "Count from one to two hundred in words.", _RATE_TOKENS)
        if exchange.ok and exchange.tpot_s:
            rates.append(1.0 / exchange.tpot_s)
    return statistics.median(rates) if rates else None
