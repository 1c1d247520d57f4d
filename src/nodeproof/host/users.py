"""Users of this machine by their numbers."""

import contextlib
import pwd

__all__ = ["user_name"]


def user_name(uid: int) -> str:
    """``root``, ``nobody (uid 65534)``; the number alone where there is no name for it."""
    if uid == 0:
        return "root"
    with contextlib.suppress(KeyError):
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    return f"uid {uid}"
