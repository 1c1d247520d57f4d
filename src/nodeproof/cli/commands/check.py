"""``nodeproof check``: the last verdict of the daemon, for a scheduler's prolog.

It runs before every job, so it loads next to nothing: no structs, no rules, and a YAML parser only where there is a file.
"""

import argparse
import json
import os
import sys

from nodeproof.cli.places import snapshot_directory
from nodeproof.cli.quiet import drop_output
from nodeproof.cli.table import printable
from nodeproof.errors import NodeproofError
from nodeproof.model.answer import Answer, unknown
from nodeproof.sinks.last_verdict import last_verdict
from nodeproof.sinks.snapshot_names import GLOBAL_FILE

__all__ = ["run"]

_LINE_LIMIT = 400


def run(options: argparse.Namespace) -> int:
    """Print one line; exit 0 sound, 1 warning, 2 critical, 3 when it cannot be told, whatever the cause."""
    try:
        directory = snapshot_directory(options)
        answer = last_verdict(directory) or _judged_anew(directory)
    except NodeproofError as error:
        answer = unknown("; ".join(str(error).splitlines()))
    except Exception as error:  # noqa: BLE001 - the exit code of a traceback would read as a warning
        answer = unknown(f"an error of nodeproof itself: {type(error).__name__}: {error}")
    try:
        print(
            json.dumps(answer._asdict(), separators=(",", ":"))
            if options.output == "json"
            else printable(answer.line, _LINE_LIMIT)
        )
        sys.stdout.flush()
    except OSError:
        # The exit code is the answer: a reader that has gone, or a full disk, must not change it.
        drop_output()
    return answer.exit_code


def _judged_anew(directory: str) -> Answer:
    """The verdict on the health in the file of a daemon that left none. Raises SnapshotError."""
    from nodeproof.health.grades import verdict  # noqa: PLC0415 - dear, and no daemon of this version needs it
    from nodeproof.sinks.snapshot_reader import read_global  # noqa: PLC0415 - the same

    found = verdict(read_global(os.path.join(directory, GLOBAL_FILE)).health)
    return Answer(found.exit_code, found.word, found.line)
