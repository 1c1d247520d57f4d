"""``nodeproof bench key``: the public key that others need to believe the records of this node."""

import argparse

from nodeproof.cli.bench_executor import as_json, signing_key, told
from nodeproof.cli.output import print_json, print_text

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    public = signing_key(options).public
    if as_json(options):
        print_json({"key": str(public), "key_id": public.key_id}, indent=2)
    else:
        print_text(f"{public}\n")
    return 0


run = told("key", _run)
