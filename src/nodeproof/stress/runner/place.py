"""Where a runner is asked; apart from the client, so that looking for one loads nothing."""

import os

__all__ = ["DEFAULT_SOCKET", "SOCKET_VARIABLE", "may_own"]

DEFAULT_SOCKET = "/run/nodeproof-runner/runner.sock"
SOCKET_VARIABLE = "NODEPROOF_RUNNER_SOCKET"


def may_own(named: str) -> bool:
    """Whether a runner may own the stress jobs here: one is named, something is at the default place, or that cannot be seen.

    ``named`` is what the environment says; ``none`` = there is none.
    """
    if named:
        return named != "none"
    try:
        os.stat(DEFAULT_SOCKET)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
