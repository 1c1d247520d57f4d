"""``nodeproof check``: the last verdict of the daemon, for a scheduler's prolog."""

import argparse
import os
import sys

from nodeproof.cli.options import load_config
from nodeproof.cli.output import drop_output, print_json
from nodeproof.cli.table import printable
from nodeproof.errors import NodeproofError
from nodeproof.health.grades import verdict
from nodeproof.model.health import HealthScore, Verdict
from nodeproof.model.snapshot import DaemonVerdict
from nodeproof.sinks.snapshot_names import GLOBAL_FILE
from nodeproof.sinks.snapshot_reader import read_global, read_state

__all__ = ["run"]

_LINE_LIMIT = 400


def run(options: argparse.Namespace) -> int:
    """Print one line; exit 0 sound, 1 warning, 2 critical, 3 when it cannot be told, whatever the cause."""
    try:
        answer = _verdict(load_config(options).snapshot.dir)
    except NodeproofError as error:
        answer = verdict(None, problem="; ".join(str(error).splitlines()))
    except Exception as error:  # noqa: BLE001 - the exit code of a traceback would read as a warning
        answer = verdict(None, problem=f"an error of nodeproof itself: {type(error).__name__}: {error}")
    try:
        if options.output == "json":
            print_json(answer)
        else:
            print(printable(answer.line, _LINE_LIMIT))
        sys.stdout.flush()
    except OSError:
        # The exit code is the answer: a reader that has gone, or a full disk, must not change it.
        drop_output()
    return answer.exit_code


def _verdict(directory: str) -> Verdict:
    state = read_state(directory)
    if state.verdict is not DaemonVerdict.RUNNING:
        return verdict(None, problem=f"daemon {state.verdict}: {state.reason}")
    score: HealthScore = read_global(os.path.join(directory, GLOBAL_FILE)).health
    return verdict(score)
