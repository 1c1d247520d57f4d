"""What is found out before the first cell: fields, and prompts of a true length."""

import msgspec
import pytest

from nodeproof.bench.client import Timeouts
from nodeproof.bench.features import Features, Tokens
from nodeproof.bench.session import Session
from nodeproof.bench.speed.cells import Shape, plan_of
from nodeproof.bench.speed.probing import Prepared, accepted_fields, calibrated, limits_of
from nodeproof.bench.testing import Model, Received, Rules, Script, ScriptServer
from nodeproof.bench.testing.model import document
from nodeproof.errors import RunError
from nodeproof.runs.endpoint import TargetEndpoint
from support.bench_runs import LoggedHandle

_LIMITS = Timeouts(5.0, 5.0, 5.0, 5.0)
_WANTED = {"temperature": 0, "seed": 0, "reasoning_effort": "none"}


class _Syllables(Model):
    """Counts three tokens a word, and twenty for its template."""

    def __call__(self, request: Received) -> Script:
        script = super().__call__(request)
        if request.method == "GET":
            return script
        fields = request.json()
        messages = fields.get("messages")
        assert isinstance(messages, list)
        tokens = 20 + 3 * len(str(messages[0]["content"]).split())
        usage = {"prompt_tokens": tokens, "completion_tokens": 1}
        choice = {"index": 0, "message": {"content": "x"}, "finish_reason": "length"}
        return document({"choices": [choice], "usage": usage})


def _refusing(*names: bytes, status: int = 422) -> Rules:
    def refuse(request: Received) -> Script | None:
        for name in names:
            if name in request.body:
                return document({"error": {"message": f"{name.decode()} is unknown"}}, status=status)
        return None

    return Rules(Model(ttft_s=0.0, tpot_s=0.0), refuse)


def _accepted(server: ScriptServer) -> dict[str, object]:
    with Session.of(TargetEndpoint.new(server.url, "m"), _LIMITS) as session:
        return accepted_fields(session, _WANTED, server.url)


def test_fields_that_are_refused_are_left_out_and_no_others() -> None:
    with ScriptServer(_refusing()) as server:
        assert _accepted(server) == _WANTED
        assert len(server.served) == 1
    with ScriptServer(_refusing(b"reasoning_effort")) as server:
        assert _accepted(server) == {"temperature": 0, "seed": 0}
    with ScriptServer(_refusing(b"reasoning_effort", b"seed", status=400)) as server:
        assert _accepted(server) == {"temperature": 0}
    with ScriptServer(_refusing(b"stream_options")) as server:
        assert _accepted(server) == _WANTED


@pytest.mark.parametrize(
    ("names", "status", "reason"),
    [
        ((b"model",), 422, "model is unknown"),
        ((b"model",), 500, "status 500"),
        ((b"temperature",), 400, "temperature is unknown"),
    ],
)
def test_an_endpoint_that_answers_nothing_ends_it(names: tuple[bytes, ...], status: int, reason: str) -> None:
    with ScriptServer(_refusing(*names, status=status)) as server, pytest.raises(RunError, match=reason):
        _accepted(server)


def test_a_prompt_is_as_long_as_was_asked_for_by_the_server_s_own_count() -> None:
    features = Features(tokens=Tokens(1 / 3, 20, "usage"))
    with ScriptServer(_Syllables()) as server:
        handle = LoggedHandle()
        target = TargetEndpoint.new(server.url, "m")
        plan = plan_of(target, _LIMITS, Prepared(features, {}), Shape(320, 8, distinct=1, task="Count from one to nine."))
        prompts = calibrated(handle, target, _LIMITS, features, plan, 320)
        # 20 for the template, 3 each for the tag, five words of the task and the filler: 20 + 3 * (1 + 5 + 94) = 320.
        assert prompts.words == 94
        assert all(b'"000000.0 ' in one.request.body for one in server.served)  # counted as it will be asked, tag and all
        assert handle.warnings == []
        short = calibrated(handle, target, _LIMITS, features, plan, 30)
    assert short.words >= 1
    assert handle.warnings == ["prompts of 30 tokens cannot be made: with template and task they hold 41"]


def test_where_nothing_is_counted_words_stand_for_tokens_and_a_warning_says_so() -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, usage="never", tokenize=False)) as server:
        handle = LoggedHandle()
        target = TargetEndpoint.new(server.url, "m")
        plan = plan_of(target, _LIMITS, Prepared(Features(), {}), Shape(100, 8, task="Count up."))
        prompts = calibrated(handle, target, _LIMITS, Features(), plan, 100)
    assert prompts.words == 98
    assert handle.warnings == ["prompts of 100 tokens: the endpoint does not count them; they hold about as many words"]


def test_a_server_that_only_has_tokenize_counts_by_it() -> None:
    features = Features(tokenize="prompt")
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, usage="never")) as server:
        handle = LoggedHandle()
        target = TargetEndpoint.new(server.url, "m")
        plan = plan_of(target, _LIMITS, Prepared(features, {}), Shape(100, 8, task="Count up."))
        assert calibrated(handle, target, _LIMITS, features, plan, 100).words == 97
    assert handle.warnings == []


def test_limits_and_the_plan_of_a_cell() -> None:
    assert limits_of(300) == Timeouts(10.0, 300.0, 300.0, 300.0)
    assert limits_of(5).connect_s == 5.0
    target = TargetEndpoint.new("http://127.0.0.1:9", "m")
    warm = plan_of(target, limits_of(10), Prepared(Features(), {"seed": 0}), Shape(64, 8, 4, counted=12, warmup=4, distinct=4))
    assert (warm.requests, warm.warmup_requests, warm.concurrency, warm.prompts.nonce) == (16, 4, 4, "")
    assert warm.duration_s == 50.0
    cold = plan_of(target, limits_of(10), Prepared(Features(stream_options_refused=True), {}), Shape(64, 8))
    assert cold.prompts.nonce != plan_of(target, limits_of(10), Prepared(Features(), {}), Shape(64, 8)).prompts.nonce
    assert (cold.include_usage, warm.include_usage) == (False, True)
    assert msgspec.json.decode(msgspec.json.encode(warm), type=type(warm)) == warm
