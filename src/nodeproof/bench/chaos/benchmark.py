"""The benchmark ``chaos``: faults of clients one after the other, and after each the time to a healthy answer."""

import random
import time
from collections.abc import Iterator
from typing import ClassVar

import msgspec

from nodeproof import __version__
from nodeproof.bench.address import Address
from nodeproof.bench.ask import Ask
from nodeproof.bench.chaos.faults import FAULTS, Fault, Ground, Harm, named
from nodeproof.bench.chaos.recovery import Baseline, Recovery, recover, undisturbed
from nodeproof.bench.chaos.wire import Wires
from nodeproof.bench.client import Client, Timeouts, tls_context
from nodeproof.bench.course import Course
from nodeproof.bench.reach import require_reached
from nodeproof.bench.session import Session
from nodeproof.bench.trials import CHAOS
from nodeproof.errors import ParamError
from nodeproof.host.server_sight import ServerProcesses, ServerSight, half_closed
from nodeproof.model.run import Align, Cell, CellStyle, Column, Frame, ResultTable, Stat, Verdict, VerdictKind
from nodeproof.runs.params import Bool, Float, Int, ParamSpec, ParamValues, Text

__all__ = ["CHAOS_PARAMETERS", "Chaos"]

_BASELINE = 5
_ALL = "all"
_SETTLE_LOOK_S = 0.1
CHAOS_PARAMETERS = (
    ParamSpec("faults", "Faults", f"Which, with commas between them: {', '.join(FAULTS)}; {_ALL} = every one", Text(), _ALL),
    ParamSpec("connections", "Connections", "Clients that misbehave at once", Int(1, 4096), 16),
    ParamSpec("long_tokens", "Long answers", "Tokens of the answers that are left, taken back or not read", Int(8, 65536), 512),
    ParamSpec("oversize_kib", "Oversize", "Size of the prompt beyond any context, KiB", Int(64, 60 * 1024), 8192),
    ParamSpec("slow_reader_s", "Slow readers", "Seconds during which answers are not read", Float(0.1, 3600.0), 5.0),
    ParamSpec("max_recovery_s", "Recovery", "Fails when a healthy answer takes longer after a fault", Float(0.1, 3600.0), 10.0),
    ParamSpec("answer_s", "Answer", "Seconds for an answer to what is no proper request", Float(0.1, 3600.0), 30.0),
    ParamSpec("allow_5xx", "Server errors", "Let a server call a client's mistake its own (status 5xx)", Bool(), default=False),
    ParamSpec("leaks", "Leaks", "Judge what is left open at the server, which must be visible", Bool(), default=True),
    ParamSpec("max_descriptor_growth", "Descriptors", "Fails when the server holds more after all of it", Int(0, 1_000_000), 16),
    ParamSpec("seed", "Seed", "Of moments at which clients leave", Int(0, (1 << 31) - 1), 0),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of a proper request", Float(0.1, 86400.0), 300.0),
)  # fmt: skip


class _Round(msgspec.Struct, kw_only=True):
    """A fault, and what came after it."""

    name: str
    harm: Harm
    recovery: Recovery

    def problems(self, limit_s: float) -> list[str]:
        """What the server did wrong."""
        found = [f"{self.name}: {named(self.harm.problems)}"] if self.harm.problems else []
        seconds = self.recovery.seconds
        if seconds is None:
            last = f" ({self.recovery.detail})" if self.recovery.detail else ""
            found.append(f"{self.name}: no healthy answer within {limit_s:g} s{last}")
        return found


class Chaos(Course):
    """One run of it."""

    IDENTITY = CHAOS
    PARAMETERS: ClassVar[tuple[ParamSpec, ...]] = CHAOS_PARAMETERS
    ABOUT = "Faults of clients, and how long a server takes to serve the others again"

    def check(self, values: ParamValues) -> None:
        """Faults have names."""
        _faults_of(values)

    def course(self) -> Iterator[Frame]:
        """A baseline, then each fault with its recovery, then what was left open."""
        values = self.values
        session = self.session(Timeouts(10.0, *[values.float("request_timeout_s")] * 3))
        require_reached(session.send(_short_ask()), self.target.base_url)
        yield self.running("baseline")
        baseline = session.do(lambda client: undisturbed(client, _short_ask(), _BASELINE))
        if not baseline.whole:
            bad = next(exchange for exchange in baseline.exchanges if not exchange.ok)
            text = f"vacuous: the endpoint does not answer even undisturbed ({bad.outcome}: {bad.detail})"
            yield self.done(Verdict(VerdictKind.INCONCLUSIVE, text))
            return
        watch = _Watch(self.target.base_url, look=self.target.is_loopback() and values.bool("leaks"))
        faults = _faults_of(values)
        rounds: list[_Round] = []
        for number, fault in enumerate(faults):
            yield self.running(fault.name, number, len(faults))
            rounds.append(self._round(session, fault, baseline, number))
            if rounds[-1].recovery.seconds is None:
                break
        yield self.running("settle", len(rounds), len(faults))
        left = watch.settle(self, values.float("max_recovery_s"))
        self.keep("chaos.json", {"healthy_s": baseline.healthy_s, "rounds": rounds, "server": watch.looks})
        yield self._end(rounds, left, watch, baseline)

    def _round(self, session: Session, fault: Fault, baseline: Baseline, number: int) -> _Round:
        limit_s = self.values.float("max_recovery_s")
        self.handle.status(f"chaos: {fault.about}")

        async def work(client: Client) -> tuple[Harm, Recovery]:
            wires = self._wires()
            try:
                harm = await fault.inflict(self._ground(client, wires, baseline, number))
            finally:
                wires.close()
            return harm, await recover(client, _short_ask(), baseline.healthy_s, limit_s)

        harm, recovery = session.do(work)
        for note in harm.notes:
            self.handle.warn(f"{fault.name}: {note}")
        if baseline.text is not None and recovery.seconds is not None and recovery.text != baseline.text:
            self.handle.warn(f"after {fault.name} the same question is answered otherwise: {recovery.text[:80]!r}")
        return _Round(name=fault.name, harm=harm, recovery=recovery)

    def _wires(self) -> Wires:
        address = Address.of(self.target.base_url)
        tls = tls_context(self.target.ca_file) if address.scheme == "https" else None
        return Wires(address, tls, 10.0)

    def _ground(self, client: Client, wires: Wires, baseline: Baseline, number: int) -> Ground:
        values = self.values
        key = self.target.key.reveal()
        lines = f"Host: {client.address.host_field}\r\nUser-Agent: nodeproof/{__version__}\r\n"
        lines += f"Authorization: Bearer {key}\r\n" if key else ""
        return Ground(
            client=client,
            wires=wires,
            fields=f"{client.address.prefix} {lines}",
            long_ask=_long_ask(values.usize("long_tokens")),
            short_ask=_short_ask(),
            chance=random.Random(values.usize("seed") * 31 + number),  # noqa: S311 - moments, no secrets
            connections=values.usize("connections"),
            timeout_s=values.float("answer_s"),
            healthy_s=baseline.healthy_s,
            oversize_bytes=values.usize("oversize_kib") << 10,
            slow_reader_s=values.float("slow_reader_s"),
            allow_5xx=values.bool("allow_5xx"),
        )

    def _end(self, rounds: list[_Round], left: list[str], watch: "_Watch", baseline: Baseline) -> Frame:
        values = self.values
        limit_s = values.float("max_recovery_s")
        problems = [problem for one in rounds for problem in one.problems(limit_s)] + left
        idle = [one.name for one in rounds if not one.harm.done]
        if problems:
            verdict = Verdict(VerdictKind.FAIL, "; ".join(problems))
        elif idle:
            text = f"vacuous: {', '.join(idle)} met no work under way; ask for longer answers (long_tokens)"
            verdict = Verdict(VerdictKind.INCONCLUSIVE, text)
        elif values.bool("leaks") and watch.reason:
            text = f"recovered each time, but what was left at the server is unknown: {watch.reason} (leaks=no judges without)"
            verdict = Verdict(VerdictKind.INCONCLUSIVE, text)
        else:
            slowest = max(one.recovery.seconds or 0.0 for one in rounds)
            text = f"a healthy answer at most {slowest:.3g} s after {len(rounds)} kinds of faults, limit {limit_s:g} s"
            verdict = Verdict(VerdictKind.PASS, text)
        metrics = {f"{one.name.replace('-', '_')}_recovery_s": one.recovery.seconds for one in rounds}
        known = {key: value for key, value in metrics.items() if value is not None}
        return self.done(
            verdict,
            metrics={**known, **_counts(rounds), **watch.metrics(), "healthy_limit_s": baseline.healthy_s},
            summary=[Stat("Faults", str(len(rounds))), Stat("Usual answer", f"{baseline.median_s * 1e3:.0f}", "ms")],
            table=_table(rounds),
        )


class _Watch:
    """What the server holds before the first fault and after the last."""

    def __init__(self, base_url: str, *, look: bool) -> None:
        address = Address.of(base_url)
        self.looks: list[ServerProcesses] = []
        self.half_closed: int | None = None
        self._port = address.port
        self._sight = ServerSight(address.port) if look else None
        self._remote = f"it runs on {address.host}"
        self._look()

    @property
    def reason(self) -> str:
        """Why it cannot be told; empty when it can."""
        if self._sight is None:
            return self._remote
        if not self.looks:
            return self._sight.reason
        return "this user may not list its descriptors" if self._growth() is None else ""

    def settle(self, chaos: Chaos, limit_s: float) -> list[str]:
        """Wait until nothing is left, at most ``limit_s``; what is left then."""
        if self._sight is None or not self.looks:
            return []
        ends_s = time.monotonic() + limit_s
        most = chaos.values.usize("max_descriptor_growth")
        while True:
            self._look()
            self.half_closed = half_closed(self._port)
            growth = self._growth()
            left = []
            if self.half_closed:
                left.append(f"{self.half_closed} connections that clients have closed are still open at the server")
            if growth is not None and growth > most:
                left.append(f"the server holds {growth} descriptors more than before, limit {most}")
            if self.looks[-1].restarts:
                left.append("the server was started anew meanwhile")
            if not left or time.monotonic() >= ends_s or chaos.handle.wait(_SETTLE_LOOK_S):
                return [f"{text} {limit_s:g} s after the last fault" if "still" in text else text for text in left]

    def metrics(self) -> dict[str, float]:
        """What was left."""
        growth = self._growth() if self.looks else None
        found = {} if growth is None else {"descriptor_growth": float(growth)}
        return found if self.half_closed is None else {**found, "half_closed_connections": float(self.half_closed)}

    def _look(self) -> None:
        seen = self._sight.look() if self._sight is not None else None
        if seen is not None:
            self.looks = [*self.looks[:1], seen]

    def _growth(self) -> int | None:
        before, after = self.looks[0].open_files, self.looks[-1].open_files
        return None if before is None or after is None else after - before


def _faults_of(values: ParamValues) -> list[Fault]:
    text = values.text("faults")
    names = list(FAULTS) if text == _ALL else [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in FAULTS:
            raise ParamError("faults", f"faults: there is no {name[:40]!r}; there are {', '.join(FAULTS)}")
    if not names:
        raise ParamError("faults", f"faults: name at least one of {', '.join(FAULTS)}")
    return [FAULTS[name] for name in dict.fromkeys(names)]


def _short_ask() -> Ask:
    return Ask(prompt="Name one colour.", max_tokens=8, include_usage=False, extra={"temperature": 0})


def _long_ask(tokens: int) -> Ask:
    prompt = "Count from one to a thousand in words, one number a line, and leave none out."
    return Ask(prompt=prompt, max_tokens=tokens, include_usage=False, extra={"temperature": 0})


def _counts(rounds: list[_Round]) -> dict[str, float]:
    done = {f"{one.name.replace('-', '_')}_done": float(one.harm.done) for one in rounds}
    return {**done, "faults": float(len(rounds)), "problems": float(sum(len(one.harm.problems) for one in rounds))}


def _table(rounds: list[_Round]) -> ResultTable:
    titles = ("Fault", "Done", "Of", "Answers", "Recovery s", "Tries")
    rows = []
    for one in rounds:
        answers = ", ".join(f"{count} x {status}" for status, count in sorted(one.harm.answers.items())) or "-"
        seconds = one.recovery.seconds
        style = CellStyle.BAD if seconds is None or one.harm.problems else CellStyle.NEUTRAL
        cells = (one.name, str(one.harm.done), str(one.harm.intended), answers, "never" if seconds is None else f"{seconds:.3f}")
        rows.append((*(Cell(text, style) for text in cells), Cell(str(one.recovery.tries))))
    right = {"Done", "Of", "Recovery s", "Tries"}
    columns = tuple(Column(title, Align.RIGHT if title in right else Align.LEFT) for title in titles)
    return ResultTable("Faults", columns, tuple(rows))
