"""Programs beside a run of BFCL: contained, bounded in time, ended by a cancel, their output kept with the record."""

import os
from collections.abc import Mapping, Sequence

from nodeproof.errors import CommandError, RunError
from nodeproof.host.containment import Containment
from nodeproof.host.job_environment import allowed_environment
from nodeproof.model.process import Ended, Limits
from nodeproof.runs.handle import PluginHandle

__all__ = ["last_line", "last_words", "run_child"]

_WAIT_S = 0.5
_GRACE_S = 2.0
_WORDS_BYTES = 64 * 1024
_WORDS_CHARS = 400


def run_child(
    handle: PluginHandle, argv: Sequence[str], name: str, *, limit_s: float, more: Mapping[str, str] | None = None
) -> Ended:
    """Run ``argv`` to its end; what it prints is ``<name>.log`` of the record. Raises RunError, RunCancelled."""
    environment = {**allowed_environment(os.environ), **(more or {})}
    try:
        child = Containment(use_cgroup=False).start(
            argv,
            cwd="/",
            output_path=_log_path(handle, name),
            environment=environment,
            limits=Limits(duration_s=limit_s, grace_s=_GRACE_S),
        )
    except CommandError as error:
        raise RunError(f"{argv[0]} could not be started: {error.detail}") from None
    with child, handle.on_cancel(lambda: child.request_cancel("the run is to stop")):
        ended = None
        while ended is None:
            ended = child.wait(_WAIT_S)
    handle.check_cancelled()
    return ended


def last_line(handle: PluginHandle, name: str) -> str:
    """The last line that :func:`run_child` kept of a program; empty when it said nothing."""
    return (_lines(handle, name) or [""])[-1]


def last_words(handle: PluginHandle, name: str) -> str:
    """Its last line for messages: of what it called an error, if it did."""
    lines = _lines(handle, name)
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    return (errors or lines or ["it said nothing"])[-1][:_WORDS_CHARS]


def _lines(handle: PluginHandle, name: str) -> list[str]:
    try:
        with open(_log_path(handle, name), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _WORDS_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip()]


def _log_path(handle: PluginHandle, name: str) -> str:
    return handle.file_path(f"{name}.log")
