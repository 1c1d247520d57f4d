"""How the C library hands out memory in this process.

glibc gives threads arenas of their own, up to eight a processor, so that they need not wait for each other; what a thread frees
stays in its arena. Here threads come and go with each slow call and hold Python's lock anyway: more than one arena only keeps
memory that nobody uses (a megabyte within minutes, and it grows).
"""

import ctypes

__all__ = ["share_one_arena"]

_M_ARENA_MAX = -8
"""malloc.h of glibc; mallopt(3)."""


def share_one_arena() -> bool:
    """Have all threads of this process share one arena; False where the library knows no arenas. Call it before they start."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(_M_ARENA_MAX, 1) == 1
