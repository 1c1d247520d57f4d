"""The client against servers that do what servers do at their worst."""

import asyncio
import contextlib
import datetime as dt
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from nodeproof.bench import reactor
from nodeproof.bench.address import Address
from nodeproof.bench.ask import Api, Ask
from nodeproof.bench.client import Client, Timeouts, tls_context
from nodeproof.bench.exchange import Exchange, Outcome, TokenSource
from nodeproof.bench.testing import End, Model, Received, Rules, Script, ScriptServer, Step, chat_chunk, chat_stream
from nodeproof.errors import UsageError
from support.certificates import self_signed

_QUICK = Timeouts(connect_s=0.3, first_byte_s=0.3, idle_s=0.3, total_s=5.0)


def _serve(script: Callable[[Received], Script | None]) -> ScriptServer:
    return ScriptServer(Rules(Model(), script))


def _ask(url: str, *asks: Ask, timeouts: Timeouts = _QUICK, key: str = "", tls: ssl.SSLContext | None = None) -> list[Exchange]:
    async def main() -> list[Exchange]:
        async with Client(Address.of(url), "m", timeouts=timeouts, key=key, tls=tls) as client:
            return [await client.send(ask) for ask in asks]

    return reactor.run(main())


def _one(script: Script, ask: Ask = Ask(prompt="x"), *, timeouts: Timeouts = _QUICK) -> Exchange:  # noqa: B008 - immutable
    with _serve(lambda _: script) as server:
        return _ask(server.url, ask, timeouts=timeouts)[0]


@contextlib.contextmanager
def _raw(answer: bytes, *, hold: bool = False) -> Iterator[str]:
    """A server that writes ``answer`` to whoever sends anything, then closes, or holds still."""
    listener = socket.create_server(("127.0.0.1", 0))
    kept: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connection.recv(65536)
                connection.sendall(answer)
                if hold:
                    kept.append(connection)
                else:
                    connection.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        for connection in kept:
            connection.close()


_JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def _steps(*pieces: bytes) -> list[Step]:
    return [Step(0.0, piece) for piece in pieces]


@pytest.mark.parametrize(
    ("script", "outcome", "detail"),
    [
        (Script(steps=_steps(b"<html>busy</html>"), content_type="text/html"), Outcome.WRONG_TYPE, "text/html: <html>busy"),
        (Script(steps=_steps(b""), status=302, headers={"Location": "http://other/"}), Outcome.REDIRECT, "302 to http://other/"),
        (Script(steps=_steps(b"x"), status=503, content_type="text/plain"), Outcome.STATUS, "status 503: x"),
        (Script(status=500, chunked=False), Outcome.STATUS, "status 500: no body"),
        (Script(steps=_steps(b"\x1f\x8b"), headers={"Content-Encoding": "gzip"}), Outcome.ENCODED, "gzip"),
        (Script(steps=_steps(b"data: {nonsense\n\n")), Outcome.MALFORMED, "no JSON: b'{nonsense'"),
        (Script(steps=_steps(b"data: [1]\n\n")), Outcome.MALFORMED, "no object"),
        (Script(steps=_steps(*chat_stream(["a"], finish=None))), Outcome.NO_FINISH, "though [DONE]"),
        (Script(steps=_steps(*chat_stream(["a"], finish=None, done=False))), Outcome.NO_FINISH, "without a finish_reason"),
        (Script(steps=_steps(*chat_stream(["a"], finish="abort"))), Outcome.ABORTED, "finish_reason abort"),
        (Script(steps=_steps(*chat_stream(["a"], finish="content_filter"))), Outcome.FILTERED, "content_filter"),
        (Script(steps=_steps(*chat_stream(["a"], finish="whatever"))), Outcome.NO_FINISH, "'whatever' is none that is known"),
        (Script(steps=_steps(*chat_stream([]))), Outcome.EMPTY, "holds nothing"),
        (Script(steps=_steps(*chat_stream(["a"])), end=End.ABORT), Outcome.STOP, ""),
        (Script(steps=_steps(*chat_stream(["a"], done=False)), end=End.CLOSE), Outcome.TRUNCATED, "after 1 chunks"),
        (Script(steps=_steps(*chat_stream(["a"])), until_close=True, chunked=False), Outcome.STOP, ""),
        (Script(steps=_steps(b'data: {"error": "out of memory"}\n\n')), Outcome.SERVER_ERROR, "out of memory"),
        (Script(steps=_steps(b'data: {"object":"error","message":"bad"}\n\n')), Outcome.SERVER_ERROR, "bad"),
        (Script(steps=_steps(b'event: error\ndata: {"x":1}\n\n')), Outcome.SERVER_ERROR, '{"x":1}'),
        (Script(steps=_steps(b'{"error":{"message":"no"}}'), content_type="application/json"), Outcome.SERVER_ERROR, "no"),
        (Script(steps=_steps(b""), content_type="application/json", chunked=False), Outcome.MALFORMED, "no JSON"),
        (Script(content_type="text/plain", chunked=False), Outcome.EMPTY, "empty body"),
    ],
)
def test_answers_that_are_none(script: Script, outcome: Outcome, detail: str) -> None:
    exchange = _one(script)
    assert exchange.outcome is outcome, exchange.detail
    assert detail in exchange.detail
    assert exchange.ok is (outcome is Outcome.STOP)


def test_too_many_requests_say_when_to_come_again() -> None:
    when = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=90)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    for value, low, high in (("7", 7.0, 7.0), (when, 80.0, 91.0)):
        exchange = _one(Script(steps=_steps(b"{}"), status=429, headers={"Retry-After": value}))
        assert exchange.outcome is Outcome.STATUS
        assert exchange.retry_after_s is not None
        assert low <= exchange.retry_after_s <= high
    assert _one(Script(status=429, headers={"Retry-After": "soon"})).retry_after_s is None


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        (Script(head_at_s=30.0, end=End.HANG), Outcome.FIRST_BYTE_TIMEOUT),
        (Script(head_at_s=0.0, end=End.HANG), Outcome.IDLE_TIMEOUT),
        (Script(steps=_steps(*chat_stream(["a"], finish=None, done=False)), end=End.HANG), Outcome.IDLE_TIMEOUT),
    ],
)
def test_a_server_that_hangs_is_given_up_at_its_stage(script: Script, outcome: Outcome) -> None:
    exchange = _one(script)
    assert exchange.outcome is outcome
    assert 0.25 < exchange.end_s - exchange.sent_s < 3.0


def test_a_server_that_drips_is_given_up_in_the_end() -> None:
    steps = [Step(n * 0.05, b": ping\n\n") for n in range(400)]
    exchange = _one(Script(steps=steps), timeouts=Timeouts(1.0, 1.0, 1.0, 0.4))
    assert exchange.outcome is Outcome.TOTAL_TIMEOUT
    assert "no end within 0.4 s" in exchange.detail


def test_a_stream_that_was_ended_by_its_marker_need_not_be_closed() -> None:
    exchange = _one(Script(steps=_steps(*chat_stream(["a", "b"])), end=End.HANG), timeouts=Timeouts(1.0, 1.0, 30.0, 30.0))
    assert exchange.outcome is Outcome.STOP
    assert exchange.tokens == 2
    assert _odd(exchange) == ["the body was not ended as HTTP wants it"]
    assert exchange.e2e_s < 1.0  # until the last chunk, not until we lost patience


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    exchange = _ask(f"http://127.0.0.1:{port}", Ask(prompt="x"))[0]
    assert exchange.outcome is Outcome.CONNECT
    assert exchange.detail == "no connection: 127.0.0.1: Connection refused"


def test_a_name_that_does_not_exist() -> None:
    exchange = _ask("http://no-such-host.invalid:80", Ask(prompt="x"), timeouts=Timeouts(connect_s=5.0))[0]
    assert exchange.outcome is Outcome.DNS
    assert exchange.detail.startswith("no-such-host.invalid")


def test_a_server_that_accepts_nobody() -> None:
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):  # fill the backlog: the next one waits for an answer that does not come
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        exchange = _ask(f"http://127.0.0.1:{listener.getsockname()[1]}", Ask(prompt="x"))[0]
    assert exchange.outcome is Outcome.CONNECT_TIMEOUT
    assert exchange.detail == "no connection within 0.3 s: 127.0.0.1 did not answer"


@pytest.mark.parametrize(
    ("answer", "outcome", "detail"),
    [
        (b"", Outcome.RESET, "before the answer began"),
        (b"HTTP/1.1 200 OK\r\nContent-", Outcome.TRUNCATED, "within the head"),
        (b"220 mail.example ESMTP\r\n", Outcome.MALFORMED, "no HTTP"),
        (_HEAD + b"zz\r\n", Outcome.MALFORMED, "no HTTP"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + _HEAD + b"0\r\n\r\n", Outcome.NO_FINISH, "without a finish_reason"),
        (_JSON_HEAD + b"{", Outcome.TRUNCATED, "within the answer"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 300_000, Outcome.OVERSIZE, "head of the response"),
    ],
)
def test_bytes_that_are_no_answer(answer: bytes, outcome: Outcome, detail: str) -> None:
    with _raw(answer) as url:
        exchange = _ask(url, Ask(prompt="x"))[0]
    assert exchange.outcome is outcome, exchange.detail
    assert detail in exchange.detail


def test_numbers_that_json_does_not_have() -> None:
    odd = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"x":NaN},"finish_reason":null}]}\n\n'
    exchange = _one(Script(steps=_steps(odd, *chat_stream(["b"], usage=False))))
    assert (exchange.outcome, exchange.text, exchange.anomalies) == (Outcome.STOP, "ab", ["JSON of an unusual shape"])


def test_an_event_of_ten_mebibytes_arrives_whole() -> None:
    text = "x" * (10 << 20)
    exchange = _one(Script(steps=_steps(*chat_stream([text]))), timeouts=Timeouts(5.0, 5.0, 5.0, 20.0))
    assert exchange.outcome is Outcome.STOP
    assert exchange.text == text


@pytest.mark.parametrize(
    ("usage", "max_tokens", "tokens", "source", "anomaly"),
    [
        ({"completion_tokens": 900}, 16, 2, TokenSource.CHUNKS, "usage says 900 completion tokens: not believed"),
        ({"completion_tokens": 0}, None, 2, TokenSource.CHUNKS, "usage says 0 completion tokens: not believed"),
        ({"completion_tokens": -3}, None, 2, TokenSource.CHUNKS, ""),
        ({"completion_tokens": "many"}, None, 2, TokenSource.CHUNKS, ""),
        ({"completion_tokens": 1}, None, 1, TokenSource.USAGE, "fewer tokens in usage than chunks that carried any"),
        ({"completion_tokens": 5}, 16, 5, TokenSource.USAGE, ""),
    ],
)
def test_a_server_that_lies_about_usage(
    usage: dict[str, object], max_tokens: int | None, tokens: int, source: TokenSource, anomaly: str
) -> None:
    events = [chat_chunk({"content": "a"}), chat_chunk({"content": "b"}), chat_chunk({}, finish="stop", usage=usage)]
    exchange = _one(Script(steps=_steps(*events, b"data: [DONE]\n\n")), Ask(prompt="x", max_tokens=max_tokens))
    assert (exchange.tokens, exchange.token_source) == (tokens, source)
    assert _odd(exchange) == ([anomaly] if anomaly else [])


def test_usage_is_found_wherever_it_stands() -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 1}}
    counts = {"prompt_tokens": 4, "completion_tokens": 1, **details}
    choice = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": counts}
    for last in (chat_chunk({}, finish="stop", x_groq={"usage": counts}), chat_chunk({}, choices=[choice])):
        exchange = _one(Script(steps=_steps(chat_chunk({"content": "a"}), last)))
        usage = exchange.usage
        assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_prompt_tokens, usage.reasoning_tokens) == (4, 1, 3, 1)
    timed = chat_chunk({}, finish="stop", timings={"prompt_ms": 12.5, "predicted_ms": 30.0, "predicted_per_second": 33.3})
    exchange = _one(Script(steps=_steps(chat_chunk({"content": "a"}), timed)))
    assert (exchange.server.ttft_ms, exchange.server.decode_ms, exchange.server.tokens_per_s) == (12.5, 30.0, 33.3)
    told = {"completion_tokens": 1, "time_to_first_token_ms": 9, "decode_time_ms": 8, "total_time_ms": 17, "response_token/s": 50}
    exchange = _one(Script(steps=_steps(chat_chunk({"content": "a"}), chat_chunk({}, finish="stop", usage=told))))
    assert (exchange.server.ttft_ms, exchange.server.decode_ms, exchange.server.total_ms) == (9.0, 8.0, 17.0)


def test_parts_and_other_shapes_are_taken_for_what_they_can_be() -> None:
    parts = chat_chunk({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})
    tool = chat_chunk({"tool_calls": [{"index": 0, "id": 7, "function": {"name": "f", "arguments": {"x": 1}}}]})
    numbered = chat_chunk({}, finish="tool_calls", usage=[], model=3)
    exchange = _one(Script(steps=_steps(parts, tool, numbered)))
    assert (exchange.outcome, exchange.text) == (Outcome.TOOL_CALLS, "ab")
    assert (exchange.tool_calls[0].id, exchange.tool_calls[0].arguments) == ("7", '{"x": 1}')
    several = chat_chunk({}, choices=[{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"refusal": "yes"}}])
    exchange = _one(Script(steps=_steps(several, chat_chunk({}, finish="stop"))))
    assert (exchange.text, exchange.anomalies) == ("yes", ["several choices"])


def _odd(exchange: Exchange) -> list[str]:
    """What was odd about the server; pieces that a busy machine put together say nothing of it."""
    return [one for one in exchange.anomalies if not one.startswith("chunks of HTTP that were not written")]


def test_a_server_that_worked_on_a_request_and_hung_up_has_failed() -> None:
    def answer(received: Received) -> Script:
        if received.number == 0:
            return Script(steps=_steps(*chat_stream(["a"])))
        time.sleep(0.3)
        return Script(end=End.ABORT)

    with _serve(answer) as server:
        first, second = _ask(server.url, Ask(prompt="x"), Ask(prompt="x"))
        assert (first.text, second.reused, second.outcome, second.anomalies) == ("a", True, Outcome.RESET, [])
        assert server.connections == 1


def test_connections_are_kept_and_a_closed_one_is_no_fault_of_the_server() -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0)) as server:
        asks = [Ask(prompt="x", max_tokens=2), Ask(prompt="x", max_tokens=2, stream=False), Ask(prompt="x", max_tokens=2)]
        first, second, third = _ask(server.url, *asks)
        assert [first.reused, second.reused, third.reused] == [False, True, True]
        assert server.connections == 1
        assert (second.streamed, second.text, second.tokens, second.ttft_s) == (False, " tok tok", 2, None)

    answers = iter([Script(steps=_steps(*chat_stream(["a"]))), Script(end=End.ABORT), Script(steps=_steps(*chat_stream(["b"])))])
    with _serve(lambda _: next(answers)) as server:
        first, second = _ask(server.url, Ask(prompt="x"), Ask(prompt="x"))
        assert (first.text, second.text) == ("a", "b")
        assert _odd(second) == ["a kept connection had been closed"]


def test_a_thousand_at_once_need_no_permission() -> None:
    async def main(url: str) -> tuple[set[Outcome], int]:
        async with Client(Address.of(url), "m") as client:
            exchanges = await asyncio.gather(*(client.send(Ask(prompt="x", max_tokens=1)) for _ in range(400)))
            return {exchange.outcome for exchange in exchanges}, client.connections_made

    with ScriptServer(Model(ttft_s=0.5)) as server:
        assert reactor.run(main(server.url)) == ({Outcome.LENGTH}, 400)


def test_a_long_question_goes_out_in_pieces() -> None:
    with ScriptServer(Model(ttft_s=0.0)) as server:
        text = "word " * 2_000_000
        exchange = _ask(server.url, Ask(prompt=text, max_tokens=1), timeouts=Timeouts(5.0, 10.0, 10.0, 20.0))[0]
        assert exchange.usage.prompt_tokens == 2_000_004


def test_cancelling_ends_the_exchange_and_the_connection() -> None:
    async def main(url: str) -> tuple[bool, int]:
        async with Client(Address.of(url), "m") as client:
            task = asyncio.ensure_future(client.send(Ask(prompt="x")))
            await asyncio.sleep(0.2)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            return task.cancelled(), client.in_flight

    with ScriptServer(Model(ttft_s=30.0)) as server:
        assert reactor.run(main(server.url)) == (True, 0)
        served = server.served[0]
        _eventually(lambda: served.disconnected)


def test_closing_the_client_ends_what_is_under_way() -> None:
    async def main(url: str) -> Exchange:
        client = Client(Address.of(url), "m")
        async with client:
            task = asyncio.ensure_future(client.send(Ask(prompt="x")))
            await asyncio.sleep(0.1)
        return await task

    with ScriptServer(Model(ttft_s=30.0)) as server:
        assert reactor.run(main(server.url)).outcome is Outcome.CANCELLED


def _eventually(holds: Callable[[], bool]) -> None:
    deadline = threading.Event()
    for _ in range(200):
        if holds():
            return
        deadline.wait(0.02)
    raise AssertionError("it did not come to that")


def test_the_key_is_sent_and_nowhere_else() -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0)) as server:
        _ask(server.url, Ask(prompt="x", max_tokens=1), key="sk-planted")
        assert server.served[0].request.headers["authorization"] == "Bearer sk-planted"
    for key in ("sk\nX: y", "sk planted", "schlüssel"):
        with pytest.raises(UsageError, match="is it the right file") as caught:
            Client(Address.of("http://127.0.0.1:1"), "m", key=key)
        assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("127.0.0.1:8000", "expected an address"),
        ("ftp://127.0.0.1", "expected an address"),
        ("http://user:sk-planted@host", "do not belong into an address"),
        ("http://host/?q=1", "ends before"),
        ("http://host:99999", "cannot be read"),
        ("http://[::1", "cannot be read"),
        ("http://ho st", "blanks"),
        ("http://", "expected an address"),
    ],
)
def test_addresses_of_no_use(url: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as caught:
        Address.of(url)
    assert "sk-planted" not in str(caught.value)


def test_addresses() -> None:
    assert Address.of("https://host/openai/v1/") == Address("https", "host", 443, "/openai")
    assert Address.of("http://[::1]:8000").host_field == "[::1]:8000"
    assert Address.of("http://host").host_field == "host"
    assert Address.of("http://localhost").is_loopback
    assert Address.of("http://127.3.2.1:1").is_loopback
    assert not Address.of("http://example.org").is_loopback


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that no authority has signed, with its key, in one file."""
    built, private = self_signed("127.0.0.1")
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(private + built)
    return path


def _server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_https_with_an_authority_that_is_trusted(certificate: Path) -> None:
    with ScriptServer(Model(ttft_s=0.01, tpot_s=0.0), tls=_server_tls(certificate)) as server:
        asks = [Ask(prompt="word " * 300_000, max_tokens=40), Ask(prompt="x", max_tokens=3)]
        first, second = _ask(server.url, *asks, tls=tls_context(str(certificate)), timeouts=Timeouts(5.0, 10.0, 10.0, 20.0))
        assert (first.outcome, first.tokens, first.usage.prompt_tokens) == (Outcome.LENGTH, 40, 300_004)
        assert (second.tokens, second.reused) == (3, True)


def test_a_certificate_that_nobody_vouches_for(certificate: Path) -> None:
    with ScriptServer(Model(), tls=_server_tls(certificate)) as server:
        exchange = _ask(server.url, Ask(prompt="x"), timeouts=Timeouts(5.0))[0]
    assert exchange.outcome is Outcome.TLS
    assert "self-signed certificate" in exchange.detail


def test_a_server_that_speaks_no_tls() -> None:
    with ScriptServer(Model()) as server:
        exchange = _ask(server.url.replace("http", "https"), Ask(prompt="x"), timeouts=Timeouts(2.0))[0]
    assert exchange.outcome in {Outcome.TLS, Outcome.CONNECT}


def test_authorities_of_no_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="certificate authorities"):
        tls_context(str(tmp_path / "none.pem"))


# The other interfaces


def test_completions() -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0)) as server:
        ask = Ask(api=Api.COMPLETIONS, prompt="x", max_tokens=3)
        first, second = _ask(server.url, ask, Ask(api=Api.COMPLETIONS, prompt="x", max_tokens=3, stream=False))
        assert (first.outcome, first.text, first.tokens) == (Outcome.LENGTH, " tok tok tok", 3)
        assert (second.outcome, second.text, second.streamed) == (Outcome.LENGTH, " tok tok tok", False)


def _event(kind: str, **fields: object) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode({"type": kind, **fields}) + b"\n\n"


def _incomplete(reason: str) -> bytes:
    return _event("response.incomplete", response={"status": "incomplete", "incomplete_details": {"reason": reason}})


_USAGE = {"input_tokens": 5, "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 1}}


@pytest.mark.parametrize(
    ("events", "outcome", "text", "chunks"),
    [
        (
            [
                _event("response.created", response={"status": "in_progress"}),
                _event("response.reasoning_text.delta", delta="hm"),
                _event("response.output_text.delta", delta="a"),
                _event("response.output_text.delta", delta="b"),
                _event("response.completed", response={"status": "completed", "model": "m", "usage": _USAGE}),
            ],
            Outcome.STOP,
            "ab",
            3,
        ),
        (
            [
                _event("response.output_text.delta", delta="a"),
                _incomplete("max_output_tokens"),
            ],
            Outcome.LENGTH,
            "a",
            1,
        ),
        (
            [
                _event("response.output_text.delta", delta="a"),
                _incomplete("content_filter"),
            ],
            Outcome.FILTERED,
            "a",
            1,
        ),
        (
            [_event("response.failed", response={"status": "failed", "error": {"message": "gone"}})],
            Outcome.SERVER_ERROR,
            "",
            0,
        ),
        ([_event("error", message="gone")], Outcome.SERVER_ERROR, "", 0),
        ([_event("response.output_text.delta", delta="a")], Outcome.NO_FINISH, "a", 1),
        ([_event("response.output_text.delta", delta="a"), b"data: [DONE]\n\n"], Outcome.NO_FINISH, "a", 1),
        (
            [
                _event("response.output_item.added", item={"type": "function_call", "id": "i", "call_id": "c", "name": "f"}),
                _event("response.function_call_arguments.delta", item_id="i", delta="{}"),
                _event("response.completed", response={"status": "completed"}),
            ],
            Outcome.TOOL_CALLS,
            "",
            1,
        ),
        ([_event("response.completed", response={"status": "cancelled"})], Outcome.ABORTED, "", 0),
    ],
)
def test_responses_as_a_stream(events: list[bytes], outcome: Outcome, text: str, chunks: int) -> None:
    exchange = _one(Script(steps=_steps(*events)), Ask(api=Api.RESPONSES, prompt="x", max_tokens=8))
    assert (exchange.outcome, exchange.text, len(exchange.chunks_s)) == (outcome, text, chunks), exchange.detail
    if chunks == 3:
        assert exchange.tokens == 3
        assert exchange.usage.reasoning_tokens == 1
        assert exchange.reasoning == "hm"
        assert exchange.first_reasoning_s <= exchange.first_content_s
    if outcome is Outcome.TOOL_CALLS:
        call = exchange.tool_calls[0]
        assert (call.id, call.name, call.arguments) == ("c", "f", "{}")


def test_responses_in_one_body() -> None:
    output = [
        {"type": "reasoning", "summary": [{"text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "ab"}]},
        {"type": "function_call", "id": "i", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    body = msgspec.json.encode({"status": "completed", "model": "m", "output": output, "usage": _USAGE})
    script = Script(steps=_steps(body), content_type="application/json", chunked=False)
    with _serve(lambda _: script) as server:
        exchange = _ask(server.url, Ask(api=Api.RESPONSES, prompt="x", max_tokens=8, stream=False))[0]
        sent = server.served[0].request.json()
    assert (exchange.outcome, exchange.text, exchange.reasoning, exchange.tokens) == (Outcome.STOP, "ab", "hm", 3)
    assert sent == {"model": "m", "input": [{"role": "user", "content": "x"}], "stream": False, "max_output_tokens": 8}


def test_what_is_sent() -> None:
    ask = Ask(messages=({"role": "system", "content": "s"},), max_tokens=4, extra={"temperature": 0, "max_tokens": 5})
    assert msgspec.json.decode(ask.body("m")) == {
        "model": "m",
        "messages": [{"role": "system", "content": "s"}],
        "stream": True,
        "max_tokens": 5,
        "stream_options": {"include_usage": True},
        "temperature": 0,
    }


def test_a_loop_without_a_hot_selector_is_refused() -> None:
    async def main() -> None:
        async with Client(Address.of("http://127.0.0.1:1"), "m"):
            pass

    with pytest.raises(RuntimeError, match="no hot selector"):
        asyncio.run(main())


def test_small_requests_beside_the_measured_ones() -> None:
    async def main(url: str) -> list[tuple[int, bytes]]:
        async with Client(Address.of(url), "m", timeouts=_QUICK) as client:
            count = await client.post_json("/tokenize", b'{"prompt":"a b"}')
            return [await client.get("/v1/models"), await client.get("/nowhere"), count]

    with ScriptServer(Model()) as server:
        models, nowhere, tokens = reactor.run(main(server.url))
    assert models[0] == 200
    assert b'"id":"m"' in models[1]
    assert nowhere[0] == 404
    assert tokens == (200, b'{"count":2,"tokens":[0,1]}')
    status, reason = reactor.run(main("http://127.0.0.1:9"))[0]
    assert status == 0
    assert b"no connection" in reason
