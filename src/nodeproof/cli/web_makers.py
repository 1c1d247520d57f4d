"""What the page is lent by the command that serves it: a stress manager, made when it is first needed, and the doctor."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from nodeproof.config.places import state_directory
from nodeproof.config.schema import Config
from nodeproof.errors import NodeproofError
from nodeproof.stress.runner.place import SOCKET_VARIABLE, may_own
from nodeproof.web.backstage import Makers

if TYPE_CHECKING:
    from nodeproof.stress.facade import StressFacade
    from nodeproof.stress.settings import StressSettings

__all__ = ["makers_of"]

_DOCTOR_DEADLINE_S = 60.0


def makers_of(options: argparse.Namespace, config: Config) -> Makers:
    """For a server that was started with ``options``."""

    def manager() -> "StressFacade":
        from nodeproof.cli.stress_manager import owner_of  # noqa: PLC0415 - only when somebody asks for stress jobs

        return owner_of(config, options.environ)

    def doctor() -> bytes:
        from nodeproof.host.commands import HostCommands  # noqa: PLC0415 - only when somebody asks for it

        where = ["-c", options.config] if options.config else []
        argv = [sys.executable, "-m", "nodeproof", "doctor", "-o", "json", "--root", options.root, *where]
        done = HostCommands().run(argv, deadline_s=_DOCTOR_DEADLINE_S)
        if done.exit_code not in {0, 1}:
            raise NodeproofError(f"nodeproof doctor ended with status {done.exit_code}: {done.first_error_line()}")
        return done.stdout

    def settings() -> "StressSettings":
        from nodeproof.stress.settings import StressSettings  # noqa: PLC0415 - only when somebody asks for stress jobs

        return StressSettings.of(config, options.environ)

    # Where a runner owns the jobs, its word counts, and not what lies in this user's state directory.
    owned_elsewhere = may_own(options.environ.get(SOCKET_VARIABLE, ""))
    audit_dir = os.path.join(state_directory(options.environ), "stress")
    return Makers(manager, doctor, None if owned_elsewhere else settings, config.faultsub.dir, audit_dir)
