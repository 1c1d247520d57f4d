"""The verdict that a daemon has left in ``snapshot.json``, read with what Python has loaded anyway."""

import json
import os
from typing import Any

from nodeproof.clock import Clock, SystemClock
from nodeproof.errors import SnapshotError
from nodeproof.model.answer import EXIT_CODES, Answer, unknown
from nodeproof.model.daemon_verdict import DaemonVerdict
from nodeproof.sinks import life
from nodeproof.sinks.snapshot_names import GLOBAL_FILE

__all__ = ["last_verdict"]

_WAKES = {DaemonVerdict.FROZEN, DaemonVerdict.STARTING}
_HELD_BACK = frozenset("TtDZX")
"""States of a process (proc_pid_stat(5)) that will not write however long it is waited for."""
_PATIENCE_S = 2.5
"""A daemon that has just been started, reloaded, or woken with its machine, writes within two beats."""
_LOOK_AGAIN_S = 0.1
_KINDS: dict[str, tuple[type, ...]] = {
    "boot_id": (str,),
    "pid": (int,),
    "monotonic_s": (int, float, type(None)),
    "stale_after_ms": (int,),
    "stopped": (bool,),
}
"""Types of the keys that tell the age of a file."""


def last_verdict(directory: str, clock: Clock | None = None) -> Answer | None:
    """The daemon's last answer; unknown, and why, when it must not be believed. Never raises.

    None when the daemon lives and has judged, and its file has no answer in it: it is of a version before this key. A daemon that
    holds the directory and ought to write any moment is waited for, a few beats at most.
    """
    clock = clock or SystemClock()
    until_s = clock.now().mono_s + _PATIENCE_S
    while True:
        now_s = clock.now().mono_s
        document, problem = _document(os.path.join(directory, GLOBAL_FILE))
        found = life.judge(directory, _head(document), problem, now_s)
        if found.verdict is DaemonVerdict.RUNNING and document is not None:
            return _answer(directory, document)
        if found.verdict not in _WAKES or found.signs.process_state in _HELD_BACK or now_s >= until_s:
            return unknown(f"daemon {found.verdict}: {found.reason}")
        clock.sleep(_LOOK_AGAIN_S)


def _document(path: str) -> tuple[dict[str, Any] | None, str]:
    """The file as it stands, or None and why; None and nothing when there is no such file."""
    try:
        found = json.loads(life.content(path))
    except FileNotFoundError:
        return None, ""
    except SnapshotError as error:
        return None, str(error)
    except (ValueError, RecursionError) as error:
        return None, f"{path} holds no snapshot: {error}"
    if not isinstance(found, dict):
        return None, f"{path} holds no snapshot: it is no object"
    for key, kinds in _KINDS.items():
        if key in found and type(found[key]) not in kinds:
            return None, f"{path} holds no snapshot: {key} is {found[key]!r:.80}"
    return found, ""


def _head(document: dict[str, Any] | None) -> life.Head | None:
    if document is None:
        return None
    return life.Head(**{key: document[key] for key in _KINDS if key in document})


def _answer(directory: str, document: dict[str, Any]) -> Answer | None:
    given = document.get("verdict")
    if given is None:
        return None
    if isinstance(given, dict):
        word, line = given.get("word"), given.get("line")
        if isinstance(word, str) and isinstance(line, str) and word in EXIT_CODES and given.get("exit_code") == EXIT_CODES[word]:
            return Answer(EXIT_CODES[word], word, line)
    return unknown(f"{os.path.join(directory, GLOBAL_FILE)} holds no verdict of nodeproof")
