"""The benchmark ``agentic``: a model writes, tests, runs and stops a small web server, in a sandbox, so many times."""

import time
from collections.abc import Iterator
from typing import ClassVar

import msgspec

from nodeproof.bench.agentic.agent import Work, work
from nodeproof.bench.agentic.score import STEPS, Outcome, judge_steps, left_running, serve_and_ask
from nodeproof.bench.agentic.tools import Act, Workbench
from nodeproof.bench.ask import Ask
from nodeproof.bench.client import Timeouts
from nodeproof.bench.course import Course
from nodeproof.bench.reach import require_reached
from nodeproof.bench.session import Session
from nodeproof.bench.trials import AGENTIC
from nodeproof.errors import RunError
from nodeproof.host.sandbox import Sandbox, SandboxError, SandboxLimits
from nodeproof.model.run import Align, Cell, CellStyle, Column, Frame, ResultTable, Stat, Verdict, VerdictKind
from nodeproof.runs.params import Choice, Float, Int, ParamSpec

__all__ = ["AGENTIC_PARAMETERS", "Agentic"]

_ISOLATIONS = ("required", "best")
AGENTIC_PARAMETERS = (
    ParamSpec("iterations", "Iterations", "Times that the task is given", Int(1, 50), 10),
    ParamSpec("wall_budget_s", "Budget", "Fails when all of it takes longer", Float(1.0, 100_000.0), 1000.0),
    ParamSpec("s_per_turn_budget", "Turn budget", "Fails when answers take longer on average; 0 = off", Float(0.0, 1e4), 0.0),
    ParamSpec("max_turns", "Turns", "Answers of one iteration at most", Int(1, 200), 40),
    ParamSpec("command_timeout_s", "Command limit", "Seconds of one command", Float(1.0, 3600.0), 180.0),
    ParamSpec("build_timeout_s", "Build limit", "Seconds of build.sh when it is scored", Float(1.0, 3600.0), 600.0),
    ParamSpec("serve_timeout_s", "Serve limit", "Seconds until the server answers when it is scored", Float(1.0, 300.0), 30.0),
    ParamSpec("max_tokens", "Answer", "Tokens of an answer", Int(256, 32768), 8192),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of an answer", Float(10.0, 3600.0), 900.0),
    ParamSpec("temperature", "Temperature", "Of the sampling", Float(0.0, 10.0), 0.0),
    ParamSpec("memory_mib", "Memory", "Of all that the model runs, MiB; beyond it all of that is ended", Int(64, 1 << 20), 4096),
    ParamSpec("isolation", "Isolation", "required: run nothing where the machine cannot be shut out; best: run it all the same",
              Choice(_ISOLATIONS), "required"),
)  # fmt: skip
_NAMED = 3


class _Iteration(msgspec.Struct, kw_only=True):
    """One time."""

    number: int
    work: Work
    outcome: Outcome
    steps: dict[str, bool]
    acts: list[Act]
    problem: str = ""
    """Why nothing is proven by it."""

    @property
    def lacks(self) -> str:
        """What was not achieved; empty when all was."""
        missing = [name for name in STEPS if not self.steps.get(name)]
        parts = [] if self.outcome.served else [f"webserver_ok ({self.outcome.detail})"]
        return ", ".join([*parts, *missing])


class Agentic(Course):
    """One run of it."""

    IDENTITY = AGENTIC
    PARAMETERS: ClassVar[tuple[ParamSpec, ...]] = AGENTIC_PARAMETERS
    ABOUT = "Whether a model with tools gets a small program done"

    def course(self) -> Iterator[Frame]:
        """The sandbox first, which must fail what nobody has written; then iteration after iteration."""
        values = self.values
        limit_s = values.float("request_timeout_s")
        session = self.session(Timeouts(10.0, limit_s, limit_s, limit_s))
        plain = require_reached(session.send(Ask(prompt="Answer with the word yes.", max_tokens=16)), self.target.base_url)
        yield self.running("control")
        if not plain.ok:
            text = f"vacuous: the endpoint does not answer a plain question ({plain.outcome}: {plain.detail})"
            yield self.done(Verdict(VerdictKind.INCONCLUSIVE, text))
            return
        self._control()
        found: list[_Iteration] = []
        total, begun_s = values.int("iterations"), time.monotonic()
        for number in range(total):
            yield self.running("work", number, total)
            found.append(self._iterate(session, number, begun_s))
            self.keep(f"iteration-{number}.json", found[-1])
            if found[-1].work.refused or self._left_s(begun_s) <= 0:
                break
        yield self._end(found, time.monotonic() - begun_s)

    def _control(self) -> None:
        """A scorer that is content with nothing would be content with everything. Raises RunError."""
        with self._sandbox("control") as sandbox:
            for note in sandbox.notes:
                self.handle.warn(f"sandbox: {note}")
            if serve_and_ask(sandbox, sandbox.files(), build_timeout_s=1.0, serve_timeout_s=1.0).served:
                raise RunError("the scorer passes an empty project: its results would be worth nothing")

    def _sandbox(self, name: str) -> Sandbox:
        values = self.values
        folder = self.handle.file_path(name).rpartition("/")[0]
        sandbox = Sandbox.start(
            folder,
            name,
            limits=SandboxLimits(memory_bytes=values.int("memory_mib") << 20, duration_s=values.float("wall_budget_s") + 3600.0),
            required=values.text("isolation") == "required",
            should_stop=self.handle.is_cancelled,
            hidden=(folder,),
        )
        self.held().callback(sandbox.close)
        return sandbox

    def _iterate(self, session: Session, number: int, begun_s: float) -> _Iteration:
        values = self.values

        def tell(done: Work) -> None:
            self.handle.status(f"iteration {number}: turn {done.turns}, {done.calls} calls, {done.tokens} tokens")

        acts: list[Act] = []
        done, outcome, steps, problem = Work(), Outcome(detail="it was not scored"), dict[str, bool](), ""
        try:
            with self._sandbox(f"iteration-{number}") as sandbox:
                bench = Workbench(sandbox, values.float("command_timeout_s"))
                acts = bench.acts
                work(
                    session,
                    bench,
                    done,
                    max_turns=values.int("max_turns"),
                    max_tokens=values.int("max_tokens"),
                    temperature=values.float("temperature"),
                    tell=tell,
                    left_s=lambda: self._left_s(begun_s),
                )
                problem = done.failure
                if not problem:
                    files = sandbox.files()
                    steps = judge_steps(acts, files, left_running(sandbox))
                    sandbox.processes(end=True)
                    outcome = serve_and_ask(
                        sandbox,
                        files,
                        build_timeout_s=values.float("build_timeout_s"),
                        serve_timeout_s=values.float("serve_timeout_s"),
                    )
        except SandboxError as error:
            # The model's own doing: it used up what it was given.
            outcome = Outcome(detail=str(error))
        return _Iteration(number=number, work=done, outcome=outcome, steps=steps, acts=acts, problem=problem)

    def _left_s(self, begun_s: float) -> float:
        return self.values.float("wall_budget_s") - (time.monotonic() - begun_s)

    def _end(self, found: list[_Iteration], wall_s: float) -> Frame:
        turns, calls = sum(one.work.turns for one in found), sum(one.work.calls for one in found)
        agent_s = sum(one.work.agent_s for one in found)
        metrics = {
            "iterations": float(len(found)),
            "webserver_ok": float(sum(one.outcome.served for one in found)),
            "process_ok": float(sum(all(one.steps.get(name) for name in STEPS) for one in found)),
            "unmeasured": float(sum(bool(one.problem) for one in found)),
            "turns": float(turns),
            "tool_calls": float(calls),
            "completion_tokens": float(sum(one.work.tokens for one in found)),
            "sum_wall_s": wall_s,
            "agent_s": agent_s,
            **{f"step_{name}": float(sum(bool(one.steps.get(name)) for one in found)) for name in STEPS},
        }
        if turns:
            metrics["s_per_turn"] = agent_s / turns
        return self.done(
            self._verdict(found, wall_s, agent_s / turns if turns else None),
            metrics=metrics,
            summary=[Stat("Served", f"{metrics['webserver_ok']:.0f}/{len(found)}"), Stat("Turns", str(turns))],
            table=_table(found),
        )

    def _verdict(self, found: list[_Iteration], wall_s: float, s_per_turn: float | None) -> Verdict:
        """What was not measured at all, then what lacks, then budgets, then what was not measured in part."""
        unmeasured = [one for one in found if one.problem]
        if found[0].work.refused:
            return Verdict(VerdictKind.INCONCLUSIVE, f"unmeasured: the endpoint takes no tools ({found[0].problem})")
        if len(unmeasured) < len(found) and not any(one.work.calls or one.work.tokens for one in found):
            return Verdict(VerdictKind.INCONCLUSIVE, "vacuous: the model said nothing")
        broken = self._broken(found, wall_s, s_per_turn)
        if broken:
            return Verdict(VerdictKind.FAIL, broken)
        if unmeasured:
            first = unmeasured[0]
            text = f"{len(unmeasured)} of {len(found)} iterations are unmeasured: iteration {first.number}: {first.problem}"
            return Verdict(VerdictKind.INCONCLUSIVE, text)
        limit = f"limit {self.values.float('wall_budget_s'):g} s"
        return Verdict(VerdictKind.PASS, f"{len(found)} of {len(found)} servers serve, by all steps, in {wall_s:.0f} s, {limit}")

    def _broken(self, found: list[_Iteration], wall_s: float, s_per_turn: float | None) -> str:
        """What is not as it should be; empty when all is."""
        values = self.values
        lacking = [one for one in found if not one.problem and one.lacks]
        if lacking:
            named = "; ".join(f"iteration {one.number} lacks {one.lacks}" for one in lacking[:_NAMED])
            return f"{len(lacking)} of {len(found)} iterations: {named}"
        budget_s, turn_s, total = values.float("wall_budget_s"), values.float("s_per_turn_budget"), values.int("iterations")
        if wall_s > budget_s or len(found) < total:
            return f"{len(found)} of {total} iterations in {wall_s:.0f} s, limit {budget_s:g} s"
        if turn_s and s_per_turn is not None and s_per_turn > turn_s:
            return f"{s_per_turn:.3g} s a turn, limit {turn_s:g} s"
        return ""


def _table(found: list[_Iteration]) -> ResultTable:
    columns = (
        Column("Iteration", Align.RIGHT),
        Column("Serves"),
        Column("Turns", Align.RIGHT),
        Column("Calls", Align.RIGHT),
        Column("Lacks"),
    )
    rows = []
    for one in found:
        style = CellStyle.WARN if one.problem else CellStyle.BAD if one.lacks else CellStyle.GOOD
        serves = "unmeasured" if one.problem else "yes" if one.outcome.served else "no"
        texts = (str(one.work.turns), str(one.work.calls), one.problem or one.lacks or "-")
        rows.append((Cell(str(one.number)), Cell(serves, style), *(Cell(text) for text in texts)))
    return ResultTable("Iterations", columns, tuple(rows))
