"""What goes into a bundle, asked of everything that can tell of a node."""

import argparse
import datetime as dt
import sys
from collections.abc import Mapping

import msgspec

from nodeproof.cli.options import load_config, machine_root
from nodeproof.cli.places import config_file, with_home
from nodeproof.clock import SystemClock
from nodeproof.collectors.services.identity import collect_hw_specs
from nodeproof.config.schema import Config
from nodeproof.daemon.assembly import CollectorEntry, assemble
from nodeproof.daemon.circumstances import circumstances
from nodeproof.daemon.diagnosis import diagnose
from nodeproof.daemon.once import Observation, observe_once
from nodeproof.daemon.replaying import replay_host
from nodeproof.daemon.runtime import IDENTITIES
from nodeproof.errors import NodeproofError
from nodeproof.health.evaluator import Evaluator
from nodeproof.health.readings import Readings as HealthReadings
from nodeproof.host.machine import Machine
from nodeproof.host.recording import RecordingMachine
from nodeproof.operate.bundle.archive import Manifest
from nodeproof.operate.bundle.fixture import Readings
from nodeproof.operate.bundle.gather import Gathered, learn_host, sources
from nodeproof.operate.bundle.make import readings_of, seal
from nodeproof.operate.bundle.redact import Redactor
from nodeproof.stress.settings import StressSettings

__all__ = ["bundle_of", "default_name", "gather", "replayed"]

_LOOKS = 3
"""The first one wakes slow sources, the second one those that wait for them, the third sees all of them."""
_PARTS_S = 20.0
_ASCEND = "/dev/davinci_manager"


def gather(options: argparse.Namespace) -> tuple[Manifest, dict[str, bytes]]:
    """Manifest and parts of a bundle of the machine that ``options`` name. Raises ConfigError, UsageError."""
    config = load_config(options)
    machine = Machine.here(machine_root(options))
    try:
        return bundle_of(config, machine, config_file(options, with_home(options.environ)), options.environ)
    finally:
        machine.close()


def bundle_of(
    config: Config, machine: Machine, config_path: str | None, environ: Mapping[str, str]
) -> tuple[Manifest, dict[str, bytes]]:
    """The same of any machine."""
    redactor = Redactor()
    learn_host(redactor, machine.files, environ)
    gathered = Gathered()
    recording = RecordingMachine(machine)
    try:
        with recording.open_gate():
            gathered.add("specs.json", _json(collect_hw_specs(recording, IDENTITIES)))
        entries = assemble(config, recording)
        seen = observe_once([entry.collector for entry in entries if entry.enabled], recording, looks=_LOOKS)
        _judge(gathered, config, entries, recording, seen)
        looks = list(recording.looks)
        gathered.left_out |= recording.left_out
        if machine.files.exists(_ASCEND):
            gathered.left_out["answers of DCMI"] = "they are not recorded; what npu-smi told is"
        gathered.take(sources(config, config_path, _report_path(config, environ), machine.commands), _PARTS_S)
    finally:
        recording.close()
    live = readings_of(seen.batches, seen.failures, _LOOKS)
    now = dt.datetime.fromtimestamp(SystemClock().now().wall_s, dt.UTC).isoformat(timespec="seconds")
    return seal(redactor, gathered, looks, config, live, replayed, now)


def replayed(root: str, config: Config, looks: int) -> Readings:
    """What a recorded machine brings."""
    seen = replay_host(root, config, looks)
    return readings_of(seen.batches, seen.failures, looks)


def default_name() -> str:
    """Of a bundle made now: it tells no host."""
    return f"nodeproof-bundle-{dt.datetime.fromtimestamp(SystemClock().now().wall_s, dt.UTC):%Y%m%dT%H%M%SZ}.tar.gz"


def _judge(
    gathered: Gathered, config: Config, entries: list[CollectorEntry], machine: RecordingMachine, seen: Observation
) -> None:
    """What doctor and health say; a bug in one of them costs that part."""
    at = machine.clock.now()
    try:
        checks = circumstances(config, entries, machine, seen)
        gathered.add("doctor.json", _json({"checks": checks, "diagnosis": diagnose(config, entries, seen, at)}))
    except (NodeproofError, OSError) as error:
        gathered.left_out["doctor.json"] = str(error)
    evaluator = Evaluator(config.health.ruleset, config.health.weight_scheme, confirm=False)
    evaluator.evaluate(HealthReadings(seen.first), at)
    gathered.add("health.json", _json(evaluator.evaluate(HealthReadings(seen.batches), at)))


def _report_path(config: Config, environ: Mapping[str, str]) -> str:
    try:
        return StressSettings.of(config, dict(environ)).report_path
    except NodeproofError as error:
        print(f"nodeproof: {error}", file=sys.stderr)
        return ""


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
