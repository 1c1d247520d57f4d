"""Who may do what at the runner's socket."""

import os

import pytest

from nodeproof.errors import UsageError
from nodeproof.host.peer import Peer
from nodeproof.stress.runner.access import Access, Role


def peer(uid: int, gid: int = 4000, *groups: int) -> Peer:
    return Peer(1, uid, gid, frozenset(groups))


def test_root_and_the_runners_own_user_are_operators_and_nobody_else_is() -> None:
    access = Access()
    assert access.role(peer(0)) is Role.OPERATOR
    assert access.role(peer(os.geteuid())) is Role.OPERATOR
    assert access.role(peer(4001)) is Role.NONE


def test_users_and_groups_by_name_and_number() -> None:
    access = Access(operators=["4001", "%5000"], viewers=["nobody", "%root"])
    assert access.role(peer(4001)) is Role.OPERATOR
    assert access.role(peer(4002, 5000)) is Role.OPERATOR
    assert access.role(peer(4002, 4000, 5000)) is Role.OPERATOR
    assert access.role(peer(65534)) is Role.VIEWER
    assert access.role(peer(4002, 0)) is Role.VIEWER
    assert access.role(peer(4002)) is Role.NONE


def test_the_better_of_two_roles_holds() -> None:
    assert Access(operators=["4001"], viewers=["4001"]).role(peer(4001)) is Role.OPERATOR
    assert Access(operators=["%5000"], viewers=["4001"]).role(peer(4001, 5000)) is Role.OPERATOR


@pytest.mark.parametrize(
    ("entry", "message"), [("no-such-user", "no such user"), ("%no-such-group", "no such group"), ("", "no such user")]
)
def test_names_that_there_are_none_of(entry: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Access(operators=[entry])
