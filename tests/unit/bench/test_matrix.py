"""Models of a plan: served already, started, missing, wrong, slow."""

import re
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from nodeproof.bench.matrix.examination import code_of
from nodeproof.bench.matrix.roster import read_roster
from nodeproof.bench.testing import Model, Received, Rules, Script, ScriptServer, Step, chat_chunk
from nodeproof.bench.testing.model import document
from nodeproof.errors import RunError
from support.acting import call, tool_stream
from support.bench_course import Outcome, run
from support.daemon import free_port

pytestmark = pytest.mark.timeout(90)
_CODE = (
    "Here:\n```python\ndef runs(text):\n    found = []\n    last = None\n    for char in text:\n        if char == last:\n"
    "            found[-1] += 1\n        else:\n            found.append(1)\n        last = char\n    return found\n```\n"
)
_ANSWERS = {"two and two": "4", "capital of France": "Paris", "runs(text)": _CODE, "Count from": "one two three four five six"}


class Several(Model):
    """A server of several models that does what each of them can."""

    def __init__(self, *names: str, code: str = _CODE, tpot_s: float = 0.002) -> None:
        super().__init__(ttft_s=0.0, tpot_s=tpot_s, answers={**_ANSWERS, "runs(text)": code})
        self.names = names

    def __call__(self, request: Received) -> Script:
        if request.path == "/v1/models":
            return document({"data": [{"id": name} for name in self.names]})
        fields = request.json()
        self.name = str(fields.get("model"))
        if "tools" in fields:
            city = re.search(rb"weather in (\w+)", request.body)
            assert city is not None
            return tool_stream([call("get_weather", city=city[1].decode())])
        number = re.search(rb"locker is (\d+)", request.body)
        if number is not None:
            self.answers = {"locker": number[1].decode(), **self.answers}
        script = super().__call__(request)
        self.answers.pop("locker", None)
        return script


def _matrix(tmp_path: Path, model: Model | Rules, absent_here: list[str], **params: str) -> Outcome:
    with ScriptServer(model) as server:
        outcome = run(tmp_path, server.url, "serve-matrix", **params)
    if "this machine cannot be shut out" in outcome.reason:
        absent_here.append("namespaces: code that models write was not run")
        pytest.skip(outcome.reason)
    return outcome


def test_every_model_that_is_listed_passes(tmp_path: Path, absent_here: list[str]) -> None:
    outcome = _matrix(tmp_path, Several("small", "Large/70B"), absent_here)
    assert outcome.kind == "pass", outcome.reason
    assert outcome.reason == "2 of 2 planned models come up and do their work"
    assert (outcome.metrics["planned"], outcome.metrics["passed"]) == (2, 2)
    assert outcome.metrics["small_output_tok_s"] > 50
    assert "large_70b_output_tok_s" in outcome.metrics
    found = msgspec.json.decode((outcome.files / "model-0.json").read_bytes())
    assert {found[name]["bar"] for name in ("identity", "coherence", "code", "tool", "recall")} == {"pass"}


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("```python\ndef runs(text):\n    return [len(text)]\n```", "code: .*runs('aabccc') is [6], not [2, 1, 3]"),
        ("```\nimport sys; sys.exit(0)\n```", "code: "),
        ("I cannot.", "code: .*SyntaxError"),
    ],
)
def test_code_that_does_not_do_it_fails(tmp_path: Path, absent_here: list[str], code: str, problem: str) -> None:
    outcome = _matrix(tmp_path, Several("small", code=code), absent_here)
    assert outcome.kind == "fail"
    pattern = re.escape(problem).replace(r"\.\*", ".*")
    assert re.search(pattern, outcome.reason), outcome.reason


def test_a_server_that_answers_to_any_name_is_found_out(tmp_path: Path, absent_here: list[str]) -> None:
    roster = tmp_path / "roster.yaml"
    roster.write_text(yaml.safe_dump({"entries": [{"model": "wished"}]}), encoding="utf-8")
    outcome = _matrix(tmp_path, Several("other"), absent_here, roster=str(roster))
    assert outcome.kind == "fail"
    assert "wished: identity: the endpoint serves other, not wished" in outcome.reason


def test_a_tool_that_is_not_offered_is_no_failure_and_a_wrong_one_is(tmp_path: Path, absent_here: list[str]) -> None:
    def no_tools(request: Received) -> Script | None:
        return document({"error": {"message": "no tools"}}, status=400) if b'"tools"' in request.body else None

    def wrong_city(request: Received) -> Script | None:
        return tool_stream([call("get_weather", city="Atlantis")]) if b'"tools"' in request.body else None

    assert _matrix(tmp_path, Rules(Several("small"), no_tools), absent_here).kind == "pass"
    outcome = _matrix(tmp_path, Rules(Several("small"), wrong_city), absent_here)
    assert outcome.kind == "fail"
    assert 'tool: called get_weather({"city": "Atlantis"}) where get_weather for ' in outcome.reason


def test_tools_that_are_called_otherwise(tmp_path: Path, absent_here: list[str]) -> None:
    def broken(request: Received) -> Script | None:
        if b'"tools"' not in request.body:
            return None
        delta = {"role": "assistant", "tool_calls": [{"index": 0, "function": {"name": "get_weather", "arguments": "{city"}}]}
        return Script(steps=[Step(0.0, chat_chunk(delta) + chat_chunk({}, finish="tool_calls") + b"data: [DONE]\n\n")])

    outcome = _matrix(tmp_path, Rules(Several("small"), broken), absent_here)
    assert "tool: the arguments are no JSON: '{city'" in outcome.reason


def test_who_calls_itself_otherwise_or_talks_nonsense_fails(tmp_path: Path, absent_here: list[str]) -> None:
    class Renamed(Several):
        """Listed under one name, answering under another, and wrong about France."""

        def __call__(self, request: Received) -> Script:
            if request.path == "/v1/models":
                return document({"data": [{"id": "small"}]})
            self.answers["capital of France"] = "Rome"
            if b"word yes" in request.body:
                event = b'data: {"model":"big","choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}'
                return Script(steps=[Step(0.0, event + b"\n\n")])
            return super().__call__(request)

    outcome = _matrix(tmp_path, Renamed(), absent_here)
    assert outcome.kind == "fail"
    assert "small: identity: what answers calls itself big; coherence: recall: 'Rome'" in outcome.reason


def test_questions_that_are_not_answered_leave_it_open(tmp_path: Path, absent_here: list[str]) -> None:
    def busy(request: Received) -> Script | None:
        return Script(status=503) if b"capital" in request.body else None

    outcome = _matrix(tmp_path, Rules(Several("small"), busy), absent_here)
    assert outcome.kind == "inconclusive"
    assert outcome.reason == "1 of 1 models could not be judged: small: coherence: 1 of 2 questions were answered"


def test_a_rate_below_its_baseline_fails(tmp_path: Path, absent_here: list[str]) -> None:
    model = Several("small", tpot_s=0.005)
    with ScriptServer(model) as server:
        first = run(tmp_path, server.url, "serve-matrix", save_baseline="yes")
        model.tpot_s = 0.02
        slower = run(tmp_path, server.url, "serve-matrix")
        for baseline in (tmp_path / "artifacts" / "serve-matrix").glob("baseline-small-*.json"):
            baseline.write_text("{", encoding="utf-8")
        unread = run(tmp_path, server.url, "serve-matrix")
    if "this machine cannot be shut out" in first.reason:
        absent_here.append("namespaces: code that models write was not run")
        pytest.skip(first.reason)
    assert first.kind == "pass"
    assert slower.kind == "fail"
    assert re.search(r"small: [\d.]+ tok/s, at least [\d.]+ by its baseline", slower.reason)
    assert unread.kind == "pass"
    assert any("cannot be read and is not used" in warning for warning in unread.record.warnings)


def test_a_list_that_is_empty_or_none(tmp_path: Path, absent_here: list[str]) -> None:
    outcome = _matrix(tmp_path, Several(), absent_here)
    assert str(outcome.record.status) == "failed"
    assert "lists no models (its list is empty); name them in a file, roster=FILE" in outcome.reason
    closed = run(tmp_path, "http://127.0.0.1:9", "serve-matrix")
    assert closed.reason.startswith("http://127.0.0.1:9 cannot be reached: no connection: 127.0.0.1: Connection refused")


_SERVE = """
import sys
from nodeproof.bench.testing import Model, ScriptServer
answers = {"two and two": "4", "capital of France": "Paris"}
server = ScriptServer(Model(name="started", ttft_s=0.0, tpot_s=0.002, answers=answers), port=int(sys.argv[1]))
server.start()
server.wait()
"""


def test_servers_are_started_and_ended_and_what_served_is_brought_back(tmp_path: Path, absent_here: list[str]) -> None:
    """The plan counts: one model that works as far as it goes, one whose server ends at once, one that nobody serves."""
    port = free_port()
    mark = tmp_path / "restored"
    roster = {
        "entries": [
            {
                "model": "started",
                "url": f"http://127.0.0.1:{port}",
                "start": [sys.executable, "-c", _SERVE, str(port)],
                "ready_s": 30,
            },
            {
                "model": "broken",
                "url": f"http://127.0.0.1:{port}",
                "start": [sys.executable, "-c", "print('no memory'); exit(3)"],
            },
            {"model": "absent", "url": "http://127.0.0.1:9"},
            {"model": "small"},
        ],
        "restore": ["touch", str(mark)],
    }
    path = tmp_path / "roster.yaml"
    path.write_text(yaml.safe_dump(roster), encoding="utf-8")
    outcome = _matrix(tmp_path, Several("small"), absent_here, roster=str(path))
    assert outcome.kind == "fail"
    assert outcome.reason.startswith("3 of 4 models: started: code: ")
    assert "broken: the server of broken did not come up: ended by itself with exit status 3: no memory" in outcome.reason
    assert "absent: http://127.0.0.1:9 cannot be reached" in outcome.reason
    assert mark.exists()
    found = msgspec.json.decode((outcome.files / "model-0.json").read_bytes())
    assert (found["identity"]["bar"], found["coherence"]["bar"]) == ("pass", "pass")
    with pytest.raises(OSError, match="refused"):
        _connect(port)


def _connect(port: int) -> None:
    import socket  # noqa: PLC0415 - for one look

    socket.create_connection(("127.0.0.1", port), 2).close()


def test_a_port_that_is_taken_is_not_measured(tmp_path: Path, absent_here: list[str]) -> None:
    with ScriptServer(Several("other")) as other:
        entry = {"model": "mine", "url": other.url, "start": ["true"]}
        path = tmp_path / "roster.yaml"
        path.write_text(yaml.safe_dump({"entries": [entry]}), encoding="utf-8")
        outcome = _matrix(tmp_path, Several("small"), absent_here, roster=str(path))
    assert outcome.kind == "fail"
    assert f"mine: port {other.port} has an owner already, " in outcome.reason


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("entries: []", "entries: is empty"),
        ("entries: [{model: a}, {model: a}]", "a model stands there twice"),
        ("entries: [{model: a, boot: x}]", "no roster: Object contains unknown field `boot`"),
        ("entries: [{model: a, url: nowhere}]", "expected an address"),
        ("{", "no roster"),
        ("7", "no roster"),
    ],
)
def test_rosters_that_cannot_be_read(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "roster.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=re.escape(problem)):
        read_roster(str(path))
    with pytest.raises(RunError, match="No such file"):
        read_roster(str(tmp_path / "none"))


def test_the_code_of_an_answer() -> None:
    assert code_of("a\n```python\nx = 1\n```\nb\n```\nlonger = 2\n```") == "longer = 2\n"
    assert code_of("x = 1") == "x = 1"
