"""The event stream: everything first, then what changes, the newest for those who are slow, and a heartbeat."""

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeproof.model.metric import Metric
from nodeproof.web import stream
from nodeproof.web.server import WebServer
from support.daemon import until
from support.web import Written, address, get, next_event, next_of, reader, serving


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


def test_everything_first_then_only_what_changed(written: Written, server: WebServer) -> None:
    with reader(server) as answer:
        assert answer.getheader("content-type") == "text/event-stream; charset=utf-8"
        name, first = next_event(answer)
        assert name == "parts"
        assert first["full"] is True
        assert sorted(first["parts"]) == ["cpu", "disk", "memory", "network", "snapshot"]
        assert next_event(answer)[0] == "daemon"
        written.write(usage=55.0, components=("cpu",))
        changes = [next_of(answer, "parts")]
        while "cpu" not in changes[-1]["parts"]:
            changes.append(next_of(answer, "parts"))
        assert changes[-1]["full"] is False
        assert changes[-1]["parts"].keys() <= {"cpu", "snapshot"}
        assert changes[-1]["parts"]["cpu"]["metrics"][0]["value"] == 55.0


def test_a_heartbeat_comes_without_any_change(server: WebServer) -> None:
    with reader(server) as answer:
        next_of(answer, "parts")
        first, second = next_of(answer, "daemon"), next_of(answer, "daemon")
    assert first["verdict"] == second["verdict"] == "running"
    assert second["evidence"]["age_s"] > first["evidence"]["age_s"]


def test_the_death_of_the_daemon_is_told(written: Written, server: WebServer) -> None:
    with reader(server) as answer:
        assert next_of(answer, "daemon")["verdict"] == "running"
        written.close(handed_on=True)
        told = next_of(answer, "daemon")
        while told["verdict"] == "running":
            told = next_of(answer, "daemon")
    assert told["verdict"] == "dead"


def test_a_slow_reader_gets_the_newest_and_nothing_piles_up(written: Written, server: WebServer) -> None:
    """Two megabytes an event into a small window: what was not taken in time is replaced, not queued."""
    blob = tuple(Metric("cpu", "speed", 1.0, "", {"text": "x" * 1000, "n": str(number)}) for number in range(2000))
    slow = socket.socket()
    try:
        slow.settimeout(5)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        slow.connect(address(server))
        slow.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for usage in range(20, 32):
            written.write(usage=float(usage), extra=blob, components=("cpu",))
            time.sleep(0.25)
        seen: list[int] = []
        rest = b""
        while 31 not in seen:
            rest += slow.recv(1 << 20)
            seen += [int(value) for value in re.findall(rb'"name":"usage","value":(\d+)\.0,', rest)]
            rest = rest[-40:]
    finally:
        slow.close()
    versions = set(seen) & set(range(20, 31))
    assert len(versions) < 8, versions


def test_readers_that_go_are_counted_off(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_MAX_READERS", 1)
    with reader(server) as answer:
        next_event(answer)
        assert get(server, "/api/events").status == 503
    until(lambda: get(server, "/api/events", method="HEAD").status == 200, "the place is free again")


def test_the_server_ends_under_an_open_stream(written: Written) -> None:
    with serving(written.folder) as server, reader(server) as answer:
        next_event(answer)
        server.stop()
        assert not server._thread.is_alive()


def test_a_large_node(written: Written) -> None:
    """5,000 readings: 256 processors, 64 disks, 16 accelerators and what they have."""
    extra = [
        Metric("cpu", f"core_reading_{kind}", 1.5, "%", {"core": str(core)}, "t") for core in range(256) for kind in range(15)
    ]
    extra += [Metric("disk", "iops", 7.0, "count/s", {"device": f"nvme{disk}n1", "direction": "read"}, "t") for disk in range(64)]
    extra += [Metric("memory", f"page_{number}", 1.0, "", None, "t") for number in range(1100)]
    written.write(extra=tuple(extra))
    with serving(written.folder) as server, reader(server) as answer:
        first = next_of(answer, "parts")
        assert sum(len(part.get("metrics", ())) for part in first["parts"].values()) > 5000
        view = json.loads(get(server, "/api/snapshot").body)
        assert len({one["labels"]["core"] for one in view["metrics"] if one["name"] == "core_reading_0"}) == 256
        charts = {chart["id"]: chart for chart in json.loads(get(server, "/api/dfee").body)["charts"]}
        ids = [one["id"] for one in charts["disk_iops_read"]["series"]]
        assert (len(ids), ids[0], ids[2], ids[-1]) == (65, "nvme0n1:iops:read", "nvme2n1:iops:read", "vda:iops:read")


def test_a_server_that_comes_back_begins_anew(written: Written) -> None:
    with serving(written.folder) as server, reader(server) as answer:
        assert next_of(answer, "parts")["full"] is True
        port = address(server)[1]
        server.stop()
    with serving(written.folder, port=port) as server, reader(server) as answer:
        assert next_of(answer, "parts")["full"] is True
