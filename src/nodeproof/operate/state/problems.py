"""What a look at the state finds."""

import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from nodeproof.host.atomic import write_error

__all__ = ["Problem", "Store", "set_aside"]


class Problem(NamedTuple):
    """Something that is not as it should be."""

    path: str
    what: str
    would: str
    """What repair does about it; empty = nothing, only a person can."""
    mend: Callable[[], str] | None = None
    """Does it; in words what was done. Raises NodeproofError."""
    live: bool = False
    """The daemon writes there: it is mended only while none runs."""


class Store(Protocol):
    """One of the places where we keep something."""

    name: str
    path: str
    examined: int
    """Files or entries that were looked at."""

    def problems(self, *, deep: bool) -> Iterator[Problem]:
        """What is wrong; with ``deep`` every byte that has a hash is compared with it."""
        ...


def set_aside(path: str) -> str:
    """Give a file that cannot be understood another name; in words. Raises WriteError."""
    aside = f"{path}.damaged-{time.time_ns():019d}"
    try:
        os.rename(path, aside)
    except OSError as error:
        raise write_error(path, error) from None
    return f"set aside as {aside}"
