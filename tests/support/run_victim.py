"""A process that runs a benchmark and stands still at one point, to be killed there: ``run_victim.py <root> <point>``."""

import os
import pkgutil
import sys
import threading
from collections.abc import Callable
from unittest import mock

from nodeproof.model.hardware import HardwareReport, Sensitivity
from nodeproof.runs.endpoint import ModelExpectation, TargetEndpoint
from nodeproof.runs.executor import BenchmarkExecutor
from nodeproof.runs.ports import CancelSignal, CoherenceReport, NullEvidence, Switches
from nodeproof.runs.store import RunStore
from support.runs import NO_VALUES, Scripted, script

POINT = sys.argv[2] if len(sys.argv) > 2 else ""


def stand_still(point: str) -> None:
    """Say so and wait to be killed, when this is the point."""
    if point == POINT:
        sys.stdout.write(f"{point}\n")
        sys.stdout.flush()
        threading.Event().wait(60)
        os._exit(9)


class Evidence(NullEvidence):
    """A box that stands still when it is looked at."""

    def open(self, sensitivity: Sensitivity, switches: Switches) -> HardwareReport:
        stand_still("hardware")
        return super().open(sensitivity, switches)

    def close(self) -> HardwareReport:
        stand_still("after")
        return super().close()


class Probe:
    """An endpoint that stands still when it is asked."""

    def probe(self, target: TargetEndpoint, intended_for: ModelExpectation | None, cancel: CancelSignal) -> CoherenceReport:
        del target, intended_for, cancel
        stand_still("coherence")
        return CoherenceReport()


def _standing(point: str, real: Callable[..., object], *, after: bool = False) -> Callable[..., object]:
    def call(*arguments: object, **options: object) -> object:
        if not after:
            stand_still(point)
        result = real(*arguments, **options)
        if after:
            stand_still(point)
        return result

    return call


def main() -> None:
    """Run to the point."""
    for place, target, after in (
        ("claim", "nodeproof.runs.open_run.OpenRun.begin", False),
        ("hashing", "nodeproof.runs.store.survey", False),
        ("manifest", "nodeproof.runs.store.write_manifest", True),
        ("renamed", "nodeproof.runs.store.seal", False),
    ):
        mock.patch(target, _standing(place, pkgutil.resolve_name(target), after=after)).start()
    executor = BenchmarkExecutor(home=sys.argv[1], store=RunStore(sys.argv[1]), evidence=Evidence, coherence=Probe())

    def act(point: str) -> Callable[[Scripted], object]:
        return lambda _: stand_still(point)

    acts = {point: act(point) for point in ("build", "load", "configure", "next", "cleanup")}
    handle = executor.start(script([], acts=acts), NO_VALUES, target=TargetEndpoint.local(9, "m"))
    handle.wait(60)


if __name__ == "__main__":
    main()
