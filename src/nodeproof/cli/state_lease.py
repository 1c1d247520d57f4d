"""The right to work with what is kept on this machine, for commands that write there."""

import argparse
import contextlib
import logging
from collections.abc import Iterator

from nodeproof.cli.places import with_home
from nodeproof.config.places import state_directory
from nodeproof.errors import WriteError
from nodeproof.operate.state.version import enter_state

__all__ = ["working_state"]

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def working_state(options: argparse.Namespace) -> Iterator[None]:
    """Hold the state directory in the form of this nodeproof while inside; an older form is brought up first.

    Raises RecordError for a newer form, or one that another process keeps from being changed. Where the directory cannot be
    written there is nothing to spoil: what is kept elsewhere, or asked of a runner, goes on.
    """
    try:
        lease = enter_state(state_directory(with_home(options.environ)))
    except WriteError as error:
        _log.info("the state directory is left alone: %s", error)
        yield
        return
    if lease.did:
        _log.warning("the state was brought up: %s", ", ".join(lease.did))
    try:
        yield
    finally:
        lease.close()
