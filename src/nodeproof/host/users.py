"""Users of this machine by their numbers."""

import contextlib
import os
import pwd

__all__ = ["give_to_owner", "user_name"]


def user_name(uid: int) -> str:
    """``root``, ``nobody (uid 65534)``; the number alone where there is no name for it."""
    if uid == 0:
        return "root"
    with contextlib.suppress(KeyError):
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    return f"uid {uid}"


def give_to_owner(path: str) -> None:
    """Let a file that root made belong to whom its directory belongs to: a service must be able to use what lies in its own."""
    if os.geteuid() != 0:
        return
    with contextlib.suppress(OSError):
        owner = os.stat(os.path.dirname(path))
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
