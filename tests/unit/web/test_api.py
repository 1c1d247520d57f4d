"""The read routes on a real server over files of the real sinks: contents, states, headers, and what is refused."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeproof.web.guard import SECURITY_HEADERS, host_name
from nodeproof.web.server import WebServer
from support.strict_reader import read_directory
from support.web import Written, address, get, serving

ROUTES = ("/api/snapshot", "/api/collectors", "/api/config", "/api/health", "/api/dfee")


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    found = Written(tmp_path / "snapshot")
    found.write()
    yield found
    found.close()


@pytest.fixture
def server(written: Written) -> Iterator[WebServer]:
    with serving(written.folder) as found:
        yield found


def test_the_combined_view_is_that_of_the_reference_with_additions(written: Written, server: WebServer) -> None:
    strict = read_directory(written.folder)
    answer = get(server, "/api/snapshot")
    view = json.loads(answer.body)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    reference = ["session_id", "timestamp", "refresh_interval_ms", "history_points", "health", "metrics", "history", "specs"]
    assert list(view)[:8] == reference
    on_disk = json.loads((written.folder / "snapshot.json").read_bytes())
    # Defect of the reference: a viewer's own time made a dead daemon look alive.
    assert view["timestamp"] == on_disk["timestamp"]
    assert view["session_id"] == on_disk["session_id"]
    assert view["history_points"] == 60
    assert view["health"] == on_disk["health"]
    assert sorted(strict.components) == ["cpu", "disk", "memory", "network"]
    assert [one["name"] for one in view["metrics"] if one["component"] == "memory"] == ["usage", "usage_detail", "usage_detail"]
    assert view["history"]["cpu_usage"] == [12.0]
    assert view["history_series"]["cpu_usage"]["points"][0][1] == 12.0
    assert view["specs"][0]["labels"] == {"pretty_name": "Test OS"}
    assert [one["reason"] for one in view["missing"]] == ["there is no sensor"]
    assert (view["daemon"], view["fresh"]) == ("running", True)
    assert {name: head["fresh"] for name, head in view["components"].items()} == dict.fromkeys(strict.components, True)


def test_collectors_and_config(server: WebServer) -> None:
    assert json.loads(get(server, "/api/collectors").body)[0] == {
        "name": "cpu",
        "component": "cpu",
        "priority": "High",
        "interval": "1s",
        "enabled": True,
    }
    assert json.loads(get(server, "/api/config").body) == {"refresh_interval_ms": 1000, "history_points": 60}


def test_health_tells_whether_it_is_the_present(server: WebServer) -> None:
    health = json.loads(get(server, "/api/health").body)
    assert health["fresh"] is True
    assert health["daemon"]["evidence"]["lock_pid"] == os.getpid()
    assert health["daemon"]["components"]["cpu"]["age_s"] < 5
    assert health["health"]["ruleset"] == "0.3.5"


def test_the_catalogue_tells_the_source_of_a_number(server: WebServer) -> None:
    found = json.loads(get(server, "/api/catalogue").body)
    assert found["cpu.usage"]["source"] == "/proc/stat"
    assert found["cpu.usage"]["unit"] == "%"


def test_energy_has_the_charts_of_the_reference_in_its_order(server: WebServer) -> None:
    energy = json.loads(get(server, "/api/dfee").body)
    charts = {chart["id"]: chart for chart in energy["charts"]}
    assert list(charts)[:3] == ["npu_aicore_freq", "npu_hbm_freq", "npu_power_draw"]
    assert list(charts)[-3:] == ["chassis_power", "chassis_temp", "chassis_fan"]
    assert len(charts) == 25
    assert charts["npu_voltage"]["series"] is None
    assert {one["id"]: one["value"] for one in charts["cpu_utilization"]["series"]} == {
        "idle_util": 88.0,
        "non_idle_util": 12.0,
        "user_util": 7.5,
        "system_util": 3.5,
        "iowait_util": 0.5,
        "irq_util": 0.4,
        "steal_util": 0.1,
    }
    assert [one["id"] for one in charts["cpu_load"]["series"]] == ["load_average:1m", "load_average:5m", "load_average:15m"]
    assert [one["id"] for one in charts["memory_pool"]["series"]] == ["usage_detail:total"]
    assert charts["memory_pool"]["y_unit"] == "MB"
    assert [one["id"] for one in charts["disk_iops_read"]["series"]] == ["vda:iops:read"]
    assert charts["disk_iops_write"]["series"] is None
    # 500 and 250.5 bytes a second over the collector's two seconds.
    assert charts["network_rx"]["series"] == [{"id": "eth0:rx_bytes_total", "label": "eth0", "value": 1000, "unit": "bytes"}]
    assert charts["network_tx"]["series"][0]["value"] == 501


def test_two_viewers_get_the_same_energy(server: WebServer) -> None:
    """Defect of the reference: each request began a new interval, for everybody."""
    first, second = get(server, "/api/dfee"), get(server, "/api/dfee")
    assert first.body == second.body


@pytest.mark.parametrize("path", [*ROUTES, "/", "/static/style.css", "/nowhere", "/api/events"])
def test_every_answer_has_the_security_headers(server: WebServer, path: str) -> None:
    headers = get(server, path, method="HEAD").headers
    wanted = {name.lower(): text for name, text in SECURITY_HEADERS.items()}
    assert {name: headers.get(name) for name in wanted} == wanted
    assert "unsafe" not in headers["content-security-policy"]
    assert "server" not in headers


@pytest.mark.parametrize("path", ["/api/snapshot", "/api/dfee", "/api/collectors", "/", "/static/js/main.js"])
def test_what_a_client_has_already_is_not_sent_again(server: WebServer, path: str) -> None:
    first = get(server, path)
    again = get(server, path, If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert get(server, path, If_None_Match='"other"').body == first.body


def test_the_etag_changes_with_the_readings(written: Written, server: WebServer) -> None:
    before = get(server, "/api/snapshot").headers["etag"]
    written.write(usage=80.0)
    from support.daemon import until  # noqa: PLC0415 - the server looks five times a second

    until(lambda: get(server, "/api/snapshot").headers["etag"] != before, "a new etag")


def test_gzip_for_those_who_take_it(server: WebServer) -> None:
    plain = get(server, "/api/snapshot")
    packed = get(server, "/api/snapshot", Accept_Encoding="br, gzip")
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "Accept-Encoding"
    assert json.loads(gzip.decompress(packed.body))["history_points"] == 60
    assert "content-encoding" not in get(server, "/api/snapshot", Accept_Encoding="gzip;q=0").headers


def test_twenty_readers_cost_one_look(server: WebServer) -> None:
    get(server, "/api/snapshot")
    for _ in range(20):
        assert get(server, "/api/snapshot").status == 200
    assert server.feed.decoded == 5


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9527", "127.0.0.1.evil.example", "[::2]", "localhost:x", "[::1"])
def test_a_foreign_host_is_refused(server: WebServer, host: str) -> None:
    """DNS rebinding: a page elsewhere lets its own name point to 127.0.0.1."""
    answer = get(server, "/api/snapshot", Host=host)
    assert answer.status == 421
    assert json.loads(answer.body)["error"] == "misdirected request"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.:9527", "127.0.0.1:1", "[::1]:9527", "node1.example"])
def test_hosts_that_are_meant(written: Written, host: str) -> None:
    with serving(written.folder, allowed_hosts=("Node1.example",)) as server:
        assert get(server, "/api/config", Host=host).status == 200


def test_a_host_field_is_read_strictly() -> None:
    assert host_name("[::1]:80") == "::1"
    assert host_name("a:b:c") == ""
    assert host_name("") == ""


def test_a_request_of_another_site_is_refused(server: WebServer) -> None:
    assert get(server, "/api/snapshot", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").status == 403
    assert get(server, "/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").status == 200
    assert get(server, "/api/snapshot", Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/api/config", "/api/events", "/"])
def test_other_methods_are_405_with_what_is_allowed(server: WebServer, path: str, method: str) -> None:
    answer = get(server, path, method=method)
    assert answer.status == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
    assert answer.headers["content-type"] == "application/problem+json"
    assert json.loads(answer.body)["error"] == "method not allowed"


@pytest.mark.parametrize(
    "path",
    [
        "/static/",
        "/static/js/",
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
        "/static//etc/passwd",
        "/static/vendor/README.md",
        "/static/js/main.js%00",
        "/static",
        "/etc/passwd",
    ],
)
def test_nothing_but_the_files_of_the_page(server: WebServer, path: str) -> None:
    answer = get(server, path)
    assert answer.status == 404
    assert json.loads(answer.body)["status"] == 404


@pytest.mark.parametrize("path", ROUTES)
def test_before_a_verdict_it_is_503(tmp_path: Path, path: str) -> None:
    with serving(tmp_path) as server:
        answer = get(server, path)
    content = json.loads(answer.body)
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"
    assert content["error"] == "snapshot not ready"
    assert content["detail"].startswith("absent: ")


def test_a_daemon_that_ended_is_told(written: Written, server: WebServer) -> None:
    written.close(handed_on=True)
    view = json.loads(get(server, "/api/snapshot").body)
    assert (view["daemon"], view["fresh"]) == ("dead", False)
    assert not any(head["fresh"] for head in view["components"].values())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"component":"memory","sch', "Input data was truncated"),
        (b'{"schema":2}', "it is of schema 2, and this program knows 1"),
        (b"", "Input data was truncated"),
        (b'{"schema":1}', "Object missing required field"),
        (b"\xff\xfe", "JSON is malformed"),
    ],
)
def test_a_file_that_cannot_be_used_costs_itself_alone(written: Written, content: bytes, problem: str) -> None:
    (written.folder / "snapshot_memory.json").unlink()
    (written.folder / "snapshot_memory.json").write_bytes(content)
    with serving(written.folder) as server:
        view = json.loads(get(server, "/api/snapshot").body)
    assert problem in view["problems"]["snapshot_memory.json"]
    assert {one["component"] for one in view["metrics"]} == {"cpu", "disk", "network"}


def test_what_only_looks_like_a_snapshot_is_not_followed(written: Written) -> None:
    os.mkfifo(written.folder / "snapshot_gpu.json")
    (written.folder / "snapshot_npu.json").symlink_to("/etc/passwd")
    (written.folder / "snapshot_chassis.json").write_bytes((written.folder / "snapshot_cpu.json").read_bytes())
    with serving(written.folder) as server:
        problems = json.loads(get(server, "/api/snapshot").body)["problems"]
    assert problems["snapshot_gpu.json"] == problems["snapshot_npu.json"] == "it is no regular file of at most 64 MiB"
    assert problems["snapshot_chassis.json"] == "it is of component 'cpu', which its name does not say"


def test_files_that_go_are_forgotten(written: Written, server: WebServer) -> None:
    assert "disk" in json.loads(get(server, "/api/snapshot").body)["components"]
    (written.folder / "snapshot_disk.json").unlink()
    from support.daemon import until  # noqa: PLC0415 - the server looks five times a second

    until(lambda: "disk" not in json.loads(get(server, "/api/snapshot").body)["components"], "the disk is gone")


def test_a_port_is_given_back(written: Written) -> None:
    with serving(written.folder) as server:
        port = address(server)[1]
    with serving(written.folder, port=port) as server:
        assert get(server, "/api/config").status == 200
