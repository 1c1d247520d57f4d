"""Configuration files: what loads, what is refused, and how the refusal reads."""

import os
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.config.loader import ConfigProblemsError, load, load_text
from nodeproof.errors import ConfigError

REFERENCE = b"""
server: {type: auto}
collectors:
  cpu: {enabled: true, interval: 3s}
  gpu: {enabled: false}
storage: {data_dir: /var/lib/x/data, max_file_age: 168h, rotation: daily}
health: {enabled: true, weight_scheme: accelerated_8card}
collection: {min_priority: Medium}
features: [dfee, web]
snapshot: {enabled: true, dir: /var/lib/x/snapshot}
faultsub:
  enabled: true
  rest_addr: ":9101"
  webhook_timeout: 0s
  webhook_retry: 1
  event_buffer: 1024
  defaults: {debounce_ms: 0, min_severity: warning}
  rules: {card_drop: true, driver_unhealthy: false}
straggler_output: {enabled: true, data_dir: /var/lib/x/straggler, retention: 0s, flush_interval: 30s, metrics: [a]}
stress:
  enabled: true
  web_enabled: false
  script_path: /opt/x/benchmark_check.sh
  report_path: ""
  default_benchmarks: [stream]
  benchmarks:
    stream: {enabled: true, timeout: 1m}
    hpcg: {enabled: true, timeout: 0s, result_dir: /opt/x}
"""


def refusals(text: bytes) -> list[tuple[str, str]]:
    """Path and whole message of each problem."""
    with pytest.raises(ConfigError) as caught:
        load_text("n.yaml", text, {})
    problems = caught.value.problems if isinstance(caught.value, ConfigProblemsError) else [caught.value]
    return [(problem.path, str(problem)) for problem in problems]


def test_file_of_the_reference_loads_with_its_meaning() -> None:
    config = load_text("ref.yaml", REFERENCE, {})
    assert config.collectors["cpu"].interval_s == 3.0
    assert config.collectors["cpu"].enabled
    assert not config.collectors["gpu"].enabled
    assert config.storage.data_dir == "/var/lib/x/data"
    assert config.storage.max_file_age_s == 168 * 3600
    assert config.health.weight_scheme == "accelerated_8card"
    assert config.collection.min_priority == "medium"
    assert config.features == ("dfee", "web")
    assert config.snapshot.dir == "/var/lib/x/snapshot"
    assert config.faultsub.rest_addr == ":9101"
    assert config.faultsub.webhook_timeout_s == 5.0  # zero means the default, as in the reference
    assert config.faultsub.rules == {"card_drop": True, "driver_unhealthy": False}
    assert config.straggler_output.retention_s == 360 * 3600
    assert config.straggler_output.flush_interval_s == 30.0
    assert config.stress is not None
    assert config.stress.benchmarks["stream"].timeout_s == 60.0
    assert config.stress.benchmarks["hpcg"].timeout_s == 3600.0
    assert config.stress.default_benchmarks == ("stream",)


def test_dead_keys_of_the_reference_warn_with_their_line() -> None:
    warnings = load_text("ref.yaml", REFERENCE, {}).warnings
    assert [warning.split(": ")[1] for warning in warnings] == [
        "server.type",
        "storage.rotation",
        "health.enabled",
        "faultsub.defaults.debounce_ms",
        "faultsub.defaults.min_severity",
        "straggler_output.metrics",
    ]
    assert warnings[0].startswith("ref.yaml:2: ")


def test_omitted_interval_keeps_the_default_instead_of_zero() -> None:
    """Defect 3: an entry without interval became a ticker of zero and a panic."""
    config = load_text("n.yaml", b"collectors: {cpu: {enabled: true}}", {})
    assert config.collectors["cpu"].interval_s is None
    assert load_text("n.yaml", b"collectors: {cpu: {interval: 2s}}", {}).collectors["cpu"].enabled


def test_unknown_keys_are_refused_with_path_line_and_suggestion() -> None:
    """Defect 3: unknown keys were silent."""
    assert refusals(b"storage:\n  data_dri: /x\n") == [
        ("storage.data_dri", "n.yaml:2: storage.data_dri: unknown key (did you mean data_dir?)")
    ]
    assert refusals(b"zzz: 1\n")[0][1].startswith("n.yaml:1: zzz: unknown key (known: collectors, collection,")


def test_every_problem_is_reported_at_once() -> None:
    found = refusals(b"snapshot: []\nfeatures: [wob]\nstorage: {interval: -3s}\nhealth: {ruleset: 9}\n")
    assert [path for path, _ in found] == ["snapshot", "features", "storage.interval", "health.ruleset"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"collectors: {cpu: {interval: 3}}", "3 has no unit; write 3s, 3m or 3h"),
        (b"collectors: {cpu: {interval: 0s}}", "0s is not within 0.1s and 86400s"),
        (b"collectors: {cpu: {interval: soon}}", "'soon' is no duration; write 3s, 500ms, 1h30m"),
        (b"collectors: {cpu: {interval: -1s}}", "-1s is not within 0.1s and 86400s"),
        (b"collectors: {cpu: {enabled: maybe}}", "'maybe' is not true or false"),
        (b"storage: {data_dir: data}", "'data' is no absolute path"),
        (b"storage: {data_dir: 5}", "5 is no text; put it in quotes"),
        (b"storage: {max_total_size: 10 parsecs}", "'10 parsecs' is no size; write 200MB or 1GiB"),
        (b"exporter: {address: localhost}", "'localhost' is no address; write 127.0.0.1:19320"),
        (b"exporter: {address: 'node7:80'}", "'node7' is no IP address; write 127.0.0.1 or [::1]"),
        (b"web: {address: localhost}", "'localhost' is no address; write 127.0.0.1:9527"),
        (b"faultsub: {rest_addr: localhost}", "'localhost' is no address; write 127.0.0.1:19321"),
        (b"exporter: {address: '127.0.0.1:70000'}", "'127.0.0.1:70000' is no address; write 127.0.0.1:19320"),
        (b"features: web", "'web' is no list; write [a, b]"),
        (b"features: [web, web]", "'web' stands twice"),
        (b"faultsub: {webhook_retry: true}", "True is no whole number"),
        (b"faultsub: {webhook_retry: 100001}", "100001 is not within 0 and 100000"),
        (b"health: {weight_scheme: heavy}", "'heavy' is none of auto, cpu_only"),
        (b"stress: {benchmarks: {linpak: {}}}", "unknown name (known: gpu_burn"),
    ],
)
def test_bad_values_say_what_to_write(text: bytes, message: str) -> None:
    ((_, found),) = refusals(text)
    assert message in found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a: [", "n.yaml:2: not YAML: did not find"),
        (b"- 1\n", "n.yaml:1: not a mapping of sections"),
        (b"\xff\xfe", "byte 0 is no UTF-8"),
        (b"storage:\n  interval: 1s\n  interval: 2s\n", "n.yaml:3: storage.interval: stands twice, first in line 2"),
        (b"storage: {interval: !!python/object:os.system x}", "n.yaml:1: storage.interval: could not determine a constructor"),
        (b"? [a, b]\n: 1\n", "a key must be a plain word"),
        (b"x" * (1024 * 1024 + 1), "larger than 1048576 bytes"),
        (b"[" * 5000, "n.yaml"),
        (b"a: &a [1]\nb: &b [" + b"*a, " * 300 + b"1]\nc: &c [" + b"*b, " * 300 + b"1]\n", "beyond reason"),
    ],
)
def test_broken_documents_are_errors_with_their_place(text: bytes, message: str) -> None:
    assert message in refusals(text)[0][1]


def test_empty_file_and_empty_sections_mean_defaults() -> None:
    assert load_text("n.yaml", b"", {"HOME": "/h"}).storage.data_dir == "/h/.local/state/nodeproof/data"
    assert load_text("n.yaml", b"storage:\n", {}).storage.interval_s == 60.0
    assert load_text("n.yaml", b"# nothing\n", {}).features == ("web", "dfee", "health")


def test_units_of_sizes_and_dates_as_text() -> None:
    assert load_text("n.yaml", b"storage: {max_total_size: 1GiB}", {}).storage.max_total_bytes == 1 << 30
    assert load_text("n.yaml", b"storage: {max_total_size: 200 MB}", {}).storage.max_total_bytes == 200_000_000
    assert load_text("n.yaml", b"storage: {max_total_size: 4096}", {}).storage.max_total_bytes == 4096
    assert "'2026-11-30' is no absolute path" in refusals(b"storage: {data_dir: 2026-11-30}")[0][1]


def test_missing_file_names_it_and_the_remedy(tmp_path: object) -> None:
    with pytest.raises(ConfigError, match=r"/none\.yaml: No such file or directory \(give another file with -c\)"):
        load(f"{tmp_path}/none.yaml", {})


def test_file_is_read_from_disk(tmp_path: object) -> None:
    path = f"{tmp_path}/n.yaml"
    with open(path, "wb") as file:
        file.write(b"exporter: {naming: catmonitor, allowed_hosts: [node7]}\n")
    config = load(path, {})
    assert (config.source, config.exporter.naming, config.exporter.allowed_hosts) == (path, "catmonitor", ("node7",))


@given(st.binary(max_size=200))
def test_any_bytes_load_or_are_refused(text: bytes) -> None:
    try:
        config = load_text("n.yaml", text, {})
    except ConfigError as error:
        assert str(error).startswith("n.yaml")
    else:
        assert config.source == "n.yaml"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["storage", "features", "collectors", "cpu", "interval", "enabled"]), inner, max_size=3
            )
        ),
        max_leaves=8,
    )
)
def test_any_structure_loads_or_is_refused_with_a_path(tree: object) -> None:
    text = yaml.safe_dump(tree).encode()
    try:
        load_text("n.yaml", text, {})
    except ConfigError as error:
        assert error.problem


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """A pipe would be waited for without end, and be empty at a reload."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, kind in ((str(pipe), "a pipe"), (str(tmp_path), "a directory"), ("/dev/zero", "a device")):
        with pytest.raises(ConfigError, match=f"{path}: is {kind}, not a file"):
            load(path, {})
    before = len(os.listdir("/proc/self/fd"))
    for path in (str(pipe), str(tmp_path)):
        with pytest.raises(ConfigError):
            load(path, {})
    assert len(os.listdir("/proc/self/fd")) == before


def test_dev_null_is_an_empty_file() -> None:
    assert load("/dev/null", {}) == msgspec.structs.replace(load_text("/dev/null", b"", {}), source="/dev/null")


def test_a_file_too_large_is_told_of_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"# x\n" * 1_000_000)
    with pytest.raises(ConfigError, match="larger than 1048576 bytes"):
        load(str(path), {})
