"""Third parties' collectors that raise, hang, return rubbish or cannot be had: the rest goes on, and it is seen everywhere."""

from collections.abc import Iterator

import pytest

from nodeproof.errors import Absence
from nodeproof.sinks.snapshot_names import component_of_file
from support.daemon import Daemon, nodeproof, until
from support.strict_reader import read_directory

_READINGS = "class Theirs(Frame):\n    def readings(self, cycle):\n        "
_COLLECT = "class Theirs(Frame):\n    def collect(self):\n        "

FAILING = {
    "raises": (_READINGS + "raise OSError('no fan answers')", "OSError: no fan answers"),
    "exits": (_READINGS + "sys.exit(3)", "SystemExit: 3"),
    "no_batch": (_COLLECT + "return {'speed': 900}", "TypeError: returned dict, not a Batch"),
    "no_metric": (_READINGS + "return [900]", "TypeError: returned int where a Metric belongs"),
    "bad_label": (_READINGS + "return [reading(1.0, fan=7)]", "ValidationError: Expected `str`, got `int`"),
    "flood": (_READINGS + "return [reading(n, fan=str(n)) for n in range(100_000)]", "returned 100000 readings; more than 20000"),
    "pretends": (_COLLECT + "return Batch('cpu', '', 0.0, [], [])", "returned a batch of component 'cpu'"),
}
"""Name, code, and what is said of it, of collectors whose every cycle fails."""

NOT_HAD = {
    "no_module": ("import no_such_module_anywhere", "", "cannot be loaded: No module named 'no_such_module_anywhere'"),
    "quits": ("raise SystemExit('not today')", "", "cannot be loaded: not today"),
    "no_python": ("this is no Python", "", "cannot be loaded: invalid syntax"),
    "no_name": ("", "no_name_plugin:nothing", "cannot be loaded: module 'no_name_plugin' has no attribute 'nothing'"),
    "no_factory": ("Theirs = 7", "", "cannot be made: TypeError: 'int' object is not callable"),
    "takes_cpu": ("class Theirs(Frame):\n    component = 'cpu'", "", "has the component cpu, which is taken"),
    "climbs": ("class Theirs(Frame):\n    component = '../../etc'", "", "has the component '../../etc', which does not match"),
    "too_quick": ("class Theirs(Frame):\n    default_interval_s = 0", "", "has the default_interval_s 0, which is not within"),
    "half_made": ("class Theirs:\n    name = component = 'half_made'", "", "cannot be made: AttributeError"),
}

_NUMBERS = "return [reading(math.nan, fan='1'), reading(800.0, fan='2'), reading(-math.inf, fan='3'), reading('fast', fan='4')]"
_HANGS = "if cycle > 3: time.sleep(600)\n        return [reading(800.0)]"


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon with all of them at once."""
    daemon = Daemon(tmp_path_factory.mktemp("troubled"))
    for name, (body, _) in FAILING.items():
        daemon.install(name, body + "\n")
    for name, (body, target, _) in NOT_HAD.items():
        daemon.install(name, body + "\n", target=target)
    daemon.install("numbers", f"{_READINGS}{_NUMBERS}\n")
    daemon.install("hangs", f"{_READINGS}{_HANGS}\n")
    daemon.install("off", f"open({str(daemon.folder / 'imported')!r}, 'w').close()\n")
    daemon.configure(
        collectors={"hangs": {"interval": "200ms", "deadline": "500ms"}, "off": {"enabled": False}},
    )
    daemon.start()
    try:
        until(lambda: (daemon.own("collector_hung", "hangs") or 0) > 0, "the daemon's look at itself", 12.0)
        yield daemon
    finally:
        daemon.clean_up()


def findings(daemon: Daemon, rule: str) -> set[str]:
    """Messages of the findings of one rule."""
    return {one.message for one in daemon.whole().health.findings if one.rule == f"daemon.{rule}"}


@pytest.mark.parametrize("name", [*FAILING, *NOT_HAD])
def test_it_is_seen_everywhere(troubled: Daemon, name: str) -> None:
    """In its component's snapshot, in self metrics, in the exporter, and once in the log."""
    why = FAILING[name][1] if name in FAILING else NOT_HAD[name][2]
    [absence] = troubled.missing(name)
    assert (absence.name, absence.state) == ("*", Absence.READ_ERROR)
    assert why in absence.reason
    assert (troubled.own("collector_failures_total", name) or 0) >= 1
    assert troubled.own("collector_failing", name) == 1
    page = troubled.scrape().body.decode()
    assert f'nodeproof_reading_missing{{component="{name}",name="*",state="read_error"}} 1' in page
    assert f'nodeproof_daemon_collector_failing{{collector="{name}"}} 1' in page
    assert 1 <= troubled.log().count(why) <= 2, "once when it could not be had, once when its cycle failed"


def test_there_are_findings(troubled: Daemon) -> None:
    until(lambda: findings(troubled, "collector_failing"), "the finding", 12.0)
    told = findings(troubled, "collector_failing")
    assert "collector bad_label fails: what it observes cannot be told" in told
    assert len(told) == 8
    assert sum(text.endswith("(and 8 more like it)") for text in told) == 1, "sixteen fail, eight are told of one by one"


def test_the_rest_goes_on(troubled: Daemon) -> None:
    before = troubled.part("cpu").sequence
    until(lambda: troubled.part("cpu").sequence > before + 2, "component cpu goes on")
    names = {name for path in troubled.snapshots.iterdir() if (name := component_of_file(path.name))}
    assert names >= {"cpu", "memory", *FAILING, *NOT_HAD, "numbers", "hangs"}
    read_directory(troubled.snapshots, also=names)
    assert troubled.state().components["cpu"].fresh
    assert "Traceback" not in troubled.log()
    troubled.until_check(0, 1, 2)


def test_numbers_that_are_none_are_missing_and_their_neighbours_stand(troubled: Daemon) -> None:
    part = troubled.part("numbers")
    assert [(metric.value, metric.labels) for metric in part.metrics] == [(800.0, {"fan": "2"})]
    assert [(entry.labels, entry.state) for entry in part.missing] == [
        ({"fan": "1"}, Absence.READ_ERROR),
        ({"fan": "3"}, Absence.READ_ERROR),
        ({"fan": "4"}, Absence.READ_ERROR),
    ]
    assert part.missing[2].reason == "'fast' is no finite number"
    page = troubled.scrape().body.decode()
    assert [line for line in page.splitlines() if line.startswith("nodeproof_numbers_speed")] == [
        'nodeproof_numbers_speed_rpm{fan="2"} 800.0'
    ]
    assert troubled.own("collector_failures_total", "numbers") == 0


def test_one_that_hangs(troubled: Daemon) -> None:
    assert "collector hangs hangs: its cycle has overrun the deadline; the others go on" in troubled.log()
    until(lambda: findings(troubled, "collector_hung") and findings(troubled, "component_stale"), "the findings", 12.0)
    assert "component hangs has had no fresh reading for too long: it could not be told" in findings(troubled, "component_stale")
    assert not troubled.state().components["hangs"].fresh
    page = troubled.scrape().body.decode()
    assert "nodeproof_hangs_speed" not in page
    assert 'nodeproof_component_fresh{component="hangs"} 0' in page


def test_one_that_is_switched_off_is_not_even_imported(troubled: Daemon) -> None:
    assert {one.name: one.enabled for one in troubled.whole().collectors}["off"] is False
    assert not (troubled.folder / "imported").exists()


def test_commands_go_on_with_the_rest(troubled: Daemon) -> None:
    listed = nodeproof("list", "-c", str(troubled.config), env=troubled.env)
    assert listed.code == 0
    assert "cpu" in listed.out
    assert "plug-in no_module (no_module_plugin:create of no_module_plugin-1.0.dist-info) cannot be loaded" in listed.err
    collected = nodeproof("collect", "-c", str(troubled.config), "--component", "raises", env=troubled.env)
    assert collected.code == 1
    assert "collector raises OSError: no fan answers" in collected.err


def test_the_end_waits_for_none_of_them_for_long(daemon: Daemon) -> None:
    """Its own cadence and key of the configuration: the entry is named after the plug-in, whatever component it observes."""
    body = "class Theirs(Frame):\n    component = 'cooling'\n    def readings(self, cycle):\n        time.sleep(600)\n"
    daemon.install("fans", body)
    daemon.configure(collectors={"fans": {"interval": "700ms"}})
    daemon.start()
    assert daemon.whole().intervals_ms["cooling"] == 700
    assert daemon.stop() == 0
    assert "collector fans did not come back within 5 s; left behind" in daemon.log()
    assert daemon.whole().stopped
