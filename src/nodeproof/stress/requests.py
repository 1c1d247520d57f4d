"""Requests to cancel, left for the owner of a job by other processes: ``<directory>/stress-cancel/<job id>``.

A file says who may ask: whoever can write into the directory (its owner and, by its mode, nobody else until an administrator lets
a group in). The owner looks for the file while the job runs, and removes it at the end.
"""

import contextlib
import os
import re

from nodeproof.host.atomic import make_directory, replace_file

__all__ = ["CancelRequests"]

_FOLDER = "stress-cancel"
_JOB_ID = re.compile(r"[0-9a-f]{1,64}")
_MAX_REASON_BYTES = 500


class CancelRequests:
    """Those of one report path."""

    def __init__(self, directory: str) -> None:
        self._folder = os.path.join(directory, _FOLDER)

    def ask(self, job_id: str, reason: str) -> None:
        """Leave a request. Raises WriteError when this user may not."""
        if _JOB_ID.fullmatch(job_id):
            replace_file(self._path(job_id), f"{reason}\n".encode())

    def may_ask(self) -> bool:
        """Whether this user could leave one."""
        return os.access(self._folder, os.W_OK | os.X_OK)

    def asked(self, job_id: str) -> str | None:
        """The reason of a request for ``job_id``; None when there is none."""
        try:
            with open(self._path(job_id), "rb") as file:
                return file.read(_MAX_REASON_BYTES).decode("utf-8", "replace").strip() or "cancelled"
        except OSError:
            return None

    def prepare(self) -> None:
        """Make the directory, so that others may ask. Raises WriteError."""
        make_directory(self._folder)

    def forget(self, job_id: str) -> None:
        """Remove the request, and those of jobs that are long over: only one runs at a time."""
        with contextlib.suppress(OSError):
            for name in os.listdir(self._folder):
                if name == job_id or _JOB_ID.fullmatch(name):
                    os.unlink(os.path.join(self._folder, name))

    def _path(self, job_id: str) -> str:
        return os.path.join(self._folder, job_id)
