"""A web server on loopback over a directory that the real sinks write, and ways to ask it."""

import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nodeproof.clock import SystemClock, rfc3339
from nodeproof.config.schema import WebConfig
from nodeproof.errors import Absence
from nodeproof.health import Evaluator, Readings
from nodeproof.model.metric import Batch, Metric, Missing
from nodeproof.model.snapshot import CollectorInfo
from nodeproof.sinks.snapshot import ComponentSnapshots, GlobalSnapshots, SnapshotDirectory
from nodeproof.web.backstage import Makers
from nodeproof.web.server import WebServer
from support.daemon import free_port
from support.http_client import Answer

__all__ = ["ACTION", "HOSTILE", "Written", "address", "ask", "get", "next_event", "next_of", "reader", "serving"]

HOSTILE = "<img src=x onerror=alert(1)>"
INTERVALS_MS = {"cpu": 1000, "disk": 5000, "memory": 1000, "network": 2000}


class Written:
    """A snapshot directory with a living owner: this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = SystemClock()
        self.directory = SnapshotDirectory(str(folder))
        self.directory.open(INTERVALS_MS)
        self.parts = ComponentSnapshots(str(folder), self.clock, lambda _component: 10.0, origin=self.directory.origin)
        self.whole = GlobalSnapshots(str(folder), self.clock, 1.0, origin=self.directory.origin)
        self.whole.set_collectors(
            [CollectorInfo(name, name, "High", f"{ms // 1000}s", True) for name, ms in INTERVALS_MS.items()]
        )
        self.whole.set_intervals(INTERVALS_MS)
        self.whole.set_system_specs(
            [Metric("system", "os_info", 1.0, "", {"pretty_name": "Test OS"}, rfc3339(self.clock.now().wall_s))]
        )
        self.evaluator = Evaluator(confirm=False)
        self.sequence = 0

    def write(
        self, usage: float = 12.0, *, extra: tuple[Metric, ...] = (), components: tuple[str, ...] = tuple(INTERVALS_MS)
    ) -> None:
        """One cycle of everything, or of ``components``, and the verdict on it."""
        self.sequence += 1
        now = self.clock.now()
        batches = {}
        for component in components:
            metrics = [*_readings(component, usage, rfc3339(now.wall_s)), *(one for one in extra if one.component == component)]
            missing = [
                Missing(
                    "cpu",
                    "temperature",
                    Absence.UNSUPPORTED,
                    "there is no sensor",
                    source="/sys/class/hwmon",
                    timestamp=rfc3339(now.wall_s),
                )
            ]
            batches[component] = Batch(
                component, rfc3339(now.wall_s), now.mono_s, metrics, missing if component == "cpu" else [], self.sequence
            )
            self.parts.write(batches[component])
        self.whole.write(self.evaluator.evaluate(Readings(batches), now))

    def close(self, *, handed_on: bool = False) -> None:
        """The end of the daemon, in good order or without a word."""
        self.parts.close()
        self.whole.close(handed_on=handed_on)
        self.directory.close()


def _readings(component: str, usage: float, at: str) -> list[Metric]:
    def reading(name: str, value: float, unit: str, **labels: str) -> Metric:
        return Metric(component, name, value, unit, labels or None, at)

    total = {"core": "total"}
    return {
        "cpu": [
            reading("usage", usage, "%", **total),
            reading("user_util", 7.5, "%", **total),
            reading("system_util", 3.5, "%", **total),
            reading("idle_util", 88.0, "%", **total),
            reading("iowait_util", 0.5, "%", **total),
            reading("irq_util", 0.25, "%", **total),
            reading("softirq_util", 0.15, "%", **total),
            reading("steal_util", 0.1, "%", **total),
            reading("load_average", 2.0, "", interval="15m"),
            reading("load_average", 0.5, "", interval="1m"),
            reading("load_average", 1.0, "", interval="5m"),
        ],
        "memory": [
            reading("usage", 30.0, "%"),
            reading("usage_detail", 1000.0, "MB", field="total"),
            reading("usage_detail", 300.0, "MB", field="used"),
        ],
        "disk": [
            reading("space_usage", 40.0, "%", device="/dev/vda", mount_point="/", fstype="ext4"),
            reading("iops", 7.0, "count/s", device="vda", direction="read"),
        ],
        "network": [
            reading("throughput", 500.0, "bytes/s", interface="eth0", direction="rx"),
            reading("throughput", 250.5, "bytes/s", interface="eth0", direction="tx"),
        ],
    }.get(component, [])


@contextlib.contextmanager
def serving(
    folder: Path, *, allowed_hosts: tuple[str, ...] = (), port: int = 0, makers: Makers | None = None, **web: Any
) -> Iterator[WebServer]:
    """A server over ``folder`` on a port of its own."""
    config = WebConfig(address=f"127.0.0.1:{port or free_port()}", allowed_hosts=allowed_hosts, **web)
    server = WebServer(str(folder), config, makers)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def address(server: WebServer) -> tuple[str, int]:
    """Where ``server`` listens."""
    return "127.0.0.1", int(server.url.rsplit(":", 1)[1].strip("/"))


def get(server: WebServer, path: str, *, method: str = "GET", **fields: str) -> Answer:
    """One answer on a connection of its own; ``fields`` are headers, with ``_`` for ``-``."""
    connection = http.client.HTTPConnection(*address(server), timeout=5)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): text for name, text in fields.items()})
        with connection.getresponse() as answer:
            return Answer(answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read())
    finally:
        connection.close()


ACTION = {"Content-Type": "application/json", "X-Nodeproof-Action": "stress"}
"""Header fields of a request that may change something."""


def ask(
    server: WebServer,
    method: str,
    path: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    *,
    context: ssl.SSLContext | None = None,
) -> Answer:
    """One answer; ``body`` is sent as JSON, bytes as they are."""
    host, port = address(server)
    connection = (
        http.client.HTTPConnection(host, port, timeout=10)
        if context is None
        else http.client.HTTPSConnection(host, port, timeout=10, context=context)
    )
    try:
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, content, dict(headers or {}))
        with connection.getresponse() as answer:
            return Answer(answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read())
    finally:
        connection.close()


@contextlib.contextmanager
def reader(server: WebServer) -> Iterator[http.client.HTTPResponse]:
    """A reader of the event stream."""
    connection = http.client.HTTPConnection(*address(server), timeout=5)
    try:
        connection.request("GET", "/api/events")
        with connection.getresponse() as answer:
            yield answer
    finally:
        connection.close()


def next_event(answer: http.client.HTTPResponse) -> tuple[str, Any]:
    """Name and content of the next event."""
    fields: dict[str, str] = {}
    while line := answer.readline().decode().rstrip("\n"):
        name, _, text = line.partition(": ")
        fields[name] = text
    return fields["event"], json.loads(fields["data"])


def next_of(answer: http.client.HTTPResponse, name: str) -> Any:
    """Content of the next event called ``name``."""
    while True:
        found, content = next_event(answer)
        if found == name:
            return content
