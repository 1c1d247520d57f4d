"""The child process that reads a configuration file for the daemon: ``python -m nodeproof.cli.config_child FILE``.

A YAML parser costs 3 MiB of memory that a process never gives back; the daemon needs it for a moment, here.
"""

import os
import sys

from nodeproof.cli.lean import msgspec
from nodeproof.cli.places import with_home
from nodeproof.config.loader import load
from nodeproof.errors import ConfigError

__all__ = ["main"]


def main() -> int:
    """Print the configuration as JSON, or what is wrong with it and exit 2."""
    try:
        config = load(sys.argv[1], with_home(os.environ))
    except ConfigError as error:
        sys.stdout.write(str(error))
        return 2
    sys.stdout.buffer.write(msgspec.json.encode(config))
    return 0


if __name__ == "__main__":
    sys.exit(main())
