"""One cell of a benchmark: a load is sent, the box is judged, the samples are worked up; what the box has spoilt is done again.

::

    cell = Measurement(handle, target, plan, "c8")
    while (found := cell.step(1.0)) is None:
        ...                                  # a frame that says how it gets on
    found.report.figures["ttft_p50_ms"]
"""

import secrets

import msgspec

from nodeproof.bench.ask import Api
from nodeproof.bench.client import Timeouts
from nodeproof.bench.features import Features, discover
from nodeproof.bench.load.fleet import Fleet
from nodeproof.bench.load.plan import LoadPlan
from nodeproof.bench.load.worker import Beat
from nodeproof.bench.session import Session
from nodeproof.bench.stats.report import LoadReport, report
from nodeproof.host.atomic import store_file
from nodeproof.model.hardware import Validity
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.handle import PluginHandle

__all__ = ["Cell", "Measurement", "beat_text", "discover_features"]

_REMEASURE = 1
_NOTES = 5
_CANCEL_S = 5.0


class Cell(msgspec.Struct, kw_only=True):
    """One measurement."""

    name: str
    report: LoadReport
    validity: str
    """What the box says: ``valid``, ``unknown``, ``invalid`` or ``not-applicable``."""
    paths: tuple[str, ...] = ()
    """Files of its samples."""
    energy: dict[str, float] = {}
    """Of this box while it was measured, by rail; empty = no power was read."""


class Measurement:
    """The measurement of one cell, in steps that return soon."""

    def __init__(
        self, handle: PluginHandle, target: TargetEndpoint, plan: LoadPlan, name: str, *, remeasure: int = _REMEASURE
    ) -> None:
        """``remeasure``: times that a measurement is made again when the box was not fit for it."""
        self._handle, self._target = handle, target
        self._remeasure = remeasure
        self._plan, self._name = plan, name
        self._tries = 0
        self._fleet: Fleet | None = None
        self._since = handle.now()
        self.sample_paths: list[str] = []
        """Files of samples of the measurement that counts, once it is over."""

    def step(self, timeout_s: float) -> Cell | None:
        """Go on for at most so long; the cell when it is measured. Raises RunCancelled, RunError."""
        handle = self._handle
        if self._fleet is None:
            self._begin()
            return None
        over = self._fleet.wait(timeout_s)
        if handle.is_cancelled():
            self._fleet.cancel()
            self._fleet.wait(_CANCEL_S)
        handle.check_cancelled()
        if not over:
            beat = self._fleet.beat()
            handle.progress(beat.done, self._plan.requests or beat.sent)
            handle.status(f"{self._name}: {beat_text(beat)}")
            return None
        return self._end(self._fleet)

    def close(self) -> None:
        """End what still runs."""
        if self._fleet is not None:
            self._fleet.close()

    def _begin(self) -> None:
        name = self._name + (f"-try{self._tries}" if self._tries else "")
        fleet = Fleet(self._plan, self._handle.file_path, key=self._target.key.reveal(), name=name)
        self._fleet = fleet
        with self._handle.on_cancel(fleet.cancel):
            fleet.begin(self._handle.is_cancelled)
        self._since = self._handle.now()

    def _end(self, fleet: Fleet) -> Cell | None:
        handle = self._handle
        judged = handle.judge(self._name, self._since)
        self._fleet = None
        found = report(fleet.sample_paths, fleet.plan)
        self.sample_paths = fleet.sample_paths
        fleet.close()
        if judged.validity is Validity.INVALID and self._tries < self._remeasure:
            self._tries += 1
            self._plan = _anew(self._plan)
            handle.warn(f"{self._name} is measured again: {'; '.join(judged.concerns)}")
            return None
        _keep_distribution(handle, self._name, found)
        for note in found.notes[:_NOTES]:
            handle.warn(f"{self._name}: {note}")
        return Cell(
            name=self._name, report=found, validity=str(judged.validity), paths=tuple(fleet.sample_paths), energy=judged.energy
        )


def _anew(plan: LoadPlan) -> LoadPlan:
    """The plan with prompts that are as new to the server as those of the first try were; known ones stay what they are."""
    if not plan.prompts.nonce:
        return plan
    prompts = msgspec.structs.replace(plan.prompts, nonce=f"{secrets.token_hex(4)}-")
    return msgspec.structs.replace(plan, prompts=prompts)


def _keep_distribution(handle: PluginHandle, name: str, found: LoadReport) -> None:
    """Leave the distributions of a cell as a small file, so that they can be plotted without its samples."""
    grids = {key: values for key, values in found.quantiles_ms.items() if values}
    if grids:
        content = {"cell": name, "samples": {"requests": found.counts["requests_ok"]}, "quantiles_ms": grids}
        store_file(handle.file_path(f"{name}-distribution.json"), msgspec.json.encode(content) + b"\n")


def beat_text(beat: Beat) -> str:
    """How a load gets on, in a line."""
    counts = f"{beat.done} answers, {beat.in_flight} under way, {beat.failed} failed, {beat.tokens} tokens"
    return f"{counts}; generator at most {beat.lag_s * 1e3:.1f} ms late"


def discover_features(handle: PluginHandle, target: TargetEndpoint, api: Api, timeouts: Timeouts, *, ignore_eos: str) -> Features:
    """Find out what the endpoint can do, keep it with the record, and warn of what makes figures worth less.

    Raises EndpointLostError when it cannot be reached.

    ``ignore_eos``: ``yes``, ``no`` or ``auto``, as a benchmark is asked for it.
    """
    with Session.of(target, timeouts) as session, handle.on_cancel(session.cancel):
        features = discover(session, target.model, api, ask_ignore_eos=ignore_eos != "no")
    store_file(handle.file_path("features.json"), msgspec.json.format(msgspec.json.encode(features), indent=2) + b"\n")
    for note in features.notes:
        handle.warn(f"endpoint: {note}")
    if features.concurrency == "serial":
        handle.warn(
            "endpoint: it answers one request at a time; what waits is in TTFT, and more at once brings no more throughput"
        )
    if features.concurrency == "cuts":
        handle.warn("endpoint: it cuts answers when several are asked for at once; those are failures, not quick successes")
    if features.tokens.source == "estimated":
        handle.warn("endpoint: it counts no tokens for us; lengths are words, and output tokens are chunks")
    if features.ignore_eos in {"ignored", "refused"} and ignore_eos == "yes":
        handle.warn(f"endpoint: ignore_eos is {features.ignore_eos}; answers may be shorter than asked")
    return features
