"""Alert rules and dashboard name series that exist, say what the daemon's rules say, and fire when those would."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeproof.cli.main import main
from nodeproof.health.findings import FINDINGS
from nodeproof.health.rules import Compare, How, Limit, Probe
from nodeproof.health.rules_035 import CONCERNS
from nodeproof.model.catalogue import CATALOGUE, Kind, Priority
from nodeproof.operate.telemetry.alerts import alert_rules, alerts, left_out
from nodeproof.operate.telemetry.dashboard import dashboard
from nodeproof.operate.telemetry.promql import Untranslatable, expression
from nodeproof.sinks import prometheus
from nodeproof.sinks.exposition_names import Naming, family

ROOT = Path(__file__).parents[3]
SERIES = {family(*spec.key, spec.unit, spec, Naming.NODEPROOF).name for spec in CATALOGUE.values()}
SERIES |= {own.name for own in prometheus._OWN}
NAMED = re.compile(r"\bnodeproof_[a-z0-9_]*[a-z0-9]\b")


def test_every_rule_is_there_or_named_with_the_reason_why_not() -> None:
    keys = {rule.key for rule in FINDINGS} | {concern.key for concern in CONCERNS}

    assert {one.rule for one in alerts() if one.rule} | {key for key, _ in left_out()} == keys
    assert len(left_out()) < 15
    assert {reason.partition(" is ")[2][:9] for _, reason in left_out()} == {"concluded", "a gain be"}
    names = [one.name for one in alerts()]
    assert len(names) == len(set(names))


def test_every_series_that_they_name_exists() -> None:
    for text in (alert_rules(), dashboard()):
        named = set(NAMED.findall(text))
        assert len(named) > 30
        assert named - SERIES == set()


def test_severities_are_those_of_the_rules() -> None:
    told = {one.rule: one.severity for one in alerts()}

    assert [told[rule.key] for rule in FINDINGS if rule.key in told] == [
        str(rule.severity) for rule in FINDINGS if rule.key in told
    ]
    assert (told["disk.read_only"], told["disk.file_system_full"]) == ("critical", "warning")


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (Limit(Probe("memory", ("usage",)), Compare.ABOVE, 90), "nodeproof_memory_usage_ratio > 0.9"),
        (
            Limit(Probe("cpu", ("usage",), (("core", "total"),)), Compare.AT_LEAST, 95),
            'nodeproof_cpu_usage_ratio{core="total"} >= 0.95',
        ),
        (
            Limit(Probe("cpu", ("load_average",), (("interval", "1m"),), factor=(("cpu", "core_num"),)), Compare.ABOVE, 2),
            'nodeproof_cpu_load_average{interval="1m"} > on (instance) group_left () (2 * (nodeproof_cpu_core_num))',
        ),
        (
            Limit(Probe("memory", ("ecc_uce_errors",), entity=("mc",), how=How.GROWTH, window_s=86400), Compare.ABOVE, 0),
            "increase(nodeproof_memory_ecc_uce_errors_total[1d]) > 0",
        ),
        (
            Limit(Probe("disk", ("space_detail",), (("device", "/dev/*"),), ("device",), How.POOL), Compare.ABOVE, 90),
            (
                'sum by (instance, device) (nodeproof_disk_space_detail_bytes{device=~"/dev/.*",field="used"}) /'
                ' sum by (instance, device) (nodeproof_disk_space_detail_bytes{device=~"/dev/.*",field="total"}) > 0.9'
            ),
        ),
        (
            Limit(Probe("disk", ("inode_usage",), entity=("device",), unless="read_only"), Compare.ABOVE, 95),
            "(nodeproof_disk_inode_usage_ratio > 0.95) unless on (instance, device) (nodeproof_disk_read_only != 0)",
        ),
    ],
)
def test_conditions(limit: Limit, text: str) -> None:
    assert expression(limit) == text


def test_what_no_series_can_say_is_refused_with_the_reason() -> None:
    with pytest.raises(Untranslatable, match=r"derived\.gpu_lost is concluded by the daemon"):
        expression(Limit(Probe("derived", ("gpu_lost",)), Compare.AT_LEAST, 1))


def test_the_files_of_this_tree_are_what_the_code_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert (ROOT / "examples/prometheus/nodeproof-alerts.yml").read_text("utf-8") == alert_rules()
    assert (ROOT / "examples/grafana/nodeproof.json").read_text("utf-8") == dashboard()
    assert main(["telemetry", "alerts"], {}) == 0
    assert capsys.readouterr().out == alert_rules()
    assert main(["telemetry", "dashboard"], {}) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "nodeproof"


def _promtool(absent_here: list[str]) -> str | None:
    found = shutil.which("promtool")
    if found is None:
        absent_here.append("promtool (Debian package prometheus): the alert rules were not checked")
    return found


def test_promtool_accepts_the_rules(tmp_path: Path, absent_here: list[str]) -> None:
    promtool = _promtool(absent_here)
    if promtool is None:
        return
    path = tmp_path / "alerts.yml"
    path.write_text(alert_rules(), "utf-8")

    done = subprocess.run([promtool, "check", "rules", str(path)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SUCCESS: {len(alerts())} rules found" in done.stdout


FIRING = [
    ("NodeproofDown", 'up{job="nodeproof",instance="n"}', "0x20", {"job": "nodeproof"}),
    ("NodeproofComponentNotRead", 'nodeproof_component_fresh{instance="n",component="disk"}', "0x20", {"component": "disk"}),
    (
        "NodeproofDiskReadOnly",
        'nodeproof_disk_read_only_remount{instance="n",device="/dev/sda1",mount_point="/data"}',
        "1x20",
        {"device": "/dev/sda1", "mount_point": "/data"},
    ),
    (
        "NodeproofDiskInodesFull",
        'nodeproof_disk_inode_usage_ratio{instance="n",device="/dev/sda1",mount_point="/data"}',
        "0.97x20",
        {"device": "/dev/sda1", "mount_point": "/data"},
    ),
    ("NodeproofScoreMemoryUsage", 'nodeproof_memory_usage_ratio{instance="n"}', "0.999x20", {}),
]
"""A rule, the series that makes it fire, its values a minute, and labels of the alert."""


def test_rules_fire_when_their_condition_holds_and_not_before(tmp_path: Path, absent_here: list[str]) -> None:
    promtool = _promtool(absent_here)
    if promtool is None:
        return
    (tmp_path / "alerts.yml").write_text(alert_rules(), "utf-8")
    told = {one.name: one for one in alerts()}
    tests: list[dict[str, Any]] = []
    for name, series, values, labels in FIRING:
        sound = "1x20" if values.startswith("0x") else "0x20"
        alert = told[name]
        expected = {
            "exp_labels": {"severity": alert.severity, "component": alert.component, "instance": "n", **labels}
            | ({"rule": alert.rule} if alert.rule else {}),
        }
        quiet = {"eval_time": "10m", "alertname": name, "exp_alerts": []}
        tests.append({"interval": "1m", "input_series": [{"series": series, "values": sound}], "alert_rule_test": [quiet]})
        firing = {"eval_time": "10m", "alertname": name, "exp_alerts": [expected]}
        tests.append({"interval": "1m", "input_series": [{"series": series, "values": values}], "alert_rule_test": [firing]})
    for test in tests:
        for one in test["alert_rule_test"]:
            for alert_expected in one["exp_alerts"]:
                alert_expected["exp_annotations"] = _annotations(told[one["alertname"]].name, alert_expected["exp_labels"])
    document = {"rule_files": ["alerts.yml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(document), "utf-8")

    done = subprocess.run([promtool, "test", "rules", str(tmp_path / "test.yml")], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def _annotations(name: str, labels: dict[str, str]) -> dict[str, str]:
    """As Prometheus fills them in."""
    alert = next(one for one in alerts() if one.name == name)
    values = {"NodeproofDiskInodesFull": "97%", "NodeproofScoreMemoryUsage": "99.9%"}
    summary = alert.summary.replace("{{ $value | humanizePercentage }}", values.get(name, "")).replace(
        "{{ $value | humanize }}", "1"
    )
    for label, text in labels.items():
        summary = summary.replace(f"{{{{ $labels.{label} }}}}", text)
    return {"summary": summary, "description": alert.help, "remedy": alert.remedy}


def test_the_dashboard_shows_what_drives_health_and_what_the_daemon_costs() -> None:
    panels = json.loads(dashboard())["panels"]
    expressions = "\n".join(target["expr"] for panel in panels for target in panel.get("targets", ()))

    high = [
        spec
        for spec in CATALOGUE.values()
        if (spec.priority is Priority.HIGH or spec.component == "daemon") and spec.kind in {Kind.GAUGE, Kind.COUNTER, Kind.STATE}
    ]
    for spec in high:
        assert family(*spec.key, spec.unit, spec, Naming.NODEPROOF).name in expressions, spec.key
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(places) == len(set(places))
    assert all(panel["description"] for panel in panels if panel["type"] != "row")
