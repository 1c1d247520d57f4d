"""``nodeproof check``: the last verdict of the daemon, for a scheduler's prolog."""

import argparse
import os

import msgspec

from nodeproof.cli.options import load_config
from nodeproof.cli.table import printable
from nodeproof.errors import SnapshotError
from nodeproof.health.grades import verdict
from nodeproof.model.health import HealthScore, Verdict
from nodeproof.model.snapshot import DaemonVerdict
from nodeproof.sinks.snapshot import GLOBAL_FILE
from nodeproof.sinks.snapshot_reader import read_global, read_state

__all__ = ["run"]

_LINE_LIMIT = 400


def run(options: argparse.Namespace) -> int:
    """Print one line; exit 0 sound, 1 warning, 2 critical, 3 when it cannot be told."""
    answer = _verdict(load_config(options).snapshot.dir)
    if options.output == "json":
        print(msgspec.json.encode(answer).decode())
    else:
        print(printable(answer.line, _LINE_LIMIT))
    return answer.exit_code


def _verdict(directory: str) -> Verdict:
    state = read_state(directory)
    if state.verdict is not DaemonVerdict.RUNNING:
        return verdict(None, problem=f"daemon {state.verdict}: {state.reason}")
    try:
        score: HealthScore = read_global(os.path.join(directory, GLOBAL_FILE)).health
    except SnapshotError as error:
        return verdict(None, problem=str(error))
    return verdict(score)
