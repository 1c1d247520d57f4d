"""Gathering what goes into a bundle besides the recording, within limits of time and size; a part that fails costs itself."""

import os
import platform
import stat
import sys
import threading
import time
from collections.abc import Callable, Mapping

import msgspec

from nodeproof import __version__
from nodeproof.config.schema import Config
from nodeproof.errors import NoData, NodeproofError
from nodeproof.host.commands import Commands
from nodeproof.host.files import FileTree
from nodeproof.operate.bundle.places import names_of_users
from nodeproof.operate.bundle.redact import Redactor

__all__ = ["Gathered", "Source", "learn_host", "sources", "tail"]

_MAX_PART_BYTES = 4 << 20
_MAX_TAIL_BYTES = 1 << 20
_MAX_FILES = 64
_JOURNAL_LINES = 3000
_JOURNAL_S = 10.0
_UNITS = ("nodeproof", "nodeproof-web", "nodeproof-runner", "nodeproof-reader")
_PEOPLE = ("/etc/passwd",)
_NAMES = ("/proc/sys/kernel/hostname", "/etc/hostname")

Source = Callable[[], Mapping[str, bytes]]
"""Brings parts by name; raises OSError or NodeproofError."""


class Gathered:
    """Parts by name, and what could not be had."""

    def __init__(self) -> None:
        self.parts: dict[str, bytes] = {}
        self.left_out: dict[str, str] = {}

    def take(self, asked: Mapping[str, Source], deadline_s: float) -> None:
        """All of ``asked`` side by side; one that is late or fails is named in :attr:`left_out`."""
        answers: dict[str, Mapping[str, bytes] | str] = {}

        def work(name: str, source: Source) -> None:
            try:
                answers[name] = source()
            except OSError as error:
                answers[name] = f"{error.filename or name}: {error.strerror or error}"
            except NodeproofError as error:
                answers[name] = str(error)
            except Exception as error:  # noqa: BLE001 - one part's bug costs that part
                answers[name] = f"{type(error).__name__}: {error}"

        threads = [threading.Thread(target=work, args=item, name=f"bundle:{item[0]}", daemon=True) for item in asked.items()]
        for thread in threads:
            thread.start()
        ends_s = time.monotonic() + deadline_s
        for thread in threads:
            thread.join(max(0.0, ends_s - time.monotonic()))
        for name in asked:
            answer = answers.get(name, f"it was not there after {deadline_s:g} s")
            if isinstance(answer, str):
                self.left_out[name] = answer
            else:
                for part, data in answer.items():
                    self.add(part, data)

    def add(self, name: str, data: bytes) -> None:
        """One part; of one that is too large, its end."""
        if len(data) > _MAX_PART_BYTES:
            self.left_out[name] = f"{len(data)} bytes; only the last {_MAX_PART_BYTES} are in it"
            data = data[-_MAX_PART_BYTES:].partition(b"\n")[2]
        self.parts[name] = data


def sources(config: Config, config_path: str | None, report_path: str, commands: Commands) -> dict[str, Source]:
    """What is gathered on any node, by the name that says what is missing when it cannot be had."""
    found: dict[str, Source] = {
        "environment.json": lambda: {"environment.json": _environment()},
        "logs": lambda: _journal(commands),
        "snapshot": lambda: _folder("snapshot", config.snapshot.dir, ".json"),
        "faults": lambda: _folder("faults", config.faultsub.dir, ".json", ".jsonl"),
        "stress": lambda: _folder("stress", os.path.dirname(report_path), ".json") if report_path else {},
        "data": lambda: _newest("data", config.storage.data_dir, "missing_"),
    }
    if config_path is not None:
        found["nodeproof.yaml"] = lambda: {"nodeproof.yaml": tail(config_path)}
    return found


def tail(path: str, limit: int = _MAX_TAIL_BYTES) -> bytes:
    """The last ``limit`` bytes of a plain file. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, f"{path} is no plain file")
        file.seek(max(0, found.st_size - limit))
        return file.read(limit)


def _folder(part: str, directory: str, *endings: str) -> dict[str, bytes]:
    with os.scandir(directory) as entries:
        names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False) and entry.name.endswith(endings))
    return {f"{part}/{name}": tail(os.path.join(directory, name)) for name in names[-_MAX_FILES:]}


def _newest(part: str, directory: str, beginning: str) -> dict[str, bytes]:
    """The newest file whose name begins so: the absences of today."""
    names = sorted(name for name in os.listdir(directory) if name.startswith(beginning) and name.endswith(".jsonl"))
    return {f"{part}/{name}": tail(os.path.join(directory, name)) for name in names[-1:]}


def _journal(commands: Commands) -> dict[str, bytes]:
    units = [word for unit in _UNITS for word in ("-u", unit)]
    argv = ["journalctl", "--no-pager", "--no-hostname", "-o", "short-iso", "-n", str(_JOURNAL_LINES), *units]
    return {"logs/journal.txt": commands.run(argv, deadline_s=_JOURNAL_S).stdout}


def _environment() -> bytes:
    from importlib import metadata  # noqa: PLC0415 - only here

    packages = sorted({f"{one.metadata['Name']} {one.version}" for one in metadata.distributions()})
    return msgspec.json.format(
        msgspec.json.encode(
            {
                "nodeproof": __version__,
                "python": sys.version,
                "kernel": platform.release(),
                "machine": platform.machine(),
                "libc": " ".join(platform.libc_ver()),
                "user": "root" if os.geteuid() == 0 else "not root",
                "packages": packages,
            }
        ),
        indent=2,
    )


def learn_host(redactor: Redactor, files: FileTree, environ: Mapping[str, str]) -> None:
    """Names of this host, its domains and its people, from files that do not go into the bundle."""
    for path in _NAMES:
        name = _read(files, path).strip()
        redactor.learn("host", name)
        redactor.learn("host", name.partition(b".")[0])
        redactor.learn("domain", name.partition(b".")[2])
    if not files.root:
        redactor.learn("host", platform.node().encode())
    for path in _PEOPLE:
        redactor.learn_all(("user", name) for name in names_of_users(_read(files, path)))
    for variable in ("USER", "LOGNAME", "SUDO_USER"):
        redactor.learn("user", environ.get(variable, "").encode())
    for line in _read(files, "/etc/resolv.conf").splitlines():
        words = line.split()
        if words[:1] in ([b"search"], [b"domain"]):
            redactor.learn_all(("domain", word) for word in words[1:] if word.count(b"."))
    for line in _read(files, "/etc/hosts").splitlines():
        for name in line.partition(b"#")[0].split()[1:]:
            if not name.startswith((b"localhost", b"ip6-")):
                redactor.learn("host", name)


def _read(files: FileTree, path: str) -> bytes:
    try:
        return files.read(path)
    except NoData:
        return b""
