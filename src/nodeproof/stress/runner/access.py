"""Who may do what at the runner's socket, by the kernel's word on who is asking."""

import os
from collections.abc import Iterable
from enum import IntEnum

from nodeproof.host.peer import Peer
from nodeproof.host.users import group_number, user_number

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
        table, number = (self._groups, group_number(entry[1:])) if entry.startswith("%") else (self._users, user_number(entry))
        table[number] = max(role, table.get(number, Role.NONE))
