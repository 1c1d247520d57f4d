"""``nodeproof version``."""

import argparse
import platform

from nodeproof import __version__

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print version, interpreter and system."""
    del options
    print(f"nodeproof v{__version__} (Python {platform.python_version()}, {platform.system()} {platform.machine()})")
    return 0
