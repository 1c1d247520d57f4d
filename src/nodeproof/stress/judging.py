"""Outputs of benchmarks to their parsers."""

import contextlib
import hashlib
import os
import stat

from nodeproof.stress.adapters.base import Signature
from nodeproof.stress.parsers import hpcg, hpl, npu_burn, own_result, stream
from nodeproof.stress.parsers.judgement import Judgement, not_proven

__all__ = ["judge_hpcg_files", "judge_output", "result_files"]

_MAX_RESULT_BYTES = 16 * 1024 * 1024


def judge_output(
    benchmark: str, output: bytes, *, llc_bytes: int | None = None, devices: frozenset[int] | None = None
) -> Judgement:
    """What the standard output of ``benchmark`` proves."""
    match benchmark:
        case "stream":
            return stream.judge(stream.parse(output), llc_bytes=llc_bytes)
        case "hpl":
            return hpl.judge(hpl.parse(output))
        case "hpcg":
            return hpcg.judge(hpcg.parse(output, "stdout"))
        case "npu_burn":
            return npu_burn.judge(npu_burn.parse(output), devices)
        case _:
            return own_result.judge(benchmark, own_result.parse(output))


def result_files(folder: str) -> dict[str, Signature]:
    """Candidates for a result of HPCG in ``folder``, without files that vanish meanwhile. Raises OSError."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if not hpcg.is_result_name(name):
            continue
        with contextlib.suppress(OSError):
            body, size, mtime_ns = _read(os.path.join(folder, name))
            found[name] = (size, mtime_ns, hashlib.sha256(body).hexdigest())
    return found


def judge_hpcg_files(folder: str, before: dict[str, Signature], output: bytes) -> Judgement:
    """The report that this run left in ``folder``; ``output`` tells why there is none."""
    try:
        after = result_files(folder)
        name = hpcg.newest_result(before, after)
        if name is not None:
            return hpcg.judge(hpcg.parse(_read(os.path.join(folder, name))[0], "result_file"))
    except OSError as error:
        reason = f"{folder}: {os.strerror(error.errno or 0)}"
        return not_proven("hpcg", "no_result", f"the result directory cannot be read: {reason}", "result_file", [], {})
    said = hpcg.parse(output, "stdout").trouble  # a verdict on the terminal is no report, a reason for its absence is one
    return not_proven(
        "hpcg",
        said.cause if said is not None else "no_result",
        f"no new or changed result file HPCG-Benchmark*.txt in {folder}" + (f"; {said.reason}" if said is not None else ""),
        "result_file",
        [said.evidence] if said is not None else [],
        {},
    )


def _read(path: str) -> tuple[bytes, int, int]:
    with open(path, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(21, "no regular file", path)
        return file.read(_MAX_RESULT_BYTES), facts.st_size, facts.st_mtime_ns
