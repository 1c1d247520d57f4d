"""What a subscriber may ask for, where a webhook may go, and that it is kept."""

import os
import stat
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import RecordError, UsageError
from nodeproof.faults.subscriptions import SUBSCRIPTIONS_FILE, Request, Subscriptions, Targets, target_of

_NOW = "2026-12-01T00:00:00+00:00"


def _kept(folder: Path, *allowed: str) -> Subscriptions:
    subscriptions = Subscriptions(str(folder), Targets(allowed), lambda: _NOW)
    subscriptions.load()
    return subscriptions


def _wish(**more: object) -> Request:
    return msgspec.convert({"endpoint": "https://a.example.com/x", **more}, Request)


def test_they_survive_with_secret_and_place(tmp_path: Path) -> None:
    first = _kept(tmp_path).add(_wish(types=["thermal"], secret="s" * 16, id="sub-0001", min_severity="warning"), 41)
    again = _kept(tmp_path)
    assert again.all() == [first]
    assert again.get(first.id) == first
    assert again.served(first.id) == ("s" * 16, 41)
    assert (first.id != "sub-0001", first.signed, first.created_at) == (True, True, _NOW)
    mode = stat.S_IMODE(os.stat(tmp_path / SUBSCRIPTIONS_FILE).st_mode)
    assert mode == 0o600
    assert again.remove(first.id)
    assert not again.remove(first.id)
    assert _kept(tmp_path).all() == []
    assert again.get(first.id) is None


def test_ids_never_wrap_and_their_number_has_a_limit(tmp_path: Path) -> None:
    """Defect 25: the ten-thousandth one took the first one's id."""
    subscriptions = _kept(tmp_path)
    ids = {subscriptions.add(_wish(), 0).id for _ in range(64)}
    assert len(ids) == 64
    with pytest.raises(UsageError, match="there are 64 subscriptions"):
        subscriptions.add(_wish(), 0)


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        ({"delivery": "email"}, "delivery: 'email' is neither"),
        ({"endpoint": ""}, "endpoint: a webhook needs one"),
        ({"min_severity": "fatal"}, "min_severity: 'fatal'"),
        ({"debounce_ms": -1}, "debounce_ms: not within"),
        ({"debounce_ms": 10**9}, "debounce_ms: not within"),
        ({"types": [""]}, "types: ''"),
        ({"types": ["x" * 65]}, "types: "),
        ({"components": ["a\nb"]}, "components: "),
        ({"npu_ids": ["1"] * 65}, "npu_ids: more than 64"),
        ({"secret": "short"}, "secret: not within"),
        ({"endpoint": "ftp://a.example.com"}, "endpoint: write http"),
        ({"endpoint": "http://"}, "endpoint: write http"),
        ({"endpoint": "//a.example.com/"}, "endpoint: write http"),
        ({"endpoint": "https://user:pw@a.example.com/"}, "endpoint: a URL that carries"),
        ({"endpoint": "https://a.example.com:0/"}, "endpoint: nothing listens"),
        ({"endpoint": "https://a.example.com:99999/"}, "endpoint: Port"),
        ({"endpoint": "https://[::1/"}, "endpoint: "),
        ({"endpoint": "https://a.example.com/\r\nX: y"}, "endpoint: no URL"),
        ({"endpoint": "https://bücher.example/"}, "endpoint: no URL"),
        ({"endpoint": "https://a.example.com/" + "x" * 3000}, "endpoint: no URL"),
        ({"endpoint": "http://127.0.0.1:9000/"}, "endpoint: 127.0.0.1 is no public address"),
        ({"endpoint": "http://169.254.169.254/latest/meta-data"}, "endpoint: 169.254.169.254 is no public"),
        ({"endpoint": "http://[::1]/"}, "endpoint: ::1 is no public"),
        ({"endpoint": "http://[::ffff:10.0.0.1]/"}, "is no public"),
    ],
)
def test_wishes_that_cannot_be_met(tmp_path: Path, wish: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match="^" + problem.replace("[", r"\[").replace(".", r"\.") if problem[0] == "e" else problem):
        _kept(tmp_path).add(_wish(**wish), 0)
    assert not (tmp_path / SUBSCRIPTIONS_FILE).exists()


def test_polling_needs_no_endpoint(tmp_path: Path) -> None:
    one = _kept(tmp_path).add(_wish(delivery="poll", endpoint="http://127.0.0.1/"), 0)
    assert (one.delivery, one.endpoint) == ("poll", "")


@pytest.mark.parametrize(
    ("allowed", "host", "addresses", "refused"),
    [
        ((), "a.example.com", ["93.184.215.14"], ""),
        ((), "a.example.com", ["93.184.215.14", "10.0.0.1"], "a.example.com means 10.0.0.1, which is no public address"),
        ((), "a.example.com", ["100.64.0.1"], "a.example.com means 100.64.0.1"),
        ((), "a.example.com", ["224.0.0.1"], "a.example.com means 224.0.0.1"),
        ((), "a.example.com", ["0.0.0.1"], "a.example.com means 0.0.0.1"),
        ((), "a.example.com", ["fe80::1%eth0"], "a.example.com means fe80::1%eth0"),
        ((), "a.example.com", ["fd00::1"], "a.example.com means fd00::1"),
        ((), "a.example.com", ["64:ff9b::7f00:1"], "a.example.com means 64:ff9b::7f00:1"),
        ((), "a.example.com", ["64:ff9b:1::a9fe:a9fe"], "a.example.com means 64:ff9b:1::a9fe:a9fe"),
        ((), "a.example.com", ["fec0::1"], "a.example.com means fec0::1"),
        ((), "a.example.com", ["::127.0.0.1"], "a.example.com means ::127.0.0.1"),
        ((), "a.example.com", ["2002:7f00:1::"], "a.example.com means 2002:7f00:1::"),
        ((), "a.example.com", ["2606:2800:21f:cb07:6820:80da:af6b:8b2c"], ""),
        (("10.1.0.0/16",), "a.example.com", ["10.1.2.3"], ""),
        (("10.1.0.0/16",), "a.example.com", ["10.2.2.3"], "a.example.com means 10.2.2.3"),
        (("127.0.0.1", "::1"), "localhost", ["::1", "127.0.0.1"], ""),
        (("alerts.internal",), "Alerts.Internal.", ["10.9.9.9"], ""),
        (("alerts.internal",), "other.internal", ["10.9.9.9"], "other.internal means 10.9.9.9"),
    ],
)
def test_where_a_webhook_may_go(allowed: tuple[str, ...], host: str, addresses: list[str], refused: str) -> None:
    answer = Targets(allowed).refuses(host, addresses)
    assert answer.startswith(refused)
    assert bool(answer) is bool(refused)


def test_targets() -> None:
    target = target_of("https://a.example.com/x?y=1")
    assert (target.tls, target.host, target.port, target.path, target.host_field) == (
        True,
        "a.example.com",
        443,
        "/x?y=1",
        "a.example.com",
    )
    assert target_of("http://[2606:2800::1]:8080").host_field == "[2606:2800::1]:8080"


def test_a_file_that_cannot_be_read_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / SUBSCRIPTIONS_FILE
    path.write_bytes(b'{"schema": 1, "entries": [')
    with pytest.raises(RecordError, match=r"set aside as .*\.bad"):
        _kept(tmp_path)
    assert (tmp_path / f"{SUBSCRIPTIONS_FILE}.bad").exists()
    assert _kept(tmp_path).all() == []
