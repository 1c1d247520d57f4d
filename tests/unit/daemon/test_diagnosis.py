"""Absences by cause, with what hangs on each."""

from nodeproof.clock import Instant
from nodeproof.config.resolve import defaults
from nodeproof.config.schema import Config
from nodeproof.daemon.assembly import Absent, CollectorEntry
from nodeproof.daemon.diagnosis import Cause, Diagnosis, diagnose
from nodeproof.daemon.once import Observation
from nodeproof.errors import Absence
from nodeproof.model.metric import Missing
from support.node import Node, healthy
from support.observed import look_at

CONFIG: Config = defaults({"HOME": "/home/u"})
STAMP = "2026-11-30T12:00:00.000000+00:00"
DENIED, UNSUPPORTED, UNKNOWN = Absence.NO_PERMISSION, Absence.UNSUPPORTED, Absence.UNKNOWN
LOG = "/dev/kmsg: Operation not permitted"


def diagnosis(node: Node, *more: Missing, entries: tuple[CollectorEntry, ...] = ()) -> Diagnosis:
    seen = look_at(node)
    for look in (seen.first, seen.batches):
        for entry in more:
            look[entry.component].missing.append(entry)
    return diagnose(CONFIG, list(entries), seen, Instant(*node.at))


def absent(component: str, name: str, state: Absence, reason: str, remedy: str = "") -> Missing:
    return Missing(component, name, state, reason, None, f"/{component}", remedy, STAMP)


def test_a_node_that_tells_everything() -> None:
    found = diagnosis(healthy())
    assert (found.causes, found.pending, found.not_applicable) == ([], [], [])
    assert (found.coverage, found.points_blind) == (1.0, 0.0)
    assert found.readings == len(healthy().values)


def test_one_cause_in_several_components_is_one_entry() -> None:
    node = healthy()
    for component, name in (("cpu", "cpu_ce_errors"), ("cpu", "cpu_uce_errors"), ("disk", "io_errors")):
        node.set(component, name, 0.0, cpu="0").drop(component, name)
    more = [
        absent("cpu", "cpu_ce_errors", DENIED, LOG, "run as root"),
        absent("cpu", "cpu_uce_errors", DENIED, LOG, "run as root"),
        absent("disk", "io_errors", DENIED, LOG, "run as root"),
        absent("network", "link_flaps", DENIED, f"{LOG}; not yet watched that long: eth0", "run as root"),
    ]
    [cause] = diagnosis(node, *more).causes
    assert (cause.state, cause.reason, cause.remedy) == (DENIED, LOG, "run as root")
    assert cause.metrics == ["cpu.cpu_ce_errors", "cpu.cpu_uce_errors", "disk.io_errors", "network.link_flaps"]
    assert cause.sources == ["/cpu", "/disk", "/network"]
    assert {"cpu.corrected_errors", "cpu.uncorrected_errors", "disk.io_errors", "network.link_flaps"} <= set(cause.rules)


def test_the_longer_reason_is_another_one_when_state_or_remedy_differ() -> None:
    causes = diagnosis(
        healthy(),
        absent("cpu", "a", DENIED, LOG, "run as root"),
        absent("cpu", "b", UNSUPPORTED, f"{LOG}; and more", "run as root"),
        absent("cpu", "c", DENIED, f"{LOG}; and more", "nothing"),
        absent("cpu", "d", DENIED, f"{LOG}, always", "run as root"),
    ).causes
    assert [cause.metrics for cause in causes] == [["cpu.a"], ["cpu.d"], ["cpu.c"], ["cpu.b"]]


def test_points_are_those_that_coverage_lacks_dearest_cause_first() -> None:
    node = healthy()
    node.miss("memory", "usage", DENIED, "meminfo denied")
    node.miss("network", "error_count", DENIED, "dev denied")
    found = diagnosis(node)
    assert [cause.reason for cause in found.causes] == ["meminfo denied", "dev denied"]
    assert found.causes[0].points > found.causes[1].points > 0
    assert found.points_blind == round(100 * (1 - found.coverage), 2)


def test_a_rule_in_the_dark_for_two_reasons_is_divided_among_them() -> None:
    node = healthy()
    node.miss("cpu", "temperature", DENIED, "first")
    alone = diagnosis(node).causes[0].points
    both = {cause.reason: cause.points for cause in diagnosis(node, absent("cpu", "temperature", DENIED, "second")).causes}
    assert both == {"first": round(alone / 2, 2), "second": round(alone / 2, 2)}


def test_what_may_come_yet_is_no_fault_unless_points_or_a_remedy_hang_on_it() -> None:
    found = diagnosis(
        healthy(),
        absent("network", "tcp_retransmit_ratio", UNKNOWN, "no segment was sent"),
        absent("memory", "ecc_dimm_size", UNKNOWN, "no driver", "load it"),
    )
    assert [cause.reason for cause in found.causes] == ["no driver"]
    assert [cause.reason for cause in found.pending] == ["no segment was sent"]
    node = healthy()
    node.miss("cpu", "usage", UNKNOWN, "no time was counted")
    assert [cause.reason for cause in diagnosis(node).causes] == ["no time was counted"]


def test_what_does_not_apply_is_summed_up() -> None:
    found = diagnosis(
        healthy(),
        absent("chassis", "power", Absence.NOT_APPLICABLE, "no BMC"),
        absent("memory", "power", Absence.NOT_APPLICABLE, "no BMC"),
        absent("disk", "smart_note", Absence.NOT_APPLICABLE, "virtual"),
    )
    assert found.causes == []
    assert [(one.reason, one.metrics) for one in found.not_applicable] == [
        ("no BMC", ["chassis.power", "memory.power"]),
        ("virtual", ["disk.smart_note"]),
    ]


def test_a_collector_that_is_switched_off_is_the_reason_of_its_own_silence() -> None:
    node = healthy()
    node.drop("memory")
    node.components.discard("memory")
    off = CollectorEntry("memory", Absent("memory", "it is switched off"), 2.0, None, enabled=False)
    [cause] = diagnosis(node, entries=(off,)).causes
    assert cause.reason == "collector memory is switched off in the configuration"
    assert cause.remedy == "set collectors.memory.enabled: true, unless it is meant"
    assert "memory.usage" in cause.rules
    assert cause.points > 20


def test_a_collector_that_failed_is_one_cause() -> None:
    node = healthy()
    node.drop("memory")
    seen = look_at(node)
    every = absent("memory", "*", Absence.READ_ERROR, "collector memory failed: OSError: gone")
    for look in (seen.first, seen.batches):
        look["memory"].missing.append(every)
    [cause] = diagnose(CONFIG, [], Observation(seen.batches, {"memory": "OSError: gone"}, seen.first), Instant(*node.at)).causes
    assert isinstance(cause, Cause)
    assert cause.metrics == ["memory.*"]
    assert "memory.usage" in cause.rules
