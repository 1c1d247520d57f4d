"""What the actions of ``nodeproof bench`` share: the store, the executor with its evidence and probe, and the endpoint."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence

from nodeproof.bench.address import Address
from nodeproof.cli import told as say
from nodeproof.cli.places import with_home
from nodeproof.cli.told import read_by_a_program
from nodeproof.config.places import state_directory
from nodeproof.errors import UsageError
from nodeproof.hardware.probe import HardwareProbe, Settings
from nodeproof.hardware.readers.ascend import AscendProvider
from nodeproof.hardware.readers.gpus import GpuProvider
from nodeproof.hardware.readers.processes import OwnPids
from nodeproof.host.machine import Machine
from nodeproof.host.signing_key import SigningKey
from nodeproof.host.socket_holder import pids_of_port
from nodeproof.runs.benchmark import Descriptor
from nodeproof.runs.endpoint import Secret, TargetEndpoint
from nodeproof.runs.executor import BenchmarkExecutor
from nodeproof.runs.job_locks import JobLocks
from nodeproof.runs.ports import HardwareEvidence, NullEvidence, Switches
from nodeproof.runs.registry import Registry, discover
from nodeproof.runs.store import RunStore

__all__ = [
    "as_json",
    "bench_store",
    "complain",
    "endpoint_of",
    "executor_for",
    "find_benchmark",
    "machine_locks",
    "pairs_of",
    "parameters_of",
    "signing_key",
    "state_root",
    "switches_of",
    "told",
]

_KEY_VARIABLE = "NODEPROOF_API_KEY"
_MAX_KEY_BYTES = 64 * 1024

_SECRET = re.compile(r"(?i)(^|[-_.])(api[-_]?keys?|secrets?|passwords?|passwd|credentials?|token)$")
"""Names of settings whose value nobody else may know; ``max_num_batched_tokens`` is none of them."""


def state_root(options: argparse.Namespace) -> str:
    """Where runs and the lock of this machine are; the same for stress jobs. Raises ConfigError."""
    return state_directory(with_home(options.environ))


def bench_store(options: argparse.Namespace) -> RunStore:
    """The store of runs; what is stored is signed with the key of this node."""
    return RunStore(state_root(options), signer=SigningKey(state_root(options)))


def signing_key(options: argparse.Namespace) -> SigningKey:
    """The key of this node."""
    return SigningKey(state_root(options))


def find_benchmark(name: str) -> tuple[Descriptor, Registry]:
    """The benchmark that ``name`` means. Raises RunError."""
    registry = discover()
    for problem in registry.problems:
        complain("", problem)
    return registry.get(name), registry


def endpoint_of(options: argparse.Namespace) -> TargetEndpoint | None:
    """The endpoint that the options name; None when they name none. Raises UsageError."""
    if options.url is None and options.model is None:
        return None
    if options.url is None or options.model is None:
        raise UsageError("--url and --model belong together")
    Address.of(options.url)
    key = Secret(_key(options))
    stated = pairs_of(options.serve_override)
    for name in stated:
        if _SECRET.search(name):
            raise UsageError(f"--serve-override {name}: every record would hold it in clear; leave secrets of the server out")
    return TargetEndpoint.new(options.url, options.model, stated, key=key, ca_file=options.ca_file or "")


def _key(options: argparse.Namespace) -> str:
    environ: Mapping[str, str] = options.environ
    if options.api_key_env and options.api_key_file:
        raise UsageError("--api-key-env and --api-key-file exclude each other")
    if options.api_key_file:
        try:
            with open(options.api_key_file, "rb") as file:
                return file.read(_MAX_KEY_BYTES).decode("utf-8", "replace").strip()
        except OSError as error:
            raise UsageError(f"--api-key-file {options.api_key_file}: {error.strerror}") from None
    if options.api_key_env:
        if not environ.get(options.api_key_env):
            raise UsageError(f"--api-key-env {options.api_key_env}: this variable is not set")
        return environ[options.api_key_env].strip()
    return environ.get(_KEY_VARIABLE, "").strip()


def pairs_of(texts: Sequence[str]) -> dict[str, str]:
    """``KEY=VALUE`` as pairs, the last of a key counting. Raises UsageError."""
    pairs = {}
    for text in texts:
        key, found, value = text.partition("=")
        if not found or not key.strip():
            raise UsageError(f"{text[:80]!r}: expected KEY=VALUE")
        pairs[key.strip()] = value
    return pairs


def parameters_of(options: argparse.Namespace) -> dict[str, str]:
    """``--param`` as pairs, the last of a key counting. Raises UsageError."""
    return pairs_of(options.param)


def executor_for(options: argparse.Namespace, target: TargetEndpoint | None) -> BenchmarkExecutor:
    """The executor, with the evidence that suits where the endpoint is."""
    from nodeproof.bench.coherence import EndpointProbe  # noqa: PLC0415 - only where something is run

    return BenchmarkExecutor(
        home=state_root(options), store=bench_store(options), evidence=_evidence(target), coherence=EndpointProbe()
    )


def _evidence(target: TargetEndpoint | None) -> Callable[[], HardwareEvidence]:
    """This box is looked at when the work is on it; a remote one cannot be seen from here, and is never called valid."""
    if target is not None and not target.is_loopback():
        host = Address.of(target.base_url).host
        return lambda: NullEvidence(f"the server runs on {host}, whose state cannot be observed from here")

    def own_pids() -> list[int]:
        return [] if target is None else pids_of_port(Address.of(target.base_url).port)

    if target is None:
        return lambda: HardwareProbe(Machine.here(), Settings(devices=(), own_pids=own_pids))
    return lambda: _with_accelerators(Machine.here(), own_pids)


def _with_accelerators(machine: Machine, own_pids: OwnPids) -> HardwareProbe:
    """The box of a local server: its accelerators are those that its processes use."""
    return HardwareProbe(machine, Settings(providers=(GpuProvider(machine), AscendProvider(machine)), own_pids=own_pids))


def switches_of(options: argparse.Namespace) -> Switches:
    """What the environment says of the checks of the box."""
    return Switches.of(options.environ)


def machine_locks(options: argparse.Namespace, target: TargetEndpoint | None) -> JobLocks | None:
    """What a run takes for the right to load this machine; a remote endpoint needs none."""
    return JobLocks(state_root(options)) if target is None or target.is_loopback() else None


def as_json(options: argparse.Namespace) -> bool:
    """Whether a program reads the output; ``--format`` has the last word."""
    if options.format is not None:
        return bool(options.format == "json")
    return read_by_a_program(options.output)


def complain(action: str, text: str) -> None:
    """Say an error on standard error."""
    say.complain(_words(action), text)


def told(action: str, function: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """``function`` with every error said, see :func:`nodeproof.cli.told.told`."""
    return say.told(_words(action), function)


def _words(action: str) -> str:
    return f"bench {action}" if action else "bench"
