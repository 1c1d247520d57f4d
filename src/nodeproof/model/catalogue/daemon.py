"""What the daemon costs and how its collectors fare."""

from nodeproof.model.catalogue.spec import Feature, Kind, MetricSpec, Priority

__all__ = ["METRICS"]

_SELF = "the daemon itself"


def _row(name: str, unit: str, kind: Kind, text: str, labels: tuple[str, ...] = ("collector",)) -> MetricSpec:
    return MetricSpec(
        "daemon",
        name,
        unit,
        kind,
        text,
        _SELF,
        labels,
        Priority.MEDIUM,
        features=(Feature.WEB, Feature.HEALTH, Feature.DFEE),
        period_s=5.0,
    )


METRICS: tuple[MetricSpec, ...] = (
    _row("collector_cycles_total", "count", Kind.COUNTER, "Cycles a collector has run, good or bad."),
    _row("collector_failures_total", "count", Kind.COUNTER, "Cycles that raised or returned rubbish."),
    _row("collector_skipped_total", "count", Kind.COUNTER, "Ticks that passed while a cycle was still running."),
    _row("collector_cpu_total", "s", Kind.COUNTER, "CPU time of a collector's thread, snapshot writing included."),
    _row("collector_wall_total", "s", Kind.COUNTER, "Wall time of a collector's cycles."),
    _row("collector_last_wall", "s", Kind.GAUGE, "Wall time of the newest cycle."),
    _row("collector_hung", "s", Kind.GAUGE, "How long the cycle in flight has overrun its deadline; 0 when it has not."),
    _row(
        "collector_failing", "", Kind.STATE, "1 when a cycle has failed within the last minute, or the last two cycles; else 0."
    ),
    _row("sink_failing", "", Kind.STATE, "1 while something of what is to be written there cannot be; else 0.", ("sink",)),
    _row("health_score", "", Kind.GAUGE, "Health of the node, 0 to 100, as last judged.", ())._replace(priority=Priority.HIGH),
    _row("health_coverage", "%", Kind.GAUGE, "Share of the weight of all applicable rules that could be read.", ()),
    _row(
        "health_grade",
        "",
        Kind.STATE,
        "0 Excellent, 1 Good, 2 Warning, 3 Critical, 4 Unknown; the word is the label.",
        ("grade",),
    ),
    _row("health_findings", "count", Kind.GAUGE, "What is wrong now, by severity.", ("severity",)),
    _row("health_component_score", "", Kind.GAUGE, "Points of a component.", ("component",)),
    _row("health_component_max", "", Kind.GAUGE, "Points that a component can have.", ("component",)),
    _row("commands_total", "count", Kind.COUNTER, "Outside programs started.", ()),
    _row("cpu_total", "s", Kind.COUNTER, "CPU time of the whole process, ended children included.", ()),
    _row("resident_memory", "bytes", Kind.GAUGE, "Resident set of the process.", ()),
    _row("open_descriptors", "count", Kind.GAUGE, "Open file descriptors of the process.", ()),
    _row("threads", "count", Kind.GAUGE, "Threads of the process.", ()),
)
