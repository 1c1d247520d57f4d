"""The keeper of one job, started by ``host.containment``.

::

    python -m nodeproof.host.job_keeper TOKEN CONTROL BOARD SPEC [FD ...]

A small process of its own stands between the owner of a job and its program, because the owner has other children and may be
killed at any moment. It is the subreaper of the whole job, empties the program's output into a file whoever reads it or not, and
watches its owner through a descriptor of the process (pidfd) and the control socket: when either says that the owner is gone, or
when it is told to, or when time is up, it ends the tree (TERM, grace, KILL), proves that nothing is left, writes the record and
exits. The descriptors named last are kept open so long and no longer: the lock of the job is free when its tree is gone.

It uses the standard library alone and one thread, which the program's parent-death signal requires (prctl(2) means the parent
*thread*). It takes no parent-death signal itself for the same reason: its owner may start it from a thread that ends.

CONTROL carries commands, one a message: ``cancel SECONDS REASON``. BOARD is described in ``host.job_board``, SPEC is a file that
holds a :class:`nodeproof.host.job_record.JobSpec`.
"""

import contextlib
import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence

from nodeproof.errors import WriteError
from nodeproof.host.atomic import store_file
from nodeproof.host.cgroups import JobCgroup
from nodeproof.host.job_account import Account
from nodeproof.host.job_board import Board
from nodeproof.host.job_ears import Ears
from nodeproof.host.job_family import Birthmarks, Family
from nodeproof.host.job_launch import Launched, StartFailed, launch, new_mark, program_of
from nodeproof.host.job_output import OutputFile
from nodeproof.host.job_record import JobSpec, boottime_s, record_of
from nodeproof.host.job_verdict import Cause, Circumstances, judge
from nodeproof.host.oom import OomWitness
from nodeproof.host.prctl import become_subreaper, set_name
from nodeproof.host.process_tree import Identity, ProcessStat, ProcessTree

__all__ = ["READY", "Keeper", "main"]

READY = b"r"
"""Sent once, when the program runs or the board says why it does not."""

_PIPE_BYTES = 1024 * 1024
_FIRST_TICK_S = 0.05
_TICK_S = (0.5, 10.0)
_TICK_SHARE = 200
"""A tick that cost a millisecond is followed by 200 ms of rest at least: half a percent of one processor."""
_TELL_AGAIN_S = 0.1
_PAUSES_S = (0.002, 0.05)
"""While a tree ends it is looked at in growing intervals."""
_WALL = 0x40000000
"""__WALL (wait(2)): children of every kind, also those that were cloned to die without SIGCHLD."""
_STRIKES_WHEN_BROKEN = 20
_MAX_MEMBERS = 8192
_MAX_SEEN = 200_000


class Keeper:
    """One job from its start to its proven end."""

    def __init__(self, spec: JobSpec, control: socket.socket, board: Board) -> None:
        self._spec = spec
        self._limits = spec.limits
        self._control = control
        self._board = board
        self._tree = ProcessTree()
        self._account = Account(self._tree, os.getpid())
        self._witness = OomWitness()
        self._evidence: list[str] = []
        made, why_not = JobCgroup.make_or_tell(spec.token) if spec.use_cgroup else (None, "it was not wanted")
        self._cgroup: JobCgroup | None = made
        if made is None:
            self._evidence.append(f"no cgroup of its own: {why_not}")
        own = self._tree.stat(os.getpid())
        self._since_ticks = own.start_ticks if own is not None else 0
        self._family = Family(
            self._tree, Birthmarks(spec.token, new_mark(), self._since_ticks), keeper=os.getpid(), cgroup=self._cgroup
        )
        self._cause: Cause | None = None
        self._is_own_end = False
        """The program had ended by itself before there was a cause to end the rest of its tree."""
        self._status: int | None = None
        """Of the program, as wait(2) tells it."""
        self._childless = True
        self._pid = 0
        self._started_s = self._program_ended_s = self._ending_s = 0.0
        self._next_tick_s = 0.0
        self._wrote_output = self._forced = False
        self._leftovers = 0
        self._progress: dict[str, object] | None = None
        self._seen: set[int] = set()

    def run(self) -> int:
        """Keep the job; the exit status of the keeper says only whether it did its own work."""
        self._prepare()
        try:
            launched = self._start()
        except (StartFailed, OSError) as error:  # nothing of it runs
            self._tell_failure(error)
            return 1
        self._adopt(launched)
        self._watch()
        self._end()
        self._conclude()
        return 0

    def abandon(self, error: BaseException) -> None:
        """A bug in the keeper must not leave the tree running: strike at it, and tell the owner, who proves the rest."""
        for _ in range(_STRIKES_WHEN_BROKEN):
            if not self._family.strike():
                break
            self._reap()
        if self._cgroup is not None:
            self._cgroup.remove()
        with contextlib.suppress(OSError):
            self._board.write({**self._common(), "state": "broken", "error": f"{type(error).__name__}: {error}"})

    # ---- start

    def _prepare(self) -> None:
        become_subreaper()
        with contextlib.suppress(OSError):
            set_name("np-job-keeper")
        self._ears = Ears(self._control, self._spec.owner[0], self._limits.grace_s)

    def _start(self) -> Launched:
        """Raises StartFailed and OSError."""
        if not self._ears.has_owner():
            raise StartFailed("not started, its owner is gone", 0)
        self._output = OutputFile(self._spec.output_path, self._limits.output_bytes, self._limits.tail_bytes)
        self._wrote_output = True
        self._write_record("running", None)
        self._witness.begin()
        self._source, write_end = os.pipe()
        try:
            with contextlib.suppress(OSError):  # an ordinary user may have less
                fcntl.fcntl(self._source, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            os.set_blocking(self._source, False)
            return launch(program_of(self._spec, self._family.marks.mark), write_end, self._cgroup)
        finally:
            os.close(write_end)

    def _adopt(self, launched: Launched) -> None:
        """It runs: begin to watch, and tell the owner."""
        self._ears.attend(self._source)
        self._started_s, self._started_wall_s = boottime_s(), time.time()
        self._pid = launched.pid
        self._childless = False
        self._evidence += [f"without {note}" for note in launched.notes]
        if not launched.marked:
            self._family.marks = self._family.marks._replace(mark=0)
        if self._cgroup is not None and not launched.in_cgroup:
            self._cgroup.remove()
            self._cgroup = self._family.cgroup = None
        if launched.notes:
            self._write_record("running", None)
        self._tick()
        self._next_tick_s = self._started_s + _FIRST_TICK_S
        with contextlib.suppress(OSError):
            self._control.send(READY)

    def _tell_failure(self, error: StartFailed | OSError) -> None:
        stage = error.stage if isinstance(error, StartFailed) else str(error.filename or "starting it")
        code = error.code if isinstance(error, StartFailed) else error.errno or 0
        if self._cgroup is not None:
            self._cgroup.remove()
        self._board.write({**self._common(), "state": "failed", "stage": stage, "code": code})
        if self._wrote_output:
            for path in (self._spec.output_path, self._spec.record_path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
        with contextlib.suppress(OSError):
            self._control.send(READY)

    # ---- while it runs

    def _watch(self) -> None:
        """Until the program has ended or there is a cause to end it."""
        deadline_s = self._started_s + self._limits.duration_s if self._limits.duration_s is not None else float("inf")
        while self._status is None and self._cause is None:
            now = boottime_s()
            if now >= deadline_s:
                reason = f"its time limit of {self._limits.duration_s:g} s was reached"
                self._ask_to_end(Cause("limit", reason, self._limits.grace_s))
            elif now >= self._next_tick_s:
                self._tick()
            else:
                self._turn(min(deadline_s, self._next_tick_s) - now)
        self._program_ended_s = boottime_s()

    def _turn(self, wait_s: float) -> None:
        """Wait for whatever comes first, at most so long, and deal with it."""
        heard = self._ears.listen(wait_s)
        if heard.output:
            self._drain()
        self._reap()
        for cause in heard.causes:
            self._ask_to_end(cause)

    def _drain(self) -> None:
        """Take what the program printed, at most what fits into the pipe, so that everything else has its turn."""
        taken = 0
        while taken < _PIPE_BYTES:
            try:
                data = os.read(self._source, _PIPE_BYTES)
            except BlockingIOError:
                return
            if not data:  # every process of it has closed its output, which is no end
                self._ears.forget_output()
                return
            self._output.write(data)
            taken += len(data)

    def _ask_to_end(self, cause: Cause) -> None:
        """The first cause is the one that is told; a later one may only shorten the grace."""
        if self._cause is None:
            self._cause = cause
            self._is_own_end = self._status is not None
        elif cause.grace_s < self._cause.grace_s:
            self._cause = self._cause._replace(grace_s=cause.grace_s)

    def _reap(self) -> None:
        """Wait for every dead child; none left at all is the proof that the tree is empty."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | _WALL)
            except ChildProcessError:
                self._childless = True
                return
            if pid == 0:
                return
            self._seen.add(pid)
            if pid == self._pid:
                self._status = status

    def _tick(self) -> None:
        """Look at the whole tree, and put it on the board."""
        before_s = time.process_time()
        descendants = self._family.below_keeper()
        members = [stat for stat in descendants if stat.lives]
        self._family.known = {stat.identity for stat in members[:_MAX_MEMBERS]}
        self._note_seen(members)
        self._progress = self._account.sample(descendants, self._output.total_bytes)
        if len(members) > self._limits.processes:
            reason = f"it had {len(members)} processes at once, more than the {self._limits.processes} it may have"
            self._ask_to_end(Cause("limit", reason, 0.0))
        self._board.write(
            {
                **self._common(),
                "state": "running",
                "members": [list(stat.identity) for stat in members[:_MAX_MEMBERS]],
                "progress": self._progress,
            }
        )
        rest_s = min(_TICK_S[1], max(_TICK_S[0], (time.process_time() - before_s) * _TICK_SHARE))
        self._next_tick_s = boottime_s() + rest_s

    def _note_seen(self, members: Sequence[ProcessStat]) -> None:
        if len(self._seen) < _MAX_SEEN:
            self._seen.update(stat.pid for stat in members)

    # ---- end

    def _end(self) -> None:
        """End whatever is left, and prove that nothing is."""
        if self._cause is None:
            self._linger()
        if not self._childless:
            self._ending_s = boottime_s()
            members = self._family.members()
            self._note_seen(members)
            if self._status is not None:
                self._leftovers = len(members)
            grace_s = self._cause.grace_s if self._cause is not None else self._limits.grace_s
            if grace_s > 0:
                self._family.tell(signal.SIGTERM, members)
                self._pause_until_empty(grace_s, {stat.identity for stat in members})
        kill_until_s = boottime_s() + self._limits.kill_wait_s
        pause_s = _PAUSES_S[0]
        while not self._is_empty() and boottime_s() < kill_until_s:
            self._forced = True
            self._family.strike()
            self._turn(pause_s)
            pause_s = min(2 * pause_s, _PAUSES_S[1])

    def _linger(self) -> None:
        """Descendants may outlive the program a little, as daemons of a launcher do that was the last to be told."""
        while not self._childless and self._cause is None:
            left_s = self._program_ended_s + self._limits.linger_s - boottime_s()
            if left_s <= 0:
                return
            self._turn(left_s)

    def _pause_until_empty(self, grace_s: float, told: set[Identity]) -> None:
        """Until the tree is empty or the grace is over; processes that were born too late to be told are told, too."""
        next_look_s = self._ending_s + _TELL_AGAIN_S
        while not self._childless:
            if self._cause is not None:  # a second, more impatient one may have come
                grace_s = min(grace_s, self._cause.grace_s)
            now = boottime_s()
            if now >= self._ending_s + grace_s:
                return
            if now >= next_look_s:
                fresh = [stat for stat in self._family.members() if stat.identity not in told]
                self._family.tell(signal.SIGTERM, fresh)
                told.update(stat.identity for stat in fresh)
                next_look_s = boottime_s() + _TELL_AGAIN_S
            self._turn(min(next_look_s, self._ending_s + grace_s) - now)

    def _is_empty(self) -> bool:
        """No child, and nobody elsewhere who bears the marks: a process made in another pid namespace is no child of ours."""
        self._reap()
        if not self._childless:
            return False
        strangers = self._family.members()
        if strangers and not self._ending_s:
            self._ending_s = boottime_s()
            self._leftovers += len(strangers)
        return not strangers

    def _conclude(self) -> None:
        """Keep the rest of the output, judge the end, write it down."""
        self._reap()
        ended_s = boottime_s()
        left = self._family.members()
        self._proof(left)
        self._drain_rest()
        self._output.close()
        cause = None if self._is_own_end else self._cause
        killed = cause is None and bool(self._status)
        finding = self._witness.finding(self._seen | {self._pid}, self._cgroup, wait=killed)
        circumstances = Circumstances(cause, self._status, finding, self._leftovers, stuck=not (self._childless and not left))
        ended = {
            **judge(circumstances),
            "duration_s": round(ended_s - self._started_s, 3),
            "ending_s": round(ended_s - self._ending_s, 3) if self._ending_s else 0.0,
            "forced": self._forced,
            "leftovers": self._leftovers,
            "survivors": self._family.sights(left),
            "empty": self._childless and not left,
            "output_bytes": self._output.total_bytes,
            "output_kept_bytes": self._output.kept_bytes,
            "output_error": self._output.error,
            "progress": self._last_progress(),
            "started_wall_s": self._started_wall_s,
            "ended_wall_s": time.time(),
        }
        if finding.evidence:
            self._evidence.append(finding.evidence)
        ended["evidence"] = self._evidence
        if self._cgroup is not None:
            self._cgroup.remove()
        try:
            self._write_record("ended", ended)
        except OSError as error:
            self._evidence.append(f"the record could not be written: {error}")
        self._board.write({**self._common(), "state": "ended", "ended": ended})

    def _proof(self, left: Sequence[ProcessStat]) -> None:
        if self._childless:
            self._evidence.append("no child is left under the keeper, to whom the kernel hands every orphan of the job (waitpid)")
        elif not left:
            self._evidence.append("a child is left under the keeper, and /proc does not show it (is it mounted with hidepid?)")
        if not left:
            sign = "mark" if self._family.marks.mark else "token"
            self._evidence.append(f"no process in /proc bears the {sign} of the job")
        if self._cgroup is not None:
            populated = self._cgroup.populated()
            self._evidence.append(f"{self._cgroup.path}: populated {'unknown' if populated is None else int(populated)}")

    def _last_progress(self) -> dict[str, object]:
        """The tree as it was last seen at work, with the sums that only its end makes exact."""
        final = self._account.sample((), self._output.total_bytes)
        at_work = ("at_mono_s", "processes", "threads", "resident_bytes", "states")
        return {**final, **{key: value for key, value in (self._progress or {}).items() if key in at_work}}

    def _drain_rest(self) -> None:
        """What still stands in the pipe. A process that survives may go on writing: one pipe full is taken, no more."""
        with contextlib.suppress(OSError, KeyError):
            self._drain()

    def _common(self) -> dict[str, object]:
        own = [os.getpid(), self._since_ticks]
        return {
            "pid": self._pid,
            "keeper": own,
            "mark": self._family.marks.mark,
            "cgroup": self._cgroup.path if self._cgroup is not None else "",
        }

    def _write_record(self, state: str, ended: dict[str, object] | None) -> None:
        """Raises OSError with the path of the record."""
        try:
            store_file(self._spec.record_path, record_of(self._spec, {**self._common(), "state": state}, ended))
        except WriteError as error:
            raise OSError(error.code, error.reason, error.path) from None


def main(arguments: Sequence[str]) -> int:
    """Keep one job; ``arguments`` as in the description of the module."""
    control_fd, board_fd, spec_fd, *kept = (int(word) for word in arguments[1:])
    for fd in (control_fd, board_fd, spec_fd, *kept):
        os.set_inheritable(fd, False)
    with os.fdopen(spec_fd, "rb") as file:
        file.seek(0)
        spec = JobSpec.from_json(file.read())
    keeper = Keeper(spec, socket.socket(fileno=control_fd), Board(board_fd))
    try:
        return keeper.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the tree must not outlive its keeper
        keeper.abandon(error)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
