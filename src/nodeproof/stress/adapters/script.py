"""The administrator's dispatcher: ``bash SCRIPT NAME`` runs an item, ``bash SCRIPT describe NAME`` tells what that would run.

The reference's V1 ``benchmark_check.sh`` runs unchanged (stress.md 2.0, 3). A script without the marker is never executed. What
it says of itself is believed only as far as it is consistent, complete and of the right types.
"""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping

import msgspec

from nodeproof.errors import CommandError, NoData, ParseError, WriteError
from nodeproof.host.atomic import make_directory
from nodeproof.host.containment import Containment
from nodeproof.host.machine import Machine
from nodeproof.model.job import ExecutionProfile
from nodeproof.model.process import Ended, EndKind, Limits
from nodeproof.model.run import Provenance
from nodeproof.stress.adapters.base import DescribeError, ItemRequest, Launch, LaunchError
from nodeproof.stress.adapters.describe_v1 import read_description
from nodeproof.stress.adapters.described_assets import false_claim, requested_devices
from nodeproof.stress.facts import look_at_box
from nodeproof.stress.judging import judge_hpcg_files, judge_output, result_files
from nodeproof.stress.parsers.judgement import Judgement
from nodeproof.stress.profile import sha256_of_file
from nodeproof.stress.progress import WatchPolicy
from nodeproof.stress.settings import StressSettings

__all__ = ["MARKER", "ScriptAdapter"]

MARKER = b"CATMONITOR_STRESS_DESCRIBE_PROTOCOL=1"
_DESCRIBE_S = 2.0
_MAX_ANSWER_BYTES = 256 * 1024
_MAX_SCRIPT_BYTES = 4 * 1024 * 1024
_MAX_ERROR_BYTES = 256
_BASH = "/bin/bash"
_APART = 'exec "$BASH" "$1" describe "$2" 2>"$3"'
"""Keeps errors apart from the answer; the script itself gets only the fixed name."""
_BY_RUNNER = "container_runner"
_WATCHED_ELSEWHERE = WatchPolicy(hung_after_s=86400.0)
"""What runs here is a client that waits for the answer; the runner itself ends what hangs."""


class ScriptAdapter:
    """Runs every item through one script."""

    kind = "script"

    def __init__(self, settings: StressSettings, environ: Mapping[str, str], machine: Machine) -> None:
        self._path = settings.script_path
        self._settings = settings
        self._environ = {key: value for key, value in environ.items() if key != "NODEPROOF_JOB"}
        self._machine = machine
        self._requested: dict[str, frozenset[int] | None] = {}
        """Devices that the newest description of an item names."""
        self._elsewhere: set[str] = set()
        """Items that the newest description has run by a runner."""

    def stamp(self, request: ItemRequest) -> object:
        """Time of change and size of the script."""
        del request
        try:
            facts = os.stat(self._path)
        except OSError:
            return None
        return facts.st_mtime_ns, facts.st_size

    def describe(self, request: ItemRequest) -> ExecutionProfile:
        """Ask the script. Raises DescribeError for anything but one sound answer in time."""
        self._check_marker()
        answer = self._ask(request.benchmark)
        profile = read_description(answer, request.benchmark)
        lie = false_claim(profile)
        if lie:
            raise DescribeError(f"describe {request.benchmark}: the answer cannot be believed: {lie}")
        self._requested[request.benchmark] = requested_devices(profile)
        told = {entry.value for entry in profile.parameters if entry.key == "execution_backend"}
        (self._elsewhere.add if _BY_RUNNER in told else self._elsewhere.discard)(request.benchmark)
        try:
            digest = sha256_of_file(self._path)
        except OSError as error:
            raise DescribeError(f"{self._path}: {os.strerror(error.errno or 0)}") from None
        return msgspec.structs.replace(profile, executor="", script_sha256=digest)

    def launch(self, request: ItemRequest) -> Launch:
        """``bash SCRIPT NAME`` in the directory of the script. Raises LaunchError."""
        item = self._settings.benchmarks[request.benchmark]
        before = {}
        if request.benchmark == "hpcg":
            try:
                before = result_files(item.result_dir)
            except OSError as error:
                raise LaunchError(f"{item.result_dir}: {os.strerror(error.errno or 0)}") from None
        try:
            digest = sha256_of_file(self._path)
        except OSError as error:
            raise LaunchError(f"{self._path}: {os.strerror(error.errno or 0)}") from None
        llc = None
        with contextlib.suppress(NoData, ParseError):
            llc = look_at_box(self._machine).llc_bytes
        return Launch(
            argv=(_BASH, self._path, request.benchmark),
            cwd=os.path.dirname(os.path.abspath(self._path)),
            environment=dict(self._environ),
            watch=_WATCHED_ELSEWHERE if request.benchmark in self._elsewhere else WatchPolicy(),
            result_dir=item.result_dir if request.benchmark == "hpcg" else "",
            before=before,
            provenance=(Provenance("dispatcher", sha256=digest, path=self._path),),
            llc_bytes=llc,
            devices=self._requested.get(request.benchmark),
        )

    def judge(self, request: ItemRequest, launch: Launch, output: bytes) -> Judgement:
        """By the output; HPCG by the file that it leaves."""
        if request.benchmark == "hpcg":
            return judge_hpcg_files(launch.result_dir, launch.before, output)
        return judge_output(request.benchmark, output, llc_bytes=launch.llc_bytes, devices=launch.devices)

    def _check_marker(self) -> None:
        try:
            with open(self._path, "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise DescribeError(f"{self._path} is no regular file")
                text = file.read(_MAX_SCRIPT_BYTES)
        except OSError as error:
            raise DescribeError(f"{self._path}: {os.strerror(error.errno or 0)}") from None
        if MARKER not in text:
            raise DescribeError(f"{self._path} does not say {MARKER.decode()}: it cannot describe what it runs, so it is not run")

    def _ask(self, benchmark: str) -> bytes:
        """The answer on standard output. Raises DescribeError."""
        root = os.path.join(self._settings.state_root, "describe")
        folder = ""
        try:
            make_directory(root)
            folder = tempfile.mkdtemp(dir=root)
            return self._ask_in(folder, benchmark)
        except (CommandError, WriteError) as error:
            raise DescribeError(f"describe {benchmark}: {error}") from None
        except OSError as error:
            raise DescribeError(f"describe {benchmark}: {os.strerror(error.errno or 0)}") from None
        finally:
            if folder:
                shutil.rmtree(folder, ignore_errors=True)

    def _ask_in(self, folder: str, benchmark: str) -> bytes:
        errors = os.path.join(folder, "errors")
        output = os.path.join(folder, "answer")
        job = Containment(use_cgroup=False).start(
            [_BASH, "-c", _APART, "describe", self._path, benchmark, errors],
            cwd=os.path.dirname(os.path.abspath(self._path)),
            output_path=output,
            environment=self._environ,
            limits=Limits(duration_s=_DESCRIBE_S, grace_s=0.0, linger_s=0.0, output_bytes=2 * _MAX_ANSWER_BYTES),
        )
        with job:
            ended = job.wait(_DESCRIBE_S + 5.0) or job.cancel(0.0)
        with open(output, "rb") as file:
            answer = file.read()
        _check_end(benchmark, ended, answer, errors)
        return answer


def _check_end(benchmark: str, ended: Ended, answer: bytes, errors: str) -> None:
    """Raises DescribeError unless the script ended soon, well and within its size."""
    if ended.kind is EndKind.LIMIT:
        raise DescribeError(f"describe {benchmark}: no answer within {_DESCRIBE_S:g} s; it was ended")
    if not ended.succeeded:
        said = b""
        with contextlib.suppress(OSError), open(errors, "rb") as file:
            said = file.read(_MAX_ERROR_BYTES)
        text = " ".join((said or answer[:_MAX_ERROR_BYTES]).decode("utf-8", "replace").split())
        raise DescribeError(f"describe {benchmark}: {ended.reason or 'it failed'}: {text or 'it said nothing'}")
    if ended.output_bytes > _MAX_ANSWER_BYTES:
        raise DescribeError(f"describe {benchmark}: an answer of {ended.output_bytes} bytes, {_MAX_ANSWER_BYTES} are allowed")
