"""Users and groups of this machine, by name and number."""

import contextlib
import grp
import os
import pwd
from collections.abc import Iterable

from nodeproof.errors import UsageError

__all__ = ["UserList", "give_to_owner", "group_number", "user_name", "user_number"]


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


def user_number(name: str) -> int:
    """The number of a user named by name or number. Raises UsageError."""
    if name.isascii() and name.isdecimal():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise UsageError(f"{name!r}: this machine has no such user") from None


def group_number(name: str) -> int:
    """The number of a group named by name or number. Raises UsageError."""
    if name.isascii() and name.isdecimal():
        return int(name)
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise UsageError(f"%{name}: this machine has no such group") from None


class UserList:
    """Users by name or number, and groups with a percent sign before them; root and this process's user are always on it."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """Raises UsageError for a user or group that this machine has not."""
        named = [entry.strip() for entry in entries]
        self._users = {0, os.geteuid(), *(user_number(name) for name in named if not name.startswith("%"))}
        self._groups = {group_number(name[1:]) for name in named if name.startswith("%")}

    def has(self, uid: int) -> bool:
        """Whether the user, or a group that it is a member of by the tables of users, is on the list."""
        return uid in self._users or not self._groups.isdisjoint(_groups_of(uid) if self._groups else ())


def _groups_of(uid: int) -> list[int]:
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return []
    return os.getgrouplist(user.pw_name, user.pw_gid)
