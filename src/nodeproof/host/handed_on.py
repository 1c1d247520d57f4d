"""Running one program whose output goes where ours does, as it comes, and is kept beside."""

import os
import subprocess
from collections.abc import Mapping, Sequence

from nodeproof.errors import CommandError, CommandFailure

__all__ = ["run_handing_on"]

_CHUNK_BYTES = 65536
_STDOUT = 1


def run_handing_on(argv: Sequence[str], environment: Mapping[str, str], *, cwd: str, keep_bytes: int) -> tuple[int, bytes]:
    """Run ``argv`` to its end, in our process group; its exit status (negative: the signal) and the last bytes it printed.

    There is no deadline: whoever ends us ends the group. Raises CommandError when it cannot be started.
    """
    try:
        child = subprocess.Popen(list(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(environment), cwd=cwd)
    except PermissionError as error:
        raise CommandError(argv[0], CommandFailure.NO_PERMISSION, error.strerror or "") from None
    except OSError as error:
        raise CommandError(argv[0], CommandFailure.START_FAILED, error.strerror or "") from None
    kept = bytearray()
    with child:
        pipe = child.stdout.fileno() if child.stdout is not None else -1
        while chunk := os.read(pipe, _CHUNK_BYTES):
            _write_all(chunk)
            kept += chunk
            del kept[:-keep_bytes]
    return child.returncode, bytes(kept)


def _write_all(data: bytes) -> None:
    while data:
        data = data[os.write(_STDOUT, data) :]
