"""A fixture host made of a bundle: a folder that collectors read in place of a machine, with the readings they must bring."""

import os
import shutil
from typing import TypeVar

import msgspec

from nodeproof.config.schema import Config
from nodeproof.errors import RecordError, UsageError
from nodeproof.host.atomic import DIRECTORY_MODE, FILE_MODE, temporary_name, write_error
from nodeproof.model.metric import Metric, Missing
from nodeproof.operate.bundle.archive import read_bundle

_T = TypeVar("_T")

__all__ = ["CONFIG", "HOST", "READINGS", "Fixture", "Readings", "open_fixture", "write_fixture"]

HOST = "host"
READINGS = "readings.json"
CONFIG = "config.json"
_PARTS = (READINGS, CONFIG)
_MAX_BYTES = 64 << 20


class Readings(msgspec.Struct, frozen=True, kw_only=True):
    """``readings.json``: what the collectors brought in the last look, by component."""

    looks: int
    metrics: dict[str, list[Metric]]
    missing: dict[str, list[Missing]]
    failures: dict[str, str] = {}


class Fixture(msgspec.Struct, frozen=True, kw_only=True):
    """A fixture host on disk."""

    root: str
    """Folder of the recorded machine."""
    config: Config
    readings: Readings


def write_fixture(bundle: str, folder: str) -> int:
    """Unpack the recorded machine in ``bundle`` as the new ``folder``, whole or not at all; how many files.

    Raises RecordError, UsageError and WriteError.
    """
    if os.path.lexists(folder):
        raise UsageError(f"{folder} is there already; name a folder that is to be made")
    manifest, parts = read_bundle(bundle)
    wanted = {name: data for name, data in parts.items() if name.startswith(f"{HOST}/") or name in _PARTS}
    for name in (f"{HOST}/recorded.json", *_PARTS):
        if name not in wanted:
            reason = manifest.left_out.get(name, "it was made without")
            raise RecordError(f"{bundle}: holds no {name} ({reason[:200]}); no host can be made of it")
    aside = temporary_name(os.path.abspath(folder))
    try:
        os.mkdir(aside, DIRECTORY_MODE)
        for name, data in sorted(wanted.items()):
            _write(os.path.join(aside, name), data)
        os.rename(aside, folder)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise write_error(folder, error) from None
    return len(wanted)


def _write(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), DIRECTORY_MODE, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    with open(fd, "wb") as file:
        file.write(data)


def open_fixture(folder: str) -> Fixture:
    """The fixture host in ``folder``. Raises RecordError."""
    return Fixture(
        root=os.path.join(folder, HOST),
        config=_decoded(os.path.join(folder, CONFIG), Config),
        readings=_decoded(os.path.join(folder, READINGS), Readings),
    )


def _decoded(path: str, kind: type[_T]) -> _T:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(_MAX_BYTES), type=kind)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}; expected a folder made by nodeproof bundle fixture") from None
    except msgspec.MsgspecError as error:
        raise RecordError(f"{path}: {error}") from None
