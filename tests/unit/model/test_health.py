"""The JSON of a score: the reference's keys (observe.md 5.6), read by a strict reader."""

import json
from typing import Any

import msgspec

from nodeproof.errors import Absence
from nodeproof.health import Evaluator
from nodeproof.model.health import Explanation, HealthScore, Reading, UnknownConcern, Verdict
from support.node import healthy


class StrictDeduction(msgspec.Struct):
    rule: str
    penalty: float


class StrictComponent(msgspec.Struct):
    score: int
    max: int
    deductions: list[StrictDeduction] | None


class StrictHealth(msgspec.Struct):
    """Every key is required; a wrong type is an error, an unknown key is not."""

    score: int
    grade: str
    server_type: str
    components: dict[str, StrictComponent]
    timestamp: str


def encoded() -> bytes:
    node = healthy().set("cpu", "usage", 95, core="total").miss("disk", "smart_status", Absence.NO_PERMISSION, "needs root")
    return msgspec.json.encode(node.judge())


def test_a_strict_reader_of_the_reference_format_reads_it() -> None:
    read = msgspec.json.decode(encoded(), type=StrictHealth)
    assert (read.score, read.grade, read.server_type) == (94, "Good", "cpu_only")  # 20 + 25 + 29 + 10 + 10
    assert read.components["cpu"].deductions == [StrictDeduction("usage>90%", 5.0)]
    assert read.components["memory"].deductions is None
    assert read.timestamp.startswith("20")


def test_deductions_are_null_when_there_are_none() -> None:
    raw: dict[str, Any] = json.loads(encoded())
    assert raw["components"]["memory"]["deductions"] is None
    assert isinstance(raw["score"], int)
    assert isinstance(raw["components"]["cpu"]["score"], int)


def test_keys_of_a_score() -> None:
    raw: dict[str, Any] = json.loads(encoded())
    assert set(raw) == {
        "score",
        "grade",
        "server_type",
        "components",
        "timestamp",
        "scheme",
        "ruleset",
        "coverage",
        "unknown",
        "findings",
    }
    assert set(raw["components"]["cpu"]) == {"score", "max", "deductions", "coverage"}
    assert raw["unknown"] == [
        {
            "component": "disk",
            "concern": "smart",
            "state": "no_permission",
            "reason": "needs root",
            "remedy": "do something",
            "source": "/some/file",
            "weight": 15.0,
        }
    ]
    [told] = raw["findings"]
    assert told["reading"] == {"component": "cpu", "name": "usage", "value": 95.0, "unit": "%", "labels": {"core": "total"}}
    assert set(told) == {
        "rule",
        "severity",
        "component",
        "message",
        "reading",
        "source",
        "age_s",
        "threshold",
        "clears_when",
        "since",
        "penalty",
        "last_seen",
    }


def test_a_score_survives_the_round_trip() -> None:
    node = healthy(Evaluator("0.3.3", confirm=False)).set("memory", "usage", 85)
    score = node.judge()
    assert msgspec.json.decode(msgspec.json.encode(score), type=HealthScore) == score


def test_an_explanation_survives_the_round_trip() -> None:
    node = healthy()
    node.judge()
    told = node.explain("cpu.load")
    assert msgspec.json.decode(msgspec.json.encode(told), type=list[Explanation]) == told


def test_what_is_not_said_is_left_out() -> None:
    assert json.loads(msgspec.json.encode(Reading("cpu", "usage", 1.0, "%"))) == {
        "component": "cpu",
        "name": "usage",
        "value": 1.0,
        "unit": "%",
    }
    assert json.loads(msgspec.json.encode(UnknownConcern("cpu", "usage", Absence.STALE, "old"))) == {
        "component": "cpu",
        "concern": "usage",
        "state": "stale",
        "reason": "old",
    }
    assert json.loads(msgspec.json.encode(Verdict(0, "sound", "SOUND"))) == {"exit_code": 0, "word": "sound", "line": "SOUND"}
