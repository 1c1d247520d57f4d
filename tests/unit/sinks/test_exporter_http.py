import gzip
import os
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nodeproof.errors import AddressInUseError, UsageError
from nodeproof.host.http_request import Request
from nodeproof.host.http_server import Response
from nodeproof.host.recorded import ManualClock
from nodeproof.sinks.base import StaleAfter
from nodeproof.sinks.exporter_http import Exporter, negotiated
from nodeproof.sinks.latest import LatestStore
from nodeproof.sinks.prometheus import Format, Renderer
from support.batches import batch, metric
from support.http_client import Client

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


class Desk:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = LatestStore(self.clock, StaleAfter({"cpu": 1.0}))
        self.exporter = Exporter(Renderer(self.store, version="1"), "127.0.0.1:0", more={"/extra": extra})
        self.exporter.start()
        self.client = Client(("127.0.0.1", self.exporter.server.ports[0]))

    def write(self) -> None:
        self.store.write(batch([metric("usage", 50.0, {"core": "total"})], at=self.clock.now()))


def extra(_request: Request) -> Response:
    return Response(200, b"more")


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.client.close()
    made.exporter.stop()


def test_before_anything_is_read_there_is_no_page_and_no_readiness(desk: Desk) -> None:
    answer = desk.client.get("/metrics")
    assert (answer.status, answer.body) == (503, b"# nothing has been read yet\n")
    assert desk.client.get("/-/ready").status == 503
    assert desk.client.get("/-/healthy").status == 200


def test_the_page_in_text(desk: Desk) -> None:
    desk.write()
    answer = desk.client.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert b'nodeproof_cpu_usage_ratio{core="total"} 0.5\n' in answer.body
    assert list(text_string_to_metric_families(answer.body.decode()))


def test_openmetrics_and_gzip_for_those_who_ask(desk: Desk) -> None:
    desk.write()
    answer = desk.client.get("/metrics", "Accept: application/openmetrics-text; version=1.0.0", "Accept-Encoding: gzip")
    assert answer.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(answer.body).endswith(b"# EOF\n")
    assert desk.client.get("/metrics", method="HEAD").status == 200


def test_ready_while_something_is_fresh(desk: Desk) -> None:
    desk.write()
    assert desk.client.get("/-/ready").status == 200
    desk.clock.advance(60)
    answer = desk.client.get("/-/ready")
    assert (answer.status, b"stale" in answer.body) == (503, True)
    assert desk.client.get("/-/healthy").status == 200
    assert desk.client.get("/metrics").status == 200
    desk.write()
    assert desk.client.get("/-/ready").status == 200


def test_the_first_page_lists_every_route(desk: Desk) -> None:
    body = desk.client.get("/").body.decode()
    assert [line.strip() for line in body.splitlines() if line.startswith("  ")] == [
        "/-/healthy",
        "/-/ready",
        "/extra",
        "/metrics",
    ]
    assert desk.client.get("/extra").body == b"more"


def test_a_taken_port_is_an_error_with_holder_and_remedy(desk: Desk) -> None:
    address = f"127.0.0.1:{desk.exporter.server.ports[0]}"
    with pytest.raises(AddressInUseError, match=rf"pid {os.getpid()}.*set exporter\.address"):
        Exporter(Renderer(desk.store), address).start()
    with pytest.raises(UsageError):
        Exporter(Renderer(desk.store), "nonsense")


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Format.TEXT),
        ("*/*", Format.TEXT),
        ("text/plain", Format.TEXT),
        ("application/openmetrics-text", Format.OPENMETRICS),
        ("application/openmetrics-text; version=0.0.1", Format.TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0.1,text/plain;q=0.5", Format.TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0", Format.TEXT),
        (PROMETHEUS_2, Format.OPENMETRICS),
        (PROMETHEUS_3, Format.OPENMETRICS),
        ("text/html,application/xhtml+xml,*/*;q=0.8", Format.TEXT),
    ],
)
def test_negotiation(accept: str, form: Format) -> None:
    assert negotiated(accept) is form
