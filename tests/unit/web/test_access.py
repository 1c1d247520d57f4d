"""Tokens, roles, sessions and TLS: who is let in, and as what."""

import hashlib
import http.client
import json
import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nodeproof.clock import Clock, Instant
from nodeproof.config.schema import WebConfig
from nodeproof.errors import UsageError
from nodeproof.host.socket_holder import user_of_connection
from nodeproof.host.users import user_name
from nodeproof.web.access import COOKIE, SESSION_S, Access
from nodeproof.web.audit import AuditEntry, AuditLog
from nodeproof.web.backstage import Makers
from nodeproof.web.gate import same_origin
from nodeproof.web.http_messages import Request
from nodeproof.web.limits import RateLimit
from nodeproof.web.roles import Role, TokenHolder
from nodeproof.web.server import WebServer
from nodeproof.web.tokens import TokenFile
from support.certificates import self_signed
from support.http_client import Client
from support.stress import make_manager, make_settings, write_dispatcher
from support.web import ACTION, address, ask, serving

OPERATOR = "operator-token-0123456789"
VIEWER = "viewer-token-0123456789ab"
SIGN_IN = {"Content-Type": "application/json", "X-Nodeproof-Action": "session"}


class SetClock(Clock):
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.mono_s = 1000.0

    def now(self) -> Instant:
        return Instant(1_800_000_000.0 + self.mono_s, self.mono_s)

    def sleep(self, seconds: float) -> None:
        self.mono_s += seconds


def write_tokens(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return str(path)


@pytest.fixture
def tokens(tmp_path: Path) -> str:
    digest = hashlib.sha256(VIEWER.encode()).hexdigest()
    return write_tokens(tmp_path / "tokens", f"# who\n\noperator alice {OPERATOR}\nviewer wall sha256:{digest}\n")


@pytest.fixture
def server(tmp_path: Path, tokens: str) -> Iterator[WebServer]:
    settings = make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh"))
    settings = msgspec.structs.replace(settings, web_enabled=True)
    makers = Makers(lambda: make_manager(settings), settings=lambda: settings)
    with serving(tmp_path / "snapshot", makers=makers, token_file=tokens) as found:
        yield found


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_without_a_token_nothing_is_told(server: WebServer) -> None:
    for path in ("/api/health", "/api/stress/latest", "/api/events", "/api/openapi.json", "/api/nowhere"):
        answer = ask(server, "GET", path)
        assert (answer.status, json.loads(answer.body)["error"]) == (403, "token required")
    assert ask(server, "POST", "/api/stress/runs", {}, ACTION).status == 403
    assert ask(server, "GET", "/").status == 200
    session = json.loads(ask(server, "GET", "/api/session").body)
    assert session["role"] == "none"
    assert (session["token_required"], session["may_start"], session["loopback"]) == (True, False, True)


def test_what_each_role_may(server: WebServer) -> None:
    assert ask(server, "GET", "/api/stress/live", None, bearer(VIEWER)).status == 200
    refused = ask(server, "POST", "/api/stress/runs", {}, {**ACTION, **bearer(VIEWER)})
    assert (refused.status, json.loads(refused.body)["error"]) == (403, "not allowed")
    assert ask(server, "GET", "/api/audit", None, bearer(VIEWER)).status == 403
    assert ask(server, "POST", "/api/stress/runs", {"benchmarks": ["none"]}, {**ACTION, **bearer(OPERATOR)}).status == 400
    acts = json.loads(ask(server, "GET", "/api/audit", None, bearer(OPERATOR)).body)
    assert [(one["who"], one["role"], one["status"]) for one in acts] == [
        ("alice", "operator", 400),
        ("alice", "operator", 102),
        ("wall", "viewer", 403),
    ]
    view = json.loads(ask(server, "GET", "/api/stress/config", None, bearer(VIEWER)).body)
    assert view["enabled"] is True
    assert json.loads(ask(server, "GET", "/api/session", None, bearer(VIEWER)).body)["may_start"] is False


@pytest.mark.parametrize(
    "field", ["Bearer", "Bearer ", "Basic YWxpY2U6eA==", "Bearer \xff\xfe", "bearer nothing at all", "Bearer " + "x" * 9000]
)
def test_a_field_that_is_no_token(server: WebServer, field: str) -> None:
    assert ask(server, "GET", "/api/health", None, {"Authorization": field}).status == 403


def test_a_browser_signs_in_and_out(server: WebServer) -> None:
    assert ask(server, "POST", "/api/session", {"token": OPERATOR}, {"Content-Type": "application/json"}).status == 403
    assert ask(server, "POST", "/api/session", {"token": "wrong-token-0123456789"}, SIGN_IN).status == 403
    assert ask(server, "POST", "/api/session", {"token": OPERATOR, "x": 1}, SIGN_IN).status == 400
    answer = ask(server, "POST", "/api/session", {"token": OPERATOR}, SIGN_IN)
    assert json.loads(answer.body)["name"] == "alice"
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert attributes == ["Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"]
    assert cookie.startswith(f"{COOKIE}=")
    assert OPERATOR not in cookie
    with_cookie = {"Cookie": f"other=1; {cookie}"}
    assert ask(server, "GET", "/api/stress/live", None, with_cookie).status == 200
    assert json.loads(ask(server, "GET", "/api/session", None, with_cookie).body)["role"] == "operator"
    assert ask(server, "DELETE", "/api/session", None, with_cookie).status == 403
    out = ask(server, "DELETE", "/api/session", None, {**with_cookie, "X-Nodeproof-Action": "session"})
    assert (out.status, "Max-Age=0" in out.headers["set-cookie"]) == (204, True)
    assert ask(server, "GET", "/api/stress/live", None, with_cookie).status == 403


def test_a_token_that_is_taken_away_takes_its_sessions_along(server: WebServer, tokens: str) -> None:
    cookie = ask(server, "POST", "/api/session", {"token": OPERATOR}, SIGN_IN).headers["set-cookie"].split(";")[0]
    assert ask(server, "GET", "/api/stress/live", None, {"Cookie": cookie}).status == 200
    write_tokens(Path(tokens), f"viewer wall {VIEWER}\n")
    assert ask(server, "GET", "/api/stress/live", None, {"Cookie": cookie}).status == 403
    assert ask(server, "GET", "/api/stress/live", None, bearer(OPERATOR)).status == 403
    assert ask(server, "GET", "/api/stress/live", None, bearer(VIEWER)).status == 200
    os.unlink(tokens)
    assert ask(server, "GET", "/api/stress/live", None, bearer(VIEWER)).status == 403


def test_a_stream_ends_with_the_token_that_opened_it(server: WebServer, tokens: str) -> None:
    connection = http.client.HTTPConnection(*address(server), timeout=10)
    try:
        connection.request("GET", "/api/events", headers=bearer(OPERATOR))
        with connection.getresponse() as stream:
            assert stream.readline().startswith(b"event: ")
            write_tokens(Path(tokens), f"viewer wall {VIEWER}\n")
            while stream.readline():
                pass  # what was on its way, and then the end
    finally:
        connection.close()


def test_guessing_is_slow(server: WebServer) -> None:
    statuses = [ask(server, "GET", "/api/health", None, bearer(f"guess-{number:020}")).status for number in range(12)]
    assert statuses == [403] * 10 + [429] * 2
    answer = ask(server, "POST", "/api/session", {"token": OPERATOR}, SIGN_IN)
    assert answer.status == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 60


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no token"),
        ("# nothing\n", "holds no token"),
        ("operator alice\n", "line 1 has 2 fields"),
        ("root alice 01234567890123456789\n", "line 1: 'root' is no role"),
        ("operator <b> 01234567890123456789\n", "line 1: the name is none"),
        ("viewer wall short\n", "line 1: the token is too short"),
        ("viewer wall sha256:12345678901234567890\n", "line 1: the token is too short"),
        ("viewer a 01234567890123456789\noperator b 01234567890123456789\n", "line 2: the token of a stands there again"),
    ],
)
def test_a_token_file_that_is_none(tmp_path: Path, text: str, problem: str) -> None:
    path = write_tokens(tmp_path / "tokens", text)
    with pytest.raises(UsageError) as caught:
        TokenFile(path)
    assert problem in str(caught.value)
    assert path in str(caught.value)


def test_a_token_file_that_others_may_read(tmp_path: Path) -> None:
    for mode in (0o644, 0o604, 0o620):
        with pytest.raises(UsageError, match="chmod 600"):
            TokenFile(write_tokens(tmp_path / f"tokens-{mode}", f"viewer a {VIEWER}\n", mode))
    assert TokenFile(write_tokens(tmp_path / "group", f"viewer a {VIEWER}\n", 0o640)).holder(
        hashlib.sha256(VIEWER.encode()).digest()
    ) == TokenHolder("a", Role.VIEWER)
    with pytest.raises(UsageError, match="No such file"):
        TokenFile(str(tmp_path / "none"))
    with pytest.raises(UsageError, match="no regular file"):
        TokenFile(str(tmp_path))


def request_with(*headers: tuple[str, str]) -> Request:
    fields = [(name.encode(), text.encode("latin-1")) for name, text in headers]
    return Request("GET", "/api/health", "", fields, ("192.0.2.7", 4711), lambda: None)  # type: ignore[arg-type,return-value] # no body


def test_sessions_end_and_are_bounded(tokens: str) -> None:
    clock = SetClock()
    access = Access(TokenFile(tokens), loopback=False, secure=True, clock=clock)
    values = [access.sign_in(OPERATOR, "192.0.2.7")[1] for _ in range(513)]
    assert access.caller(request_with(("cookie", f"{COOKIE}={values[0]}"))).role is Role.NONE
    newest = request_with(("cookie", f"{COOKIE}={values[-1]}"))
    assert access.caller(newest).name == "alice"
    clock.sleep(SESSION_S + 1)
    assert access.caller(newest).role is Role.NONE
    assert access.identity(newest) == "192.0.2.7"


def test_without_a_token_file_this_machine_operates() -> None:
    access = Access(None, loopback=True)
    assert access.caller(request_with()) == (Role.OPERATOR, "", "192.0.2.7", "", 0)
    assert access.sign_in("whatever", "") == ((Role.OPERATOR, "", "", "", 0), "")


def test_who_came_over_loopback(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        client = Client(address(server))
        try:
            assert user_of_connection(*client.socket.getsockname()[:2]) == user_name(os.geteuid())
        finally:
            client.close()
    assert user_of_connection("127.0.0.1", 1) == ""
    assert user_of_connection("::1", 1) == ""
    assert user_of_connection("nonsense", 1) == ""


@pytest.mark.parametrize(
    ("origin", "host", "secure", "same"),
    [
        ("http://127.0.0.1:9527", "127.0.0.1:9527", False, True),
        ("http://localhost", "localhost:80", False, True),
        ("http://LOCALHOST:9527", "localhost:9527", False, True),
        ("http://[::1]:9527", "[::1]:9527", False, True),
        ("https://node1", "node1", True, True),
        ("http://node1", "node1", True, False),
        ("https://node1", "node1", False, False),
        ("http://127.0.0.1:9528", "127.0.0.1:9527", False, False),
        ("http://127.0.0.1:9527.evil", "127.0.0.1:9527", False, False),
        ("null", "127.0.0.1:9527", False, False),
        ("file://", "", False, False),
        ("", "127.0.0.1", False, False),
    ],
)
def test_origins(origin: str, host: str, secure: bool, same: bool) -> None:  # noqa: FBT001 - a table
    assert same_origin(origin, host, secure=secure) is same


def test_a_rate_is_counted_by_caller_and_forgotten() -> None:
    clock = SetClock()
    limit = RateLimit(2, 60.0, clock)
    for _ in range(2):
        assert limit.wait_s("a") == 0
        limit.count("a")
    clock.sleep(10.5)
    assert (limit.wait_s("a"), limit.wait_s("b")) == (50, 0)
    clock.sleep(49.5)
    assert limit.wait_s("a") == 0
    for number in range(2000):
        limit.count(f"caller {number}")
    assert len(limit._times) == 1024


def test_the_audit_log_is_bounded_and_survives_damage(tmp_path: Path) -> None:
    log = AuditLog(str(tmp_path / "audit.jsonl"), max_bytes=2000)
    for number in range(60):
        log.add(AuditEntry(at="t", who="w", peer="p", role="r", action=f"act {number}", status=200, detail="x" * 1000))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 6000
    assert [entry.action for entry in log.newest(3)] == ["act 59", "act 58", "act 57"]
    assert len(log.newest(1)[0].detail) == 200
    with open(tmp_path / "audit.jsonl", "ab") as file:
        file.write(b"half a li\n\xff\xff\n")
    assert log.newest(1)[0].action == "act 59"
    assert AuditLog(str(tmp_path / "none")).newest(5) == []


# TLS


def write_certificate(folder: Path) -> tuple[str, str]:
    certificate, key = self_signed("nodeproof test")
    cert, private = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(certificate)
    private.write_bytes(key)
    private.chmod(0o600)
    return str(cert), str(private)


def test_over_tls_with_a_token(tmp_path: Path, tokens: str) -> None:
    cert, key = write_certificate(tmp_path)
    context = ssl.create_default_context(cafile=cert)
    with serving(tmp_path / "snapshot", token_file=tokens, tls_cert=cert, tls_key=key) as server:
        assert server.url.startswith("https://127.0.0.1:")
        assert ask(server, "GET", "/api/session", context=context).status == 200
        answer = ask(server, "POST", "/api/session", {"token": VIEWER}, SIGN_IN, context=context)
        assert "; Secure" in answer.headers["set-cookie"]
        origin = server.url.rstrip("/")
        assert ask(server, "DELETE", "/api/session", None, {**SIGN_IN, "Origin": origin}, context=context).status == 204
        foreign = {**SIGN_IN, "Origin": origin.replace("https", "http")}
        assert ask(server, "DELETE", "/api/session", None, foreign, context=context).status == 403
        plain = Client(address(server))
        plain.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert plain.at_end()
        plain.close()


def test_beyond_loopback_with_token_and_tls(tmp_path: Path, tokens: str) -> None:
    cert, key = write_certificate(tmp_path)
    web = WebConfig(address="0.0.0.0:0", token_file=tokens, tls_cert=cert, tls_key=key)
    server = WebServer(str(tmp_path / "snapshot"), web)
    server.start()
    try:
        context = ssl.create_default_context(cafile=cert)
        assert json.loads(ask(server, "GET", "/api/session", context=context).body)["loopback"] is False
        # Rebinding needs a name; an address is the node itself.
        assert ask(server, "GET", "/api/session", None, {"Host": "192.0.2.1:9527"}, context=context).status == 200
        assert ask(server, "GET", "/api/session", None, {"Host": "evil.example"}, context=context).status == 421
        assert ask(server, "GET", "/api/health", context=context).status == 403
    finally:
        server.stop()


@pytest.mark.parametrize("lacking", ["token_file", "tls_cert", "tls_key"])
def test_beyond_loopback_with_less_it_does_not_start(tmp_path: Path, tokens: str, lacking: str) -> None:
    cert, key = write_certificate(tmp_path)
    web = WebConfig(address="0.0.0.0:0", token_file=tokens, tls_cert=cert, tls_key=key)
    with pytest.raises(UsageError, match=r"web\.token_file, web\.tls_cert and web\.tls_key"):
        WebServer(str(tmp_path), msgspec.structs.replace(web, **{lacking: ""}))


def test_certificates_that_are_none(tmp_path: Path) -> None:
    cert, key = write_certificate(tmp_path)

    def refused(cert: str, key: str) -> str:
        with pytest.raises(UsageError) as caught:
            WebServer(str(tmp_path), WebConfig(address="127.0.0.1:0", tls_cert=cert, tls_key=key))
        return str(caught.value)

    assert "belong together" in refused(cert, "")
    assert "No such file" in refused(str(tmp_path / "none"), key)
    assert "No such file" in refused(cert, str(tmp_path / "none"))
    other = write_tokens(tmp_path / "other.pem", "no key")
    assert "both PEM" in refused(cert, other)
    os.chmod(key, 0o644)
    assert f"chmod 600 {key}" in refused(cert, key)
