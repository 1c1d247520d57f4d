"""Outputs of benchmark programs: the recorded ones, and builders that print what the programs would."""

from collections.abc import Sequence
from pathlib import Path

_RECORDED = Path(__file__).resolve().parent.parent / "fixtures" / "benchmarks"

VALIDATES = "Solution Validates: avg error less than 1.000000e-13 on all three arrays\n"
RATES = {"Copy": 101234.5, "Scale": 99876.1, "Add": 103456.7, "Triad": 102987.3}


def recorded(case: str) -> bytes:
    """The output of case ``case``, such as ``01``."""
    return next(_RECORDED.glob(f"{case}-*.txt")).read_bytes()


def stream_table(rates: dict[str, float] | None = None, header: str = "Best Rate MB/s", verdict: str = VALIDATES) -> str:
    """The end of a STREAM output."""
    rows = "".join(
        f"{name + ':':<12}{rate:12.1f}     0.012648     0.012600     0.012700\n" for name, rate in (rates or RATES).items()
    )
    return f"Function    {header}  Avg time     Min time     Max time\n{rows}{'-' * 61}\n{verdict}"


def hpl_row(n: int = 50000, seconds: float = 150.60, nb: int = 256, p: int = 4, q: int = 2, gflops: float | None = None) -> str:
    """One row in HPL's own format, its rate that of the time."""
    rate = (2 / 3 * n**3 + 1.5 * n**2) / seconds / 1e9 if gflops is None else gflops
    return f"WR00C2R4{n:12d} {nb:5d} {p:5d} {q:5d} {seconds:18.2f} {rate:18.3e}\n"


def hpl_residual(value: str = "2.29383104e-03", verdict: str = "PASSED") -> str:
    """One residual line."""
    return f"||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= {value:>16} ...... {verdict}\n"


def hpl_summary(passed: int, failed: int = 0, skipped: int = 0) -> str:
    """HPL's last words."""
    return (
        f"\nFinished {passed + failed + skipped:6d} tests with the following results:\n"
        f"         {passed:6d} tests completed and passed residual checks,\n"
        f"         {failed:6d} tests completed and failed residual checks,\n"
        f"         {skipped:6d} tests skipped because of illegal input values.\n"
        f"{'-' * 80}\n\nEnd of Tests.\n{'=' * 80}\n"
    )


def hpl_output(rows: Sequence[str] | None = None) -> str:
    """A complete HPL output in which every row passes."""
    parts = [row + hpl_residual() for row in (rows or [hpl_row()])]
    return "".join(parts) + hpl_summary(len(parts))


def hpcg_report(
    rating: str = "22.1496",
    seconds: float = 62.2467,
    *,
    raw: str = "22.5",
    reference: int = 400,
    own: int = 400,
    failing: str = "",
    verdict: str = "VALID",
) -> str:
    """An HPCG 3.1 report."""

    def result(check: str) -> str:
        return "FAILED" if check == failing else "PASSED"

    lines = [
        "HPCG-Benchmark",
        "version=3.1",
        "Machine Summary::Distributed Processes=2",
        "Machine Summary::Threads per processes=1",
        "Local Domain Dimensions::nx=104",
        "Local Domain Dimensions::ny=96",
        "Local Domain Dimensions::nz=88",
        "Memory Use Information::Total memory used for data (Gbytes)=0.374895",
        f"Spectral Convergence Tests::Result={result('convergence')}",
        f"Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon::Result={result('symmetry')}",
        f"Iteration Count Information::Result={result('iterations')}",
        f"Iteration Count Information::Total number of reference iterations={reference}",
        f"Iteration Count Information::Total number of optimized iterations={own}",
        f"Reproducibility Information::Result={result('reproducibility')}",
        f"Benchmark Time Summary::Total={seconds}",
        f"GFLOP/s Summary::Raw Total={raw}",
        "Final Summary=",
    ]
    if verdict == "VALID":
        lines.append(f"Final Summary::HPCG result is VALID with a GFLOP/s rating of={rating}")
        if seconds >= 1800:
            lines.append("Final Summary::Please upload results from the YAML file contents to=http://hpcg-benchmark.org")
        else:
            lines.append(f"Final Summary::Results are valid but execution time (sec) is={seconds}")
            lines.append("Final Summary::Official results execution time (sec) must be at least=1800")
    else:
        lines.append(f"Final Summary::HPCG result is={verdict}.")
        lines.append("Final Summary::Please review the YAML file contents=You may NOT submit these results for consideration.")
    return "\n".join(lines) + "\n"
