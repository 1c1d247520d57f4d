import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.host.http_request import BadRequest, Request, parse_head, quality


def test_a_request_of_prometheus() -> None:
    head = (
        b"GET /metrics?x=1&y=2 HTTP/1.1\r\nHost: 127.0.0.1:19320\r\nUser-Agent: Prometheus/2.42.0\r\n"
        b"Accept: application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75\r\n"
        b"Accept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: 10"
    )
    request = parse_head(head)
    assert (request.method, request.path, request.query, request.keep_alive) == ("GET", "/metrics", "x=1&y=2", True)
    assert request.headers["host"] == "127.0.0.1:19320"
    assert request.accepts_gzip()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"GET", 400),
        (b"GET /", 400),
        (b"GET  / HTTP/1.1\r\nHost: x", 400),
        (b"GET / HTTP/1.1 \r\nHost: x", 400),
        (b"G(T / HTTP/1.1\r\nHost: x", 400),
        (b"GET / HTTP/2.0\r\nHost: x", 505),
        (b"GET / HTTP/1.2\r\nHost: x", 505),
        (b"GET / http/1.1\r\nHost: x", 400),
        (b"GET metrics HTTP/1.1\r\nHost: x", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: x", 400),
        (b"GET / HTTP/1.1", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y", 400),
        (b"GET / HTTP/1.1\r\nHost : x", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n folded", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nno colon", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n: empty", 400),
        (b"GET / HTTP/1.1\r\nHost: x\x00", 400),
        (b"GET / HTTP/1.1\nHost: x", 400),
        (b"GET / HTTP/1.1\r\nHost: x\rX: y", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5", 413),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -0", 413),
        (b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked", 413),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"\r\n".join(b"X-%d: y" % number for number in range(100)), 431),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    ],
)
def test_what_is_not_exactly_right_is_refused(head: bytes, status: int) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_head(head)
    assert caught.value.status == status
    assert caught.value.reason


@pytest.mark.parametrize(
    ("head", "keep_alive"),
    [
        (b"GET / HTTP/1.1\r\nHost: x", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Close", False),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: foo, close", False),
        (b"GET / HTTP/1.0", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive", True),
    ],
)
def test_who_keeps_the_connection(head: bytes, keep_alive: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert parse_head(head).keep_alive is keep_alive


def test_repeated_fields_are_joined_and_a_length_of_zero_is_no_body() -> None:
    request = parse_head(b"HEAD / HTTP/1.1\r\nhost: x\r\nAccept: a\r\nACCEPT:\tb \r\nContent-Length: 0")
    assert request.headers["accept"] == "a, b"


@pytest.mark.parametrize(
    ("target", "path"),
    [(b"http://h:1/metrics?a", "/metrics"), (b"HTTP://h", "/"), (b"/a#b", "/a"), (b"/%2e%2e/x", "/%2e%2e/x"), (b"//x", "//x")],
)
def test_forms_of_the_target(target: bytes, path: str) -> None:
    assert parse_head(b"GET " + target + b" HTTP/1.1\r\nHost: x").path == path


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("gzip", {"gzip": 1.0}),
        ("gzip;q=0.5, br", {"gzip": 0.5, "br": 1.0}),
        ("text/plain; version=0.0.4 ;q=0.2", {"text/plain;version=0.0.4": 0.2}),
        ("a;q=x, b;q=2, c;q=nan", {"a": 0.0, "b": 0.0, "c": 0.0}),
        ("", {}),
        (" , ;q=1", {}),
    ],
)
def test_weights(field: str, expected: dict[str, float]) -> None:
    assert quality(field) == expected


@pytest.mark.parametrize(
    ("field", "wanted"),
    [("gzip", True), ("gzip;q=0", False), ("br", False), ("*", True), ("*;q=0", False), ("gzip;q=0, *", False), ("", False)],
)
def test_who_wants_gzip(field: str, wanted: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert Request("GET", "/", "", {"accept-encoding": field}, keep_alive=True).accepts_gzip() is wanted


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_refused(head: bytes) -> None:
    try:
        request = parse_head(head)
    except BadRequest as refusal:
        assert refusal.status in {400, 413, 431, 505}
    else:
        assert request.path.startswith("/")


@given(
    st.lists(
        st.tuples(
            st.text("abcdefghijklmnop-", min_size=1, max_size=8),
            st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20),
        ),
        max_size=10,
        unique_by=lambda field: field[0],
    )
)
def test_fields_come_back(fields: list[tuple[str, str]]) -> None:
    lines = "".join(f"\r\n{name}: {value}" for name, value in fields)
    request = parse_head(f"GET / HTTP/1.1\r\nHost: h{lines}".encode())
    assert {name: value for name, value in request.headers.items() if name != "host"} == dict(fields)
