"""File systems that are full or read-only: real ones for root, the nearest thing for others."""

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["read_only", "tiny_disk", "writable_again"]


@contextlib.contextmanager
def tiny_disk(folder: Path, size_kib: int) -> Iterator[None]:
    """``folder`` can hold so much, or, without root, one file in it can be so large."""
    if os.geteuid() == 0:
        subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(folder)], check=True)
        try:
            yield
        finally:
            subprocess.run(["/bin/umount", "-l", str(folder)], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_kib * 1024, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def read_only(folder: Path) -> None:
    """Nothing can be written in ``folder``, a mount of :func:`tiny_disk` for root."""
    if os.geteuid() == 0:
        subprocess.run(["/bin/mount", "-o", "remount,ro", str(folder)], check=True)
    else:
        folder.chmod(0o500)


def writable_again(folder: Path) -> None:
    """The end of :func:`read_only`."""
    if os.geteuid() == 0:
        subprocess.run(["/bin/mount", "-o", "remount,rw", str(folder)], check=True)
    else:
        folder.chmod(0o750)
