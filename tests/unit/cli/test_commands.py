"""Commands that look at the node: collect, health, explain, list, config."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nodeproof.cli.commands import collect, explain, health
from nodeproof.cli.main import main
from nodeproof.daemon.once import Observation
from nodeproof.health.evaluator import RULESETS, Evaluator
from support.node import healthy
from support.observed import HOSTILE, hostile_look, live_directory, look_at, steers


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"NODEPROOF_DATA_DIR": str(tmp_path), "NODEPROOF_CONFIG": "/dev/null"}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Callable[[Observation], None]:
    """Lets every command see what the test says."""

    def let(observation: Observation) -> None:
        for command in (collect, health, explain):
            monkeypatch.setattr(command, "observe", lambda _: observation)

    return let


Seen = Callable[[Observation], None]
Captured = pytest.CaptureFixture[str]


def test_collect_as_json_lines(seen: Seen, home: dict[str, str], capsys: Captured) -> None:
    node = healthy()
    node.miss("memory", "usage", "no_permission", "denied")  # type: ignore[arg-type]  # its value
    seen(look_at(node))
    assert main(["collect"], home) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"component", "name", "value", "unit", "timestamp"} <= lines[0].keys()
    assert not any(line["name"] == "usage" and line["component"] == "memory" for line in lines)
    assert main(["collect", "--missing"], home) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [absent] = [line for line in lines if line["name"] == "usage" and line["component"] == "memory"]
    assert (absent["state"], absent["reason"], "value" in absent) == ("no_permission", "denied", False)


def test_collect_as_a_table(seen: Seen, home: dict[str, str], capsys: Captured) -> None:
    node = healthy()
    node.miss("memory", "usage")
    seen(look_at(node))
    assert main(["collect", "-o", "table"], home) == 0
    out = capsys.readouterr().out
    assert "Component  Metric" in out
    assert "cpu        usage" in out.replace("  usage ", "  usage ")
    assert "Not read (1):" in out
    assert "memory     usage   read_error  it broke" in " ".join(out.split("Not read")[1].splitlines()[3:]).replace("   ", "   ")


def test_collect_as_exposition_text(seen: Seen, home: dict[str, str], capsys: Captured) -> None:
    seen(look_at(healthy()))
    assert main(["collect", "-o", "prom"], home) == 0
    families = {family.name: family for family in text_string_to_metric_families(capsys.readouterr().out)}
    [total] = [one for one in families["nodeproof_cpu_usage_ratio"].samples if one.labels == {"core": "total"}]
    assert total.value == 0.12


def test_collect_tells_of_a_collector_that_failed(seen: Seen, home: dict[str, str], capsys: Captured) -> None:
    seen(look_at(healthy())._replace(failures={"fans": "OSError: gone"}))
    assert main(["collect"], home) == 1
    assert capsys.readouterr().err == "nodeproof: collector fans OSError: gone\n"


def test_collect_of_one_component(home: dict[str, str], tmp_path: Path, capsys: Captured) -> None:
    assert main(["collect", "--component", "system", "--component", "npu"], home) == 0
    assert {json.loads(line)["component"] for line in capsys.readouterr().out.splitlines()} == {"system"}
    assert main(["collect", "--component", "cpuu"], home) == 2
    assert "--component cpuu: no enabled collector has it; known: chassis, cpu, disk" in capsys.readouterr().err


def test_health_takes_the_first_look_as_the_baseline_of_counters(seen: Seen, home: dict[str, str], capsys: Captured) -> None:
    """One look alone cannot tell growth; the command has two."""
    node = healthy()
    node.set("memory", "oom_count", 5.0)
    first = look_at(node).batches
    node.pass_time(1.0)
    node.set("memory", "oom_count", 7.0)
    seen(Observation(look_at(node).batches, {}, first))
    assert main(["health", "-o", "json"], home) == 0
    found = json.loads(capsys.readouterr().out)
    assert not any("second reading" in one["reason"] for one in found["unknown"])
    [killed] = [one for one in found["findings"] if one["rule"] == "memory.oom_kills"]
    assert killed["reading"]["judged"] == 2.0
    assert main(["health"], home) == 0
    assert "2 count (> 0 count (growth within 1 h))" in capsys.readouterr().out


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize("ruleset", RULESETS)
def test_every_rule_explains_without_a_daemon(
    seen: Seen, home: dict[str, str], tmp_path: Path, capsys: Captured, output: str, ruleset: str
) -> None:
    config = _config(tmp_path, ruleset)
    seen(look_at(healthy()))
    _explain_all(ruleset, output, config, home, capsys, "a look of this moment (daemon: absent)")


@pytest.mark.parametrize("output", ["table", "json"])
def test_every_rule_explains_by_a_living_daemon(
    home: dict[str, str], tmp_path: Path, capsys: Captured, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explain, "_APART_S", 0.0)
    with live_directory(tmp_path / "snapshot", healthy()):
        _explain_all(RULESETS[0], output, "/dev/null", home, capsys, "the daemon (process ")


def _config(tmp_path: Path, ruleset: str) -> str:
    file = tmp_path / "n.yaml"
    file.write_text(f"health: {{ruleset: {ruleset}}}\n")
    return str(file)


def _explain_all(ruleset: str, output: str, config: str, home: dict[str, str], capsys: Captured, origin: str) -> None:
    ids = Evaluator(ruleset).rule_ids()
    assert len(ids) > 20
    for rule in ids:
        assert main(["explain", rule, "-o", output, "-c", config], home) == 0, rule
        out = capsys.readouterr().out
        assert origin in out
        assert rule in out


def test_explain_lists_every_rule(home: dict[str, str], capsys: Captured) -> None:
    assert main(["explain"], home) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed == Evaluator().rule_ids()
    assert main(["explain", "-o", "json"], home) == 0
    assert json.loads(capsys.readouterr().out) == listed


def test_explain_by_the_text_of_a_deduction(seen: Seen, home: dict[str, str], capsys: Captured) -> None:
    seen(look_at(healthy()))
    assert main(["explain", "usage>90%"], home) == 0
    assert "cpu.usage (cpu): clear" in capsys.readouterr().out


def test_explain_refuses_an_unknown_rule_before_it_reads_anything(home: dict[str, str], capsys: Captured) -> None:
    assert main(["explain", "cpu.usagee"], home) == 2
    assert "no rule 'cpu.usagee', did you mean cpu.usage" in capsys.readouterr().err


def test_explain_tells_what_the_daemon_knows_and_one_look_cannot(
    home: dict[str, str], tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Growth within 24 h is the daemon's knowledge; two looks a second apart see none."""
    monkeypatch.setattr(explain, "_APART_S", 0.0)
    node = healthy(Evaluator())
    node.set("memory", "oom_count", 5.0).judge()
    score = node.set("memory", "oom_count", 9.0).judge()
    with live_directory(tmp_path / "snapshot", node, score):
        assert main(["explain", "memory.oom_kills"], home) == 0
        out = capsys.readouterr().out
        assert "4 processes were killed for want of memory within 1 h; judged: 4 count" in out
        assert main(["explain", "memory.pressure"], home) == 0
        assert "The daemon, at" in capsys.readouterr().out
        assert main(["explain", "memory.oom_kills", "-o", "json"], home) == 0
        assert json.loads(capsys.readouterr().out)["daemon"]["findings"][0]["rule"] == "memory.oom_kills"


@pytest.mark.parametrize(
    "arguments",
    [
        ["collect"],
        ["collect", "--missing"],
        ["collect", "-o", "table"],
        ["health"],
        ["health", "-o", "json"],
        ["explain", "disk.inodes_full"],
        ["explain", "cpu.temperature"],
        ["explain", "cpu.temperature", "-o", "json"],
    ],
)
def test_hostile_text_never_steers_the_terminal(arguments: list[str], seen: Seen, home: dict[str, str], capsys: Captured) -> None:
    seen(hostile_look())
    main(arguments, home)
    out, err = capsys.readouterr()
    assert "owned" in out
    assert not steers(out)
    assert not steers(err)
    assert not any(line.startswith("forged line") for line in (out + err).splitlines())


def test_exposition_text_of_hostile_labels_keeps_its_lines(seen: Seen, home: dict[str, str], capsys: Captured) -> None:
    seen(hostile_look())
    main(["collect", "-o", "prom"], home)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert all(line.startswith(("#", "nodeproof_")) for line in out.splitlines())
    assert list(text_string_to_metric_families(out))


def test_list(home: dict[str, str], tmp_path: Path, capsys: Captured) -> None:
    """The reference listed built-in defaults, whatever the configuration said."""
    file = tmp_path / "n.yaml"
    file.write_text("features: [web]\ncollectors: {disk: {enabled: false}}\n")
    assert main(["list", "-c", str(file), "-o", "json"], home) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["cpu"] == {"name": "cpu", "component": "cpu", "priority": "High", "interval": "3s", "enabled": True}
    assert rows["disk"]["enabled"] is False
    assert main(["list", "-c", str(file)], home) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["Name", "Component", "Priority", "Interval", "Enabled"]
    assert ["cpu", "cpu", "High", "3s", "true"] in [line.split() for line in table]


def test_config_check_reports_every_problem(home: dict[str, str], tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "n.yaml"
    file.write_text(f"snapshott: {{}}\nexporter: {{address: nowhere}}\nfeatures: ['{HOSTILE[:5]}']\n".replace("\x1b", "\\e"))
    assert main(["config", "check", "-c", str(file)], home) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count(str(file)) == 3
    assert not steers(err)
    assert main(["config", "check", "-c", str(file), "-o", "json"], home) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    assert len(found["problems"]) == 3


def test_config_check_of_a_good_file(home: dict[str, str], tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "n.yaml"
    file.write_text("server: {type: auto}\ncollectors: {cpu: {interval: 10s}, gpu: {enabled: false, interval: 9s}}\n")
    assert main(["config", "check", "-c", str(file)], home) == 0
    out = capsys.readouterr().out
    assert "warning: " in out
    assert "collectors.cpu.interval: 10s is overridden by features (1s)" in out
    assert "collectors.gpu.interval" not in out, "it is switched off"
    assert out.endswith(f"{file}: good, 2 warnings\n")
    assert main(["config", "check", "-c", str(file), "-o", "json"], home) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def test_config_names_a_collector_that_does_not_exist(home: dict[str, str], tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "n.yaml"
    file.write_text("collectors: {cpuu: {}}\n")
    for action in ("check", "show"):
        assert main(["config", action, "-c", str(file)], home) == 2
        assert "collectors.cpuu: no such collector is installed (did you mean cpu?)" in capsys.readouterr().err


def test_config_show(home: dict[str, str], tmp_path: Path, capsys: Captured) -> None:
    assert main(["config", "show"], home) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[3:])
    assert rows["snapshot.dir"] == f"{tmp_path}/snapshot"
    assert rows["collectors.cpu"] == "every 1s"
    assert main(["config", "show", "-o", "json"], home) == 0
    assert json.loads(capsys.readouterr().out)["snapshot"]["dir"] == f"{tmp_path}/snapshot"
