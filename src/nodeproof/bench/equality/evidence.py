"""Every reply of a run, as it came, in ``replies.jsonl`` of its record: what was found can be looked up, and judged anew."""

from typing import Self

import msgspec

from nodeproof.bench.equality.replies import Reply
from nodeproof.host.append import AppendFile
from nodeproof.runs.handle import PluginHandle

__all__ = ["Evidence"]

_NAME = "replies.jsonl"


class _Line(msgspec.Struct, frozen=True):
    leg: str
    name: str
    sha256: str
    reply: Reply


class Evidence:
    """The file, open for appending."""

    def __init__(self, file: AppendFile) -> None:
        self._file = file

    @classmethod
    def of(cls, handle: PluginHandle) -> Self:
        """That of a run. Raises WriteError."""
        return cls(AppendFile(handle.file_path(_NAME)))

    def add(self, leg: str, name: str, reply: Reply) -> None:
        """One reply: in which leg of the run, and to what. Raises WriteError."""
        self._file.append(msgspec.json.encode(_Line(leg, name, reply.digest(), reply)) + b"\n")

    def close(self) -> None:
        """Have it on the disk. Raises WriteError."""
        self._file.sync()
        self._file.close()
