"""Options that many commands have alike."""

import argparse

__all__ = ["add_config", "add_root"]


def add_config(parser: argparse.ArgumentParser) -> None:
    """Which configuration holds."""
    parser.add_argument("-c", "-config", "--config", metavar="FILE", help="configuration file (default: see docs/config.md)")


def add_root(parser: argparse.ArgumentParser) -> None:
    """Which machine is looked at; of commands that look at one."""
    parser.add_argument(
        "--root", default="/", metavar="DIR", help="root of the machine to observe, /host in a container (default: /)"
    )
