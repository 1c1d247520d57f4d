"""Stress reports for people."""

from nodeproof.cli.table import print_table, printable_lines
from nodeproof.model.job import BenchmarkResult, Performance, Report, Status

__all__ = ["duration_text", "label", "print_report", "value_text"]

_LABELS = {Status.HEALTHY: "OK", Status.TIME_LIMIT_REACHED: "OK (time limit)", Status.UNHEALTHY: "FAILED"}
_MESSAGE_CHARS = 160


def label(status: Status) -> str:
    """The word that stands for ``status`` in tables."""
    return _LABELS.get(status, str(status).upper())


def value_text(value: float) -> str:
    """Whole numbers without, others with two decimals."""
    return str(int(value)) if float(value).is_integer() else f"{value:.2f}"


def duration_text(milliseconds: int) -> str:
    """As Go writes it: ``850ms``, ``4.8s``, ``1m2.5s``, ``1h0m3s``; ``0s``."""
    if 0 < milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds


def print_report(report: Report) -> None:
    """The reference's table, then what each verdict rests on."""
    started = f", started {report.started_at}" if report.started_at else ""
    print()
    print(printable_lines(f"Stress job {report.job_id}: {label(report.status)}  (by {report.initiator or 'unknown'}{started})"))
    rows: list[tuple[str, ...]] = []
    for item in report.benchmarks:
        rows += _rows(item)
    print_table(("Benchmark", "Status", "Duration", "Metric", "Value", "Message"), rows, right=(4,))
    for item in report.benchmarks:
        for line in _evidence(item):
            print(printable_lines(line))
    if report.report_error:
        print(printable_lines(f"Report: {report.report_error}"))


def _rows(item: BenchmarkResult) -> list[tuple[str, ...]]:
    """A line a value; what concerns the whole item only on the first."""
    message = item.message if len(item.message) <= _MESSAGE_CHARS else item.message[: _MESSAGE_CHARS - 1] + "…"
    head = (item.name, label(item.status), duration_text(item.duration_ms) if item.finished_at else "-")
    values = sorted(item.values.items())
    if not values:
        return [(*head, "-", "-", message)]
    rows: list[tuple[str, ...]] = []
    for number, (key, value) in enumerate(values):
        first = number == 0
        rows.append((*(head if first else ("", "", "")), key, value_text(value), message if first else ""))
    return rows


def _evidence(item: BenchmarkResult) -> list[str]:
    """What the verdict rests on, a line each; nothing for an item that has not ended."""
    outcome = item.outcome
    if outcome is None:
        return []
    lines = [f"{item.name}: execution {outcome.execution}, correctness {outcome.correctness}, performance {outcome.performance}"]
    reason = outcome.reasons.get("performance")
    if reason and (outcome.performance is not Performance.NOT_JUDGED or item.status is Status.HEALTHY):
        lines.append(f"  performance: {reason}")
    box = item.details.get("hardware")
    if isinstance(box, dict):
        lines.append(
            f"  box while it ran: {box.get('validity')}" + "".join(f"; {concern}" for concern in box.get("concerns", []))
        )
    soak = item.details.get("soak")
    if isinstance(soak, dict):
        lines.append(f"  over its time: rate {soak.get('rate')}; memory {soak.get('memory')}")
    lines += [f"  concern: {concern}" for concern in outcome.concerns]
    tree = item.details.get("process_tree")
    if isinstance(tree, dict):
        lines.append(f"  process tree: {'ended, nothing is left' if tree.get('empty') else 'NOT proven to be gone'}")
    if item.run_id:
        lines.append(f"  record: nodeproof stress show {item.run_id}")
    return lines
