"""Runs the units of a certification, one after the other, under the executor and with the progress of ``bench run``."""

import argparse
import signal
from collections.abc import Sequence

from nodeproof.bench.gate.plan import Unit
from nodeproof.cli.bench_executor import as_json, complain, endpoint_of, executor_for, machine_locks, switches_of
from nodeproof.cli.bench_progress import TerminalReporter
from nodeproof.errors import UsageError
from nodeproof.host.signals import Signals
from nodeproof.model.run import RunStatus
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.headless import HeadlessOptions, run_blocking, values_for

__all__ = ["UnitRunner", "check_units"]

_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def check_units(options: argparse.Namespace, units: Sequence[Unit]) -> None:
    """See that every unit can be started before the first one is. Raises UsageError, ParamError."""
    for unit in units:
        values_for(unit.descriptor, unit.params)
        if unit.descriptor.needs_confirmation and not options.yes:
            raise UsageError(f"{unit.descriptor.id} has side effects: {unit.descriptor.detail} Give --yes to agree")
        if unit.descriptor.needs_endpoint:
            _target(options, unit)


def _target(options: argparse.Namespace, unit: Unit) -> TargetEndpoint | None:
    """Where the unit's requests go: to the model of its entry, with the settings that the entry demands."""
    if not unit.descriptor.needs_endpoint:
        return None
    model = unit.entry.model or options.model
    if options.url is None or not model:
        lacking = "--url" if options.url is None else f"a model for {unit.entry.place} (model, or --model)"
        raise UsageError(f"{unit.title} measures an endpoint: give {lacking}")
    asked = argparse.Namespace(**vars(options))
    asked.model = model
    asked.serve_override = [*(f"{key}={value}" for key, value in unit.entry.serve_overrides.items()), *options.serve_override]
    return endpoint_of(asked)


class UnitRunner:
    """Runs one at a time; a signal ends the one in flight in good order."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.ran: list[str] = []
        """Ids of the runs, in order."""

    def run(self, unit: Unit, timeout_factor: float) -> RunStatus:
        """How its run ended; what it proves stands in its record."""
        options = self._options
        target = _target(options, unit)
        headless = HeadlessOptions(
            target=target,
            probe_coherence=not options.skip_coherence_probe,
            switches=switches_of(options),
            deadline_s=unit.deadline_s(timeout_factor),
            locks=machine_locks(options, target),
        )
        reporter = TerminalReporter(quiet=options.quiet or as_json(options))
        with Signals(*_STOP) as signals:
            outcome = run_blocking(
                executor_for(options, target),
                unit.descriptor,
                unit.params,
                reporter,
                options=headless,
                should_cancel=lambda: bool(signals.wait(0.0)),
            )
        reporter.close()
        if outcome.save_error:
            complain("certify", outcome.save_error)
        self.ran.append(outcome.record.run_id)
        return outcome.record.status
