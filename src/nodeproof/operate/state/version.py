"""Which form the state directory has, and bringing it from one form into another.

``state.json`` in it tells the form (schema) and who wrote it last::

    {"schema": 2, "nodeproof": "0.1.0", "heading_for": 0, "done": []}

A directory without that file has form 1, or is new. Whoever works with the state holds ``.state.lock`` together with others of
the same form; who changes the form holds it alone, so that two forms are never in use at once. Each step may be done twice, and
what is done is noted before the next one begins: a change that was cut short goes on where it stopped. A newer form is never
touched.
"""

import os
import stat
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from nodeproof import __version__
from nodeproof.errors import RecordError, UsageError
from nodeproof.host.atomic import store_file, write_error
from nodeproof.host.shared_lock import SharedLock
from nodeproof.host.users import give_to_owner

__all__ = ["SCHEMA", "STEPS", "StateForm", "StateLease", "Step", "change_form", "enter_state", "read_form"]

SCHEMA = 2
"""The form that this nodeproof works with."""
_FILE = "state.json"
_LOCK = ".state.lock"
_WAIT_S = 3.0
_MAX_BYTES = 65536


class StateForm(msgspec.Struct, frozen=True, kw_only=True):
    """``state.json``."""

    schema: int
    nodeproof: str = ""
    heading_for: int = 0
    """A change to this form has begun and is not over; 0 = none."""
    done: tuple[str, ...] = ()
    """Steps of that change that are done."""


class Step(NamedTuple):
    """One thing that is other in form ``schema`` than in the one before; both ways may be done again."""

    schema: int
    name: str
    up: Callable[[str], None]
    down: Callable[[str], None]


def _runs_index(version: int) -> Callable[[str], None]:
    def step(home: str) -> None:
        from nodeproof.runs.index import RunIndex  # noqa: PLC0415 - SQLite only where the form changes

        path = os.path.join(home, "runs", ".index.sqlite3")
        try:
            RunIndex(path).step_to(version)
        except RecordError:
            if os.path.exists(path):
                raise
            # It was damaged, and is set aside: whoever reads runs next makes a new one of them.

    return step


STEPS: tuple[Step, ...] = (Step(2, "runs-index-newest", _runs_index(2), _runs_index(1)),)
"""In the order of going up."""


class StateLease:
    """The right to work with the state of this form; held until :meth:`close`, or the end of the process."""

    def __init__(self, lock: SharedLock, did: tuple[str, ...]) -> None:
        self._lock = lock
        self.did = did
        """Steps of an upgrade that were made for it."""

    def close(self) -> None:
        """Give it back."""
        self._lock.close()


def read_form(home: str) -> StateForm | None:
    """What ``state.json`` says; None when there is none. Raises RecordError, and WriteError for a file of another user alone."""
    path = os.path.join(home, _FILE)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RecordError(f"{path} is no plain file")
            return msgspec.json.decode(file.read(_MAX_BYTES), type=StateForm)
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise write_error(path, error) from None
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise RecordError(
            f"{path} cannot be understood ({error}); nodeproof state repair sets it aside, and form 1 is then taken for granted"
        ) from None


def enter_state(home: str) -> StateLease:
    """Work with the state in ``home``, which is brought up to this form first.

    Raises RecordError for a newer form, for one that must be changed while another process uses it, and for a form that cannot be
    read; WriteError where ``home`` cannot be written.
    """
    lock = SharedLock(os.path.join(home, _LOCK))
    give_to_owner(lock.path)
    try:
        did: tuple[str, ...] = ()
        while not _ready(home, lock):
            _take_alone(home, lock)
            did += _change(home, _form(home), SCHEMA)
    except BaseException:
        lock.close()
        raise
    return StateLease(lock, did)


def change_form(home: str, schema: int) -> tuple[str, ...]:
    """Bring the state into form ``schema``, for a nodeproof that knows no newer one; steps made.

    Raises UsageError, and as :func:`enter_state`.
    """
    if not 1 <= schema <= SCHEMA:
        raise UsageError(f"form {schema}: this nodeproof can make forms 1 to {SCHEMA}")
    lock = SharedLock(os.path.join(home, _LOCK))
    try:
        _take_alone(home, lock)
        return _change(home, _form(home), schema)
    finally:
        lock.close()


def _ready(home: str, lock: SharedLock) -> bool:
    """Whether the form is ours, and nobody can change it any more."""
    if not lock.take(alone=False, timeout_s=_WAIT_S):
        raise RecordError(f"{home}: its form is being changed by {_who(lock)}; wait for its end, and try again")
    form = _form(home)
    return form == read_form(home) and form.schema == SCHEMA and not form.heading_for


def _form(home: str) -> StateForm:
    """The form; raises RecordError when it is newer than ours. A directory with nothing of ours in it has our form already."""
    form = read_form(home)
    if form is None:
        old = os.path.isdir(os.path.join(home, "runs")) or os.path.isdir(os.path.join(home, "stress"))
        form = StateForm(schema=1 if old else SCHEMA)
    newest = max(form.schema, form.heading_for)
    if newest > SCHEMA:
        raise RecordError(
            f"{home}: the state has form {newest}, written by nodeproof {form.nodeproof}; this one, {__version__}, knows form"
            f" {SCHEMA} and touches nothing. Run the newer one; to come back to this one, let the newer one run: nodeproof state"
            f" downgrade --to {SCHEMA}"
        )
    return form


def _take_alone(home: str, lock: SharedLock) -> None:
    if not lock.take(alone=True, timeout_s=_WAIT_S):
        raise RecordError(
            f"{home}: the state must change its form, and {_who(lock)} works with it as it is; end that first (systemctl stop"
            " nodeproof nodeproof-runner), then try again"
        )


def _who(lock: SharedLock) -> str:
    holders = lock.holders()
    return f"process {', '.join(map(str, holders))}" if holders else "another process"


def _change(home: str, form: StateForm, schema: int) -> tuple[str, ...]:
    """From ``form`` to ``schema``, step by step, noting each. The lock is held alone."""
    target = form.heading_for or schema
    made: tuple[str, ...] = ()
    for at in (target,) if target == schema else (target, schema):
        made += _walk(home, form, at)
        form = StateForm(schema=at, nodeproof=__version__)
        _store(home, form)
    return made


def _walk(home: str, form: StateForm, target: int) -> tuple[str, ...]:
    upwards = target >= form.schema
    low, high = sorted((form.schema, target))
    steps = [step for step in STEPS if low < step.schema <= high]
    done = form.done if form.heading_for == target else ()
    made = []
    for step in steps if upwards else reversed(steps):
        if step.name in done:
            continue
        _store(home, StateForm(schema=form.schema, nodeproof=__version__, heading_for=target, done=done))
        (step.up if upwards else step.down)(home)
        done = (*done, step.name)
        made.append(step.name)
    return tuple(made)


def _store(home: str, form: StateForm) -> None:
    path = os.path.join(home, _FILE)
    store_file(path, msgspec.json.encode(form) + b"\n")
    give_to_owner(path)
