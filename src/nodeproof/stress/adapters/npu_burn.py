"""NPU Burn (MindCluster AscendNPUBurn): the administrator's program, on the host or in a fixed container of the administrator's.

The program ends with status 0 whatever happened, deletes its old results at its start and leaves out devices whose worker died.
Its status counts for nothing: a pass takes a result file that is new, with every requested device and case in it, and a console
table that says FAIL of none. Its ``--output`` is never given: it refuses a directory that exists.

In the container it runs under a small shell that ends it as soon as its own standard input does. That input is held open by the
client on the host, so however the client ends, the program inside ends as well, after a grace killed.
"""

import contextlib
import hashlib
import os
from collections.abc import Mapping

import msgspec

from nodeproof.host.machine import Machine
from nodeproof.model.job import AssetCheck, CheckStatus, ExecutionProfile, ProfileParameter, ResourceProfile
from nodeproof.model.run import Provenance
from nodeproof.stress import preflight
from nodeproof.stress.adapters.base import ItemRequest, Launch, LaunchError, Signature
from nodeproof.stress.adapters.builtin import NO_MPI
from nodeproof.stress.adapters.npu_burn_settings import NpuBurnSettings, check_settings
from nodeproof.stress.adapters.npu_topology import Topology, look
from nodeproof.stress.parsers import npu_burn
from nodeproof.stress.parsers.judgement import Judgement
from nodeproof.stress.preflight import Finding
from nodeproof.stress.profile import sha256_of_file
from nodeproof.stress.progress import WatchPolicy
from nodeproof.stress.settings import StressSettings

__all__ = ["NpuBurnAdapter"]

_RESULTS = "npu_burn_results.csv"
_ERRORS = "npu_burn_errors.csv"
_MOST_BYTES = 16 * 1024 * 1024
_GRACE_S = 5

_HOLD = 'mkfifo in && exec 3<>in && exec "$@" <&3'
"""On the host: an input that never ends, for as long as the client lives. Its words are arguments, never part of the text."""
_INSIDE = f"""exec 3<&0
if command -v setsid >/dev/null 2>&1; then setsid "$0" "$@" </dev/null & else "$0" "$@" </dev/null & fi
p=$!
( cat <&3 >/dev/null 2>&1
  kill -TERM "-$p" 2>/dev/null || kill -TERM "$p" 2>/dev/null
  sleep {_GRACE_S}
  kill -KILL "-$p" 2>/dev/null || kill -KILL "$p" 2>/dev/null ) &
w=$!
wait "$p"
s=$?
kill -KILL "$w" 2>/dev/null
exit "$s"
"""
"""In the container: the program in a session of its own, and whoever ends it when the input is over."""


class NpuBurnAdapter:
    """Runs NPU Burn as the administrator set it."""

    kind = "native"

    def __init__(self, settings: StressSettings, environ: Mapping[str, str], machine: Machine) -> None:
        item = settings.benchmarks.get("npu_burn")
        self._settings = NpuBurnSettings.of(environ, item.native.executable if item is not None else "")
        self._limit_s = item.timeout_s if item is not None else 0.0
        self._machine = machine

    def stamp(self, request: ItemRequest) -> object:  # noqa: ARG002 - the settings are all there is
        """Time of change of the program."""
        with contextlib.suppress(OSError):
            facts = os.stat(self._settings.executable)
            return (facts.st_mtime_ns, facts.st_size)
        return ()

    def describe(self, request: ItemRequest) -> ExecutionProfile:
        """Settings, devices and all checks; nothing is started but ``lspci`` and questions to the container's engine."""
        settings = self._settings
        findings = check_settings(settings)
        topology: Topology | None = None
        if not any(finding.status is CheckStatus.FAIL for finding in findings):
            topology = look(settings, self._machine)
            findings += topology.findings or [_counted(topology)]
            findings += self._limits()
        assets = self._assets(topology)
        findings += [
            Finding(check="asset", status=asset.status, message=f"{asset.name} ({asset.path}): {asset.message}", fix="see there")
            for asset in assets
            if asset.status is CheckStatus.FAIL and asset.kind != "device_topology"
        ]
        return ExecutionProfile(
            protocol_version=1,
            benchmark=request.benchmark,
            executor=self.kind,
            container=settings.container if settings.in_container else "",
            parameters=_parameters(settings, topology),
            resources=ResourceProfile(0, 0, 0, settings.timeout_s, settings.workload or "unknown"),
            assets=assets,
            mpi=NO_MPI,
            preflight=preflight.roll_up(findings),
        )

    def launch(self, request: ItemRequest) -> Launch:  # noqa: ARG002 - the settings are all there is
        """The program, after its devices were looked at once more. Raises LaunchError."""
        settings = self._settings
        topology = look(settings, self._machine)
        bad = [one.message for one in (*check_settings(settings), *topology.findings) if one.status is CheckStatus.FAIL]
        if bad or not topology.devices:
            raise LaunchError(bad[0] if bad else "there is no device to burn")
        devices = ",".join(map(str, topology.devices))
        selector = ("--run_case", settings.run_case) if settings.run_case else ("--group", settings.group)
        program = (
            settings.executable,
            "--device",
            devices,
            "--sdc_detect",
            "--timeout",
            str(settings.timeout_s),
            "--chip_generation",
            settings.generation,
            *selector,
        )
        client = (settings.runtime, "exec", "-i", settings.container, "/bin/sh", "-c", _INSIDE)
        argv = ("/bin/sh", "-c", _HOLD, "sh", *client, *program) if settings.in_container else program
        return Launch(
            argv=argv,
            cwd="",
            watch=WatchPolicy(silent_after_s=60.0, hung_after_s=settings.timeout_s + 120.0),
            result_dir=settings.output_dir,
            before=_signatures(settings.output_dir),
            provenance=self._provenance(),
        )

    def judge(self, request: ItemRequest, launch: Launch, output: bytes) -> Judgement:  # noqa: ARG002 - there is one benchmark
        """What console and result files of this run prove of the devices that were asked for."""
        requested = frozenset(map(int, launch.argv[launch.argv.index("--device") + 1].split(",")))
        after = _signatures(launch.result_dir)
        fresh = after.get(_RESULTS) is not None and after[_RESULTS] != launch.before.get(_RESULTS)
        results = _read(launch.result_dir, _RESULTS) if fresh else b""
        errors = _read(launch.result_dir, _ERRORS) if after.get(_ERRORS) != launch.before.get(_ERRORS) else None
        found = npu_burn.judge(npu_burn.parse(output, results, errors), requested)
        if not fresh and found.cause == "no_result":
            old = "is that of an earlier run" if _RESULTS in after else "is not there"
            return msgspec.structs.replace(found, reason=f"{os.path.join(launch.result_dir, _RESULTS)} {old}")
        return found

    def _limits(self) -> list[Finding]:
        """That a burn may be cut off before the limit of one of its cases."""
        inner_s = self._settings.timeout_s
        if not self._limit_s or self._limit_s > inner_s:
            return []
        text = f"a case may take {inner_s} s and the whole item {self._limit_s:g} s: a burn that is cut off proves nothing"
        fix = "raise stress.benchmarks.npu_burn.timeout, or lower NPU_BURN_INTERNAL_TIMEOUT_SECONDS"
        return [Finding(check="npu_burn_limits", status=CheckStatus.WARN, message=text, fix=fix)]

    def _assets(self, topology: Topology | None) -> list[AssetCheck]:
        settings = self._settings
        assets = []
        if settings.in_container:
            assets.append(_program("container_runtime", settings.runtime))
            bad = topology is None or any(one.check == "npu_container" for one in topology.findings)
            status, message = (CheckStatus.FAIL, "does not run as it should") if bad else (CheckStatus.PASS, "ok")
            path = settings.container or "unset"
            assets.append(AssetCheck("container", path, "container", required=True, status=status, message=message))
        else:
            assets.append(_program("executable", settings.executable))
        assets.append(_directory("output_directory", settings.output_dir))
        bad = topology is None or any(one.check == "npu_devices" for one in topology.findings)
        status, message = (CheckStatus.FAIL, "see the checks") if bad else (CheckStatus.PASS, "ok")
        root = settings.device_root
        assets.append(AssetCheck("logical_devices", root, "device_topology", required=True, status=status, message=message))
        return assets

    def _provenance(self) -> tuple[Provenance, ...]:
        settings = self._settings
        if settings.in_container:
            return (Provenance("container_image", version=settings.image, path=settings.container),)
        with contextlib.suppress(OSError):
            return (Provenance("executable", sha256=sha256_of_file(settings.executable), path=settings.executable),)
        return ()


def _parameters(settings: NpuBurnSettings, topology: Topology | None) -> list[ProfileParameter]:
    devices = ",".join(map(str, topology.devices)) if topology is not None else ""
    nodes = ",".join(map(str, topology.nodes)) if topology is not None else ""
    count = len(topology.addresses) if topology is not None else 0
    rows = [("backend", "Where it runs", settings.backend), ("executable", "Program", settings.executable)]
    if settings.in_container:
        rows += [
            ("container", "Container", settings.container),
            ("image", "Image", settings.image),
            ("cann", "CANN", settings.cann),
            ("torch_npu", "torch_npu", settings.torch_npu),
            ("soc", "Kind of chip", settings.soc),
        ]
    rows += [
        ("output_mode", "Results", "upstream_default"),
        ("tool_output_directory", "Directory of the results", settings.output_dir),
        ("selector", "Chosen by", "run_case" if settings.run_case else "group"),
        ("workload", "Case or group", settings.workload),
        ("devices", "Devices", devices or settings.devices),
        ("device_namespace", "Devices are", "npu_burn_logical"),
        ("device_node_ids", "Device nodes", nodes),
        ("available_devices", "Devices there are", ",".join(map(str, range(count)))),
        ("topology_source", "Devices are told by", topology.source if topology is not None else "unknown"),
        ("pci_topology_devices", "Accelerators on the bus", str(count)),
        ("chip_generation", "Generation", settings.generation),
        ("sdc_detection", "Silent corruption", "enabled"),
    ]
    told = [ProfileParameter(key, label, value or "unset") for key, label, value in rows]
    return [*told, ProfileParameter("internal_timeout", "Limit of a case", str(settings.timeout_s), "s")]


def _counted(topology: Topology) -> Finding:
    text = f"{len(topology.addresses)} accelerators on the bus and as many device nodes; {len(topology.devices)} to be burnt"
    return Finding(check="npu_devices", status=CheckStatus.PASS, message=text, fix="")


def _program(name: str, path: str) -> AssetCheck:
    good = os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK)
    if not good:
        message = "is no program at an absolute path"
        return AssetCheck(name, path or "unset", "executable", required=True, status=CheckStatus.FAIL, message=message)
    try:
        digest = sha256_of_file(path)
    except OSError as error:
        text = os.strerror(error.errno or 0)
        return AssetCheck(name, path, "executable", required=True, status=CheckStatus.FAIL, message=text)
    return AssetCheck(name, path, "executable", required=True, status=CheckStatus.PASS, message="ok", sha256=digest)


def _directory(name: str, path: str) -> AssetCheck:
    status, message = CheckStatus.PASS, "ok"
    if not os.path.isdir(path):
        status, message = CheckStatus.FAIL, "is no directory; NPU Burn makes it at its first run, or set NPU_BURN_OUTPUT_DIR"
    return AssetCheck(name, path or "unset", "directory", required=True, status=status, message=message)


def _signatures(folder: str) -> dict[str, Signature]:
    """Size, time and hash of the files that NPU Burn leaves, as far as they are there."""
    found = {}
    for name in (_RESULTS, _ERRORS):
        with contextlib.suppress(OSError):
            body = _read(folder, name)
            facts = os.stat(os.path.join(folder, name))
            found[name] = (facts.st_size, facts.st_mtime_ns, hashlib.sha256(body).hexdigest())
    return found


def _read(folder: str, name: str) -> bytes:
    with open(os.path.join(folder, name), "rb") as file:
        return file.read(_MOST_BYTES)
