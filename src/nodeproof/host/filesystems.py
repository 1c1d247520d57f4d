"""Space and inodes of a mounted file system: statvfs(3).

The call may block for ever on a dead network server or FUSE daemon: callers run it through ``Machine.background``.
"""

import os
from typing import NamedTuple

__all__ = ["Space", "space"]


class Space(NamedTuple):
    """What statvfs tells. A file system without a fixed number of inodes (btrfs, vfat) has ``inodes`` 0."""

    block_bytes: int
    blocks: int
    blocks_free: int
    """Free for root."""
    blocks_available: int
    """Free for everybody: without the blocks reserved for root."""
    inodes: int = 0
    inodes_free: int = 0


def space(real_path: str) -> Space:
    """Space of the file system that holds ``real_path``. Raises OSError; may block."""
    found = os.statvfs(real_path)
    return Space(found.f_frsize or found.f_bsize, found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree)
