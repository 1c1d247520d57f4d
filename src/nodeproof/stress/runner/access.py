"""Who may do what at the runner's socket, by the kernel's word on who is asking."""

import grp
import os
import pwd
from collections.abc import Iterable
from enum import IntEnum

from nodeproof.errors import UsageError
from nodeproof.host.peer import Peer

__all__ = ["Access", "Role"]


class Role(IntEnum):
    """Each may do what those below it may."""

    NONE = 0
    VIEWER = 1
    """Reads: what could be run, what runs, what was run."""
    OPERATOR = 2
    """Starts and cancels, too."""


class Access:
    """Users and groups with a role. Root and the runner's own user are always operators."""

    def __init__(self, operators: Iterable[str] = (), viewers: Iterable[str] = ()) -> None:
        """Each entry is a user, by name or number, or a group with a percent sign before it. Raises UsageError."""
        self._users: dict[int, Role] = {0: Role.OPERATOR, os.geteuid(): Role.OPERATOR}
        self._groups: dict[int, Role] = {}
        for role, entries in ((Role.VIEWER, viewers), (Role.OPERATOR, operators)):
            for entry in entries:
                self._admit(entry.strip(), role)

    def role(self, peer: Peer) -> Role:
        """The best that user and groups of ``peer`` give."""
        roles = [self._users.get(peer.uid, Role.NONE)]
        roles += [role for gid, role in self._groups.items() if peer.in_group(gid)]
        return max(roles)

    def _admit(self, entry: str, role: Role) -> None:
        table, number = (self._groups, _gid(entry[1:])) if entry.startswith("%") else (self._users, _uid(entry))
        table[number] = max(role, table.get(number, Role.NONE))


def _uid(name: str) -> int:
    if name.isascii() and name.isdecimal():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise UsageError(f"{name!r}: this machine has no such user") from None


def _gid(name: str) -> int:
    if name.isascii() and name.isdecimal():
        return int(name)
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise UsageError(f"%{name}: this machine has no such group") from None
