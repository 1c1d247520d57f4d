"""Starting the program of a job: everything that must hold before its first instruction.

Between fork and exec the child enters its cgroup, takes its limits, its mark and its death warrant, a session of its own and the
pipe for its output. What could not be had is told: what the job cannot do without ends the child, the rest is noted.
"""

import errno
import os
import resource
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn

from nodeproof.host.cgroups import JobCgroup
from nodeproof.host.job_record import JobSpec
from nodeproof.host.prctl import die_with_parent

__all__ = ["Launched", "Program", "StartFailed", "launch", "new_mark", "program_of"]

_MARK_BIT = 1 << 62
_EXIT_NOT_STARTED = 127


class Program(NamedTuple):
    """What to start, and under which limits."""

    argv: Sequence[str]
    executable: str
    cwd: str
    environment: Mapping[str, str]
    mark: int
    """0 = none can be set."""
    cpus: Sequence[int]
    nice: int
    umask: int
    oom_score_adj: int


class Launched(NamedTuple):
    """A program that runs."""

    pid: int
    in_cgroup: bool
    marked: bool
    notes: tuple[str, ...]
    """What it has to do without."""


class StartFailed(Exception):  # noqa: N818 - says what happened, as a sentence would
    """The program never ran; ``code`` is the error number, ``stage`` what could not be done."""

    def __init__(self, stage: str, code: int) -> None:
        self.stage = stage
        self.code = code
        super().__init__(f"{stage}: {os.strerror(code)}")


def program_of(spec: JobSpec, mark: int) -> Program:
    """The part of ``spec`` that its program must begin with."""
    limits = spec.limits
    return Program(
        argv=spec.argv,
        executable=spec.executable,
        cwd=spec.cwd,
        environment=spec.environment,
        mark=mark,
        cpus=limits.cpus,
        nice=limits.nice,
        umask=limits.umask,
        oom_score_adj=limits.oom_score_adj,
    )


def new_mark() -> int:
    """A number for RLIMIT_RTTIME that no other job has and that limits nothing: at least 2^62 microseconds of real-time work.

    0 where a limit is set already that cannot be raised to such a number.
    """
    mark = _MARK_BIT | int.from_bytes(os.urandom(7), "big")
    hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
    return mark if hard == resource.RLIM_INFINITY or hard >= mark or os.geteuid() == 0 else 0


def launch(program: Program, output: int, cgroup: JobCgroup | None) -> Launched:
    """Start ``program`` with ``output`` as standard output and error. Raises StartFailed.

    For a process with one thread, which becomes the parent that the program dies with.
    """
    report, write_end = os.pipe()
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:  # pragma: no cover - see there
        _become(program, output, cgroup, write_end, keeper)
    os.close(write_end)
    with os.fdopen(report, "rb") as file:
        lines = file.read().decode().splitlines()  # to its end: the pipe closes with the exec
    notes: dict[str, int] = {}
    for line in lines:
        kind, code, stage = line.split(" ", 2)
        if kind == "fatal":
            os.waitpid(pid, 0)
            raise StartFailed(stage, int(code))
        notes[stage] = int(code)
    return Launched(
        pid,
        in_cgroup=cgroup is not None and _ENTER not in notes,
        marked=_MARK not in notes,
        notes=tuple(f"{stage}: {os.strerror(code)}" for stage, code in notes.items()),
    )


_ENTER = "entering its cgroup"
_MARK = "setting its mark"


# Between fork and exec no measurement of coverage can be saved; tests/process sees the effects.
def _become(  # pragma: no cover
    program: Program, output: int, cgroup: JobCgroup | None, report: int, keeper: int
) -> NoReturn:
    """In the child: turn into the program. Never returns, never raises."""

    def attempt(stage: str, call: Callable[[], object], *, fatal: bool) -> None:
        try:
            call()
        except (OSError, ValueError) as error:  # ValueError: the resource module's word for EPERM
            code = getattr(error, "errno", None) or errno.EPERM
            os.write(report, f"{'fatal' if fatal else 'note'} {code} {stage}\n".encode())
            if fatal:
                os._exit(_EXIT_NOT_STARTED)

    try:
        signal.set_wakeup_fd(-1)
        _default_signals()
        attempt("becoming the leader of a session", os.setsid, fatal=True)
        attempt("asking to die with its keeper", die_with_parent, fatal=False)
        if os.getppid() != keeper:  # it died before it could be asked for
            os._exit(_EXIT_NOT_STARTED)
        if cgroup is not None:
            attempt(_ENTER, cgroup.enter, fatal=False)
        if program.mark:
            attempt(_MARK, lambda: _set_mark(program.mark), fatal=False)
        attempt("raising its rank for the out-of-memory killer", lambda: _raise_oom_score(program.oom_score_adj), fatal=False)
        attempt("forbidding core dumps", lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)), fatal=False)
        if program.cpus:
            attempt("binding it to its processors", lambda: os.sched_setaffinity(0, program.cpus), fatal=True)
        if program.nice:
            attempt("setting its niceness", lambda: os.nice(program.nice), fatal=True)
        os.umask(program.umask)
        attempt(f"entering {program.cwd}", lambda: os.chdir(program.cwd), fatal=True)
        attempt("taking its output", lambda: _take_standard_files(output), fatal=True)
        attempt(
            f"executing {program.executable}",
            lambda: os.execve(program.executable, list(program.argv), dict(program.environment)),  # noqa: S606 - no shell, on purpose
            fatal=True,
        )
    finally:
        os._exit(_EXIT_NOT_STARTED)


def _default_signals() -> None:  # pragma: no cover - as above
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _set_mark(mark: int) -> None:  # pragma: no cover - as above
    resource.setrlimit(resource.RLIMIT_RTTIME, (mark, mark))


def _raise_oom_score(score: int) -> None:  # pragma: no cover - as above
    with open("/proc/self/oom_score_adj", "r+b", buffering=0) as file:
        if int(file.read(16)) < score:
            file.write(b"%d" % score)


def _take_standard_files(output: int) -> None:  # pragma: no cover - as above
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
