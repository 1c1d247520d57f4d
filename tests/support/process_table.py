"""Made-up process tables, in the shape of ``/proc`` (constructed after proc(5) and what kernel 6.18 prints)."""

import os

from support.tree import write

__all__ = ["limits", "newest", "process", "remove"]


def process(
    root: str,
    pid: int,
    parent: int = 1,
    *,
    name: str = "program",
    state: str = "S",
    start: int = 1000,
    threads: int = 1,
    ticks: tuple[int, int, int, int] = (0, 0, 0, 0),
    pages: int = 0,
    mark: int | None = None,
    environ: bytes = b"",
    io: tuple[int, int, int, int] | None = None,
    children: list[int] | None = None,
) -> None:
    """Write what the tree reads of one process; ``children`` None = this kernel keeps no list."""
    times = " ".join(str(value) for value in ticks)
    before = f"{pid} ({name}) {state} {parent} {pid} {pid} 0 -1 4194304 100 0 0 0"
    write(root, f"/{pid}/stat", f"{before} {times} 20 0 {threads} 0 {start} 8192000 {pages} 18446744073709551615 0 0 0")
    write(root, f"/{pid}/limits", limits(mark))
    write(root, f"/{pid}/environ", environ)
    write(root, f"/{pid}/wchan", b"do_nanosleep")
    write(root, f"/{pid}/task/{pid}/stat", "")
    if io is not None:
        keys = ("rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes")
        values = (io[0], io[1], 1, 1, io[2], io[3], 0)
        write(root, f"/{pid}/io", "".join(f"{key}: {value}\n" for key, value in zip(keys, values, strict=True)))
    if children is not None:
        write(root, f"/{pid}/task/{pid}/children", "".join(f"{child} " for child in children).encode())


def remove(root: str, pid: int) -> None:
    """The process is gone: its files cannot be read any more."""
    os.rename(f"{root}/{pid}", f"{root}/gone-{pid}")


def newest(root: str, pid: int) -> None:
    """Which number was given away last."""
    write(root, "/loadavg", f"0.10 0.20 0.30 1/100 {pid}")


def limits(mark: int | None) -> str:
    """``/proc/PID/limits`` with that limit on real-time work; None = unlimited."""
    realtime = "unlimited" if mark is None else str(mark)
    return (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max cpu time              unlimited            unlimited            seconds   \n"
        "Max realtime priority     0                    0                    \n"
        f"Max realtime timeout      {realtime:<20} {realtime:<20} us        \n"
    )
