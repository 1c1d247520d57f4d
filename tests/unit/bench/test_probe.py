"""What an endpoint can do and whether it makes sense, asked before a run; and the client for code that blocks."""

import threading
import time

import msgspec
import pytest

from nodeproof.bench.ask import Api, Ask
from nodeproof.bench.client import Timeouts
from nodeproof.bench.coherence import QUESTIONS, EndpointProbe, accepts
from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.features import count_tokens, discover, list_models
from nodeproof.bench.session import Session
from nodeproof.bench.testing import End, Model, Received, Rules, Script, ScriptServer, Step, chat_chunk, chat_stream
from nodeproof.errors import RunCancelled, RunError, UsageError
from nodeproof.runs.cancel import CancelToken
from nodeproof.runs.endpoint import ModelExpectation, Secret, TargetEndpoint
from nodeproof.runs.ports import CoherenceReport

_KNOWN = {"two and two": "It is 4.", "capital of France": "Paris"}


def _probe(server: ScriptServer, *, model: str = "m", intended_for: ModelExpectation | None = None) -> CoherenceReport:
    return EndpointProbe().probe(TargetEndpoint.new(server.url, model), intended_for, CancelToken())


def _document(value: object, status: int = 200) -> Script:
    return Script(steps=[Step(0.0, msgspec.json.encode(value))], status=status, content_type="application/json", chunked=False)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("4", True),
        ("The answer is 4.", True),
        ("Four!", True),
        ("14", False),
        ("404", False),
        ("fourteen", False),
        ("4_", False),
        ("", False),
    ],
)
def test_an_answer_is_a_whole_word(text: str, *, accepted: bool) -> None:
    assert accepts(("4", "four"), text) is accepted


def test_two_questions_of_different_kinds() -> None:
    assert [known.label for known in QUESTIONS] == ["arithmetic", "recall"]


def test_a_sensible_endpoint_is_left_in_peace() -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, answers=_KNOWN)) as server:
        assert _probe(server) == CoherenceReport("", ("arithmetic: 'It is 4.'", "recall: 'Paris'"))
        body = server.served[1].request.json()
    assert (body["temperature"], body["max_tokens"]) == (0, 96)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_an_answer_that_was_only_thought_counts() -> None:
    def think(request: Received) -> Script | None:
        if b"France" not in request.body:
            return None
        thought = [
            *chat_stream([])[:1],
            chat_chunk({"reasoning": "Paris"}),
        ]
        return Script(steps=[Step(0.0, event) for event in (*thought, *chat_stream(["\n"])[1:])])

    with ScriptServer(Rules(Model(ttft_s=0.0, tpot_s=0.0, answers=_KNOWN), think)) as server:
        assert _probe(server).answers[1] == "recall: 'Paris'"


def test_nonsense_is_told_and_forbids_nothing() -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0)) as server:
        concern = _probe(server).concern
    assert concern.startswith("odd answers, though the run is valid as far as speed goes: arithmetic: 'tok tok")
    assert "recall" in concern
    assert "..." in concern


def test_another_model_outranks_odd_answers_and_another_family_outranks_both() -> None:
    family = ModelExpectation(("qwen",), "numbers of others mean nothing")
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, name="other")) as server:
        assert _probe(server).concern == "m is not served: the numbers will be those of other"
        wrong = _probe(server, intended_for=family).concern
    assert wrong == "other is not a model that this benchmark is meant for: numbers of others mean nothing"


def test_an_endpoint_that_lists_nothing_promises_no_numbers() -> None:
    def no_models(request: Received) -> Script | None:
        return _document({"data": []}) if request.path == "/v1/models" else None

    with ScriptServer(Rules(Model(ttft_s=0.0, tpot_s=0.0, answers=_KNOWN), no_models)) as server:
        assert "will produce no numbers" in _probe(server).concern


def test_a_list_that_cannot_be_read_is_no_concern() -> None:
    def broken(request: Received) -> Script | None:
        return _document({"models": 7}) if request.path == "/v1/models" else None

    with ScriptServer(Rules(Model(ttft_s=0.0, tpot_s=0.0, answers=_KNOWN), broken)) as server:
        report = _probe(server)
    assert report.concern == ""
    assert report.answers[2].startswith("models: not listed (not a list of models")


def test_a_closed_port_is_not_the_model_s_fault() -> None:
    concern = EndpointProbe().probe(TargetEndpoint.local(9, "m"), None, CancelToken()).concern
    assert concern.startswith("the endpoint did not answer the question arithmetic (connect): no connection")


def test_a_server_that_knows_no_template_settings_is_asked_again() -> None:
    def strict(request: Received) -> Script | None:
        return _document({"error": {"message": "unknown field"}}, 422) if b"chat_template_kwargs" in request.body else None

    with ScriptServer(Rules(Model(ttft_s=0.0, tpot_s=0.0, answers=_KNOWN), strict)) as server:
        assert _probe(server).concern == ""


def test_a_cancel_is_heeded() -> None:
    token = CancelToken()
    token.set("enough")
    with pytest.raises(RunCancelled):
        EndpointProbe().probe(TargetEndpoint.local(9, "m"), None, token)


# Features


def _discover(model: Rules | Model, *, api: Api = Api.CHAT, ask_ignore_eos: bool = True) -> dict[str, object]:
    with ScriptServer(model) as server, Session.of(TargetEndpoint.new(server.url, "m")) as session:
        features = discover(session, "m", api, ask_ignore_eos=ask_ignore_eos)
    found: dict[str, object] = msgspec.to_builtins(features)
    return found


def test_what_an_endpoint_can_do() -> None:
    found = _discover(Model(ttft_s=0.01, tpot_s=0.0, tokens=5, role_at_s=0.0))
    assert found["models"] == ["m"]
    assert (found["include_usage"], found["usage_always"], found["streams"]) == (True, False, True)
    assert (found["ignore_eos"], found["tokenize"]) == ("honoured", "prompt")
    assert found["tokens"] == {"words_per_token": 1.0, "overhead": 5, "source": "usage"}
    lead_ms = found["role_chunk_lead_ms"]
    assert isinstance(lead_ms, float)
    assert lead_ms > 5


def test_what_an_endpoint_cannot_do() -> None:
    found = _discover(Model(ttft_s=0.0, tpot_s=0.0, tokens=5, usage="never", tokenize=False, honours_ignore_eos=False))
    assert (found["include_usage"], found["ignore_eos"], found["tokenize"]) == (False, "ignored", "")
    assert found["tokens"] == {"words_per_token": 1.0, "overhead": 0, "source": "estimated"}
    counted = _discover(Model(ttft_s=0.0, tpot_s=0.0, usage="never"), ask_ignore_eos=False)
    assert (counted["ignore_eos"], counted["tokens"]) == (
        "not asked",
        {"words_per_token": 1.0, "overhead": 0, "source": "tokenize"},
    )


def test_an_endpoint_that_refuses_what_it_does_not_know() -> None:
    def strict(request: Received) -> Script | None:
        for word in (b"stream_options", b"ignore_eos"):
            if word in request.body:
                return _document({"error": {"message": f"unknown field {word.decode()}"}}, 422)
        return None

    found = _discover(Rules(Model(ttft_s=0.0, tpot_s=0.0, usage="always"), strict))
    assert (found["stream_options_refused"], found["include_usage"], found["ignore_eos"]) == (True, False, "refused")
    deaf = _discover(Rules(Model(), lambda _: _document({"error": {"message": "no"}}, 500)), ask_ignore_eos=False)
    assert deaf["models_problem"] == "status 500"
    notes = deaf["notes"]
    assert isinstance(notes, list)
    assert "a short question was not answered: status" in notes[0]


def test_a_server_that_serves_one_at_a_time_is_recognised() -> None:
    answer = " ".join(str(number) for number in range(12))
    serial = _discover(Model(ttft_s=0.01, tpot_s=0.003, slots=1, answers={"Count from": answer}), ask_ignore_eos=False)
    assert serial["concurrency"] == "serial"
    parallel = _discover(Model(ttft_s=0.05, tpot_s=0.02, answers={"Count from": answer}), ask_ignore_eos=False)
    assert parallel["concurrency"] == "parallel"
    single = _discover(Model(ttft_s=0.0, tpot_s=0.0, answers={"Count from": "one"}), ask_ignore_eos=False)
    assert single["concurrency"] == "not told"


def test_a_server_that_cuts_what_runs_is_recognised() -> None:
    counted: list[int] = []

    def cut(request: Received) -> Script | None:
        if b"Count from" not in request.body:
            return None
        counted.append(request.number)
        if len(counted) == 4:
            return None
        return Script(steps=[Step(0.05, event) for event in chat_stream(["a"], finish=None)], end=End.CLOSE)

    assert _discover(Rules(Model(ttft_s=0.1, tpot_s=0.0), cut), ask_ignore_eos=False)["concurrency"] == "cuts"


def test_a_role_that_comes_long_before_the_first_token_is_told() -> None:
    found = _discover(Model(ttft_s=0.2, tpot_s=0.0, role_at_s=0.0), ask_ignore_eos=False)
    notes = found["notes"]
    assert isinstance(notes, list)
    assert "ms before the first token; TTFT counts the token" in notes[0]


def test_counts_of_tokens_in_both_forms() -> None:
    def llama(request: Received) -> Script | None:
        if request.path != "/tokenize":
            return None
        content = request.json().get("content")
        return _document({"tokens": str(content).split()} if content else {"error": 1})

    def odd(request: Received) -> Script | None:
        return Script(steps=[Step(0.0, b"[]" if b"a" in request.body else b"{")], content_type="application/json", chunked=False)

    with ScriptServer(Rules(Model(), llama)) as server, Session.of(TargetEndpoint.new(server.url, "m")) as session:
        assert count_tokens(session, "m", "a b c", "content") == 3
        assert count_tokens(session, "m", "a b c", "prompt") is None
    with ScriptServer(Rules(Model(), odd)) as server, Session.of(TargetEndpoint.new(server.url, "m")) as session:
        assert count_tokens(session, "m", "a", "content") is None
        assert count_tokens(session, "m", "b", "content") is None
    with Session.of(TargetEndpoint.local(9, "m")) as session:
        assert count_tokens(session, "m", "a", "content") is None
        assert list_models(session)[0] is None


# The session


def test_many_questions_in_their_order() -> None:
    with ScriptServer(Model(ttft_s=0.02, tpot_s=0.0)) as server, Session.of(TargetEndpoint.new(server.url, "m")) as session:
        done: list[int] = []

        def note(place: int, exchange: Exchange) -> None:
            assert exchange.ok
            done.append(place)

        asks = [Ask(prompt="x", max_tokens=count) for count in (3, 1, 2, 5)]
        exchanges = session.send_all(asks, concurrency=2, on_done=note)
        assert [exchange.tokens for exchange in exchanges] == [3, 1, 2, 5]
        assert sorted(done) == [0, 1, 2, 3]
        assert session.send_all([]) == []
        assert session.send(asks[0]).outcome is Outcome.LENGTH


def test_a_cancel_ends_what_is_under_way_and_all_that_follows() -> None:
    with ScriptServer(Model(ttft_s=30.0)) as server, Session.of(TargetEndpoint.new(server.url, "m")) as session:
        timer = threading.Timer(0.2, session.cancel)
        timer.start()
        begun_s = time.monotonic()
        with pytest.raises(RunCancelled):
            session.send_all([Ask(prompt="x")] * 3, concurrency=3)
        assert time.monotonic() - begun_s < 10
        with pytest.raises(RunCancelled):
            session.send(Ask(prompt="x"))
        timer.join()


def test_a_session_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="expected an address"):
        Session.of(TargetEndpoint.new("nowhere", "m"))
    with pytest.raises(UsageError, match="certificate authorities"):
        Session.of(TargetEndpoint.new("https://127.0.0.1:1", "m", ca_file="/proc/none"), Timeouts())
    with pytest.raises(RunError, match="not open"):
        Session.of(TargetEndpoint.local(9, "m")).send(Ask(prompt="x"))


def test_a_secret_shows_nowhere() -> None:
    target = TargetEndpoint.new("http://127.0.0.1:1", "m", key=Secret("sk-planted"))
    assert "sk-planted" not in repr(target)
    assert target.key.reveal() == "sk-planted"
    assert bool(target.key)
    assert repr(Secret()) == "Secret()"
    with pytest.raises(TypeError):
        msgspec.json.encode(target)
