"""How the C library hands out memory in this process.

glibc gives threads arenas of their own, up to eight a processor, so that they need not wait for each other; what a thread frees
stays in its arena. Here threads come and go with each slow call and hold Python's lock anyway: more than one arena only keeps
memory that nobody uses (a megabyte within minutes, and it grows).
"""

import ctypes

__all__ = ["give_back", "return_large_blocks", "share_one_arena"]

_M_ARENA_MAX = -8
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
"""malloc.h of glibc; mallopt(3)."""
_LARGE_BYTES = 64 * 1024


def share_one_arena() -> bool:
    """Have all threads of this process share one arena; False where the library knows no arenas. Call it before they start."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(_M_ARENA_MAX, 1) == 1


def give_back() -> None:
    """Return to the kernel what is free at this moment: a start frees much that lies between things that stay."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def return_large_blocks() -> bool:
    """Give blocks of 64 KiB and more back to the kernel as soon as they are freed; False where the library cannot.

    For a process that makes a document a second for each of many readers: glibc learns from such blocks to keep them, two
    megabytes with twenty readers.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(option, _LARGE_BYTES) == 1 for option in (_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD))
