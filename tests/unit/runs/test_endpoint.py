"""Addresses and model names, without a connection (bench.md 1.1, 1.7)."""

import re

import pytest

from nodeproof.errors import UsageError
from nodeproof.runs.endpoint import ModelExpectation, Secret, TargetEndpoint


def test_slash_at_the_end_goes() -> None:
    assert TargetEndpoint.new("http://host:8000/v1//", "m").base_url == "http://host:8000/v1"
    assert TargetEndpoint.local(8888, "m") == TargetEndpoint("http://127.0.0.1:8888", "m", {})


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://host:8000/v1", ("host", 8000)),
        ("HTTP://host", ("host", 80)),
        ("http://[::1]:9/x", ("::1", 9)),
        ("http://[fe80::1]", ("fe80::1", 80)),
        ("http://user:pass@host:81/a@b", ("host", 81)),
    ],
)
def test_host_and_port(url: str, expected: tuple[str, int]) -> None:
    assert TargetEndpoint(url, "m").host_port() == expected


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://host", "begin with http://"),
        ("host:80", "begin with http://"),
        ("http://", "names no host"),
        ("http://:80", "names no host"),
        ("http://host:0", "'0' is no port"),
        ("http://host:65536", "'65536' is no port"),
        ("http://host:8o", "'8o' is no port"),
        ("http://host:²", "is no port"),
        ("http://[::1", "has no end"),
        ("http://[::1]x", "has no end"),
    ],
)
def test_what_is_no_plain_address(url: str, problem: str) -> None:
    with pytest.raises(UsageError, match=re.escape(problem)):
        TargetEndpoint(url, "m").host_port()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:8000", True),
        ("https://LOCALHOST/v1", True),
        ("http://127.3.2.1", True),
        ("http://[::1]:80", True),
        ("http://10.0.0.1", False),
        ("http://host", False),
        ("http://localhost.example.org", False),
        ("http://[::1", False),
        ("nonsense", False),
        ("http://127.0.0.1:x", False),
    ],
)
def test_loopback(url: str, *, expected: bool) -> None:
    assert TargetEndpoint(url, "m").is_loopback() is expected


def test_serve_overrides_are_counts_or_errors_never_guesses() -> None:
    target = TargetEndpoint.new("http://h", "m", {"slots": "16", "odd": "-1"})
    assert target.override_count("slots") == 16
    assert target.override_count("absent") is None
    with pytest.raises(UsageError, match="serve override odd: '-1' is no whole number"):
        target.override_count("odd")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("Qwen/Qwen3.6-27B-FP8", True),
        ("qwen3.6-27b", True),
        ("qwen3.6-270b", False),
        ("xqwen3.6-27b", False),
        ("xqwen3.6-27b qwen3.6-27b", True),
        ("llama", False),
    ],
)
def test_families_are_whole_words(model: str, *, expected: bool) -> None:
    assert ModelExpectation(("mixtral", "qwen3.6-27b"), "tuned for it").accepts(model) is expected


def test_secrets_are_equal_by_what_they_hold_and_show_nothing() -> None:
    assert Secret("k") == Secret("k")
    assert Secret("k") != Secret("l")
    assert Secret("k") != "k"
    assert {Secret("k"), Secret("k")} == {Secret("k")}
    assert (repr(Secret("k")), repr(Secret()), bool(Secret())) == ("Secret(***)", "Secret()", False)
