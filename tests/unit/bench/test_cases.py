"""Answers of the field: the right result, wherever the bytes were cut."""

import math
from array import array

import pytest

from nodeproof.bench import reactor
from nodeproof.bench.address import Address
from nodeproof.bench.ask import Api, Ask
from nodeproof.bench.client import Client
from nodeproof.bench.exchange import Exchange, Outcome, TokenSource
from nodeproof.bench.response import ResponseReader
from nodeproof.bench.testing import End, Model, Received, Rules, Script, ScriptServer, Step
from support.endpoint import Case, Write, cases, read, summary

_CASES = cases()
_BY_NAME = {case.name: case for case in _CASES}
_OUTCOMES = {
    "46-reasoning-only-length-sse": Outcome.LENGTH,
    "52-tool-calls-only-sse": Outcome.TOOL_CALLS,
    "53-error-mid-stream-sse": Outcome.SERVER_ERROR,
    "56-truncated-abort-sse": Outcome.TRUNCATED,
    "73-http-429-sse": Outcome.STATUS,
    "85-llamacpp-python-interrupted-sse": Outcome.TRUNCATED,
}


def _check(case: Case, exchange: Exchange) -> None:
    right = case.right
    assert exchange.outcome is _OUTCOMES.get(case.name, Outcome.STOP), exchange.detail
    assert exchange.ok == bool(right["success"])
    assert exchange.streamed == (right["success"] != "no-stream" and case.status == 200)
    assert exchange.text == right["text"]
    assert exchange.tokens == right["tokens"]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_the_right_result_at_the_right_chunk(case: Case) -> None:
    exchange = read(case.wire())
    _check(case, exchange)
    if case.right["ttft"] is None:
        assert exchange.ttft_s is None
    else:
        # The stamp is that of the write which completed the first token, exactly.
        assert exchange.ttft_s is not None
        assert math.isclose(exchange.ttft_s, case.right["ttft"], abs_tol=1e-9)


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_every_boundary_gives_the_same(case: Case) -> None:
    raw = b"".join(write.data for write in case.wire())
    whole = summary(read([Write(0.0, raw)]))
    assert summary(read(case.wire())) == whole
    assert summary(read([Write(0.0, raw[at : at + 1]) for at in range(len(raw))])) == whole
    step = 1 if len(case.writes) < len(raw) // 10 else 11  # one that comes byte by byte is nothing but boundaries
    for cut in range(1, len(raw), step):
        assert summary(read([Write(0.0, raw[:cut]), Write(0.0, raw[cut:])])) == whole, cut


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_every_framing_gives_the_same(case: Case) -> None:
    """HTTP chunks of other sizes than the server's writes, down to one byte each."""
    body = b"".join(write.data for write in case.writes)
    expected = summary(read(case.wire()))
    for size in (1, 3, 64, len(body)):
        chunks = [b"%x\r\n%b\r\n" % (len(body[at : at + size]), body[at : at + size]) for at in range(0, len(body), size)]
        raw = case.head + b"".join(chunks) + (b"0\r\n\r\n" if case.clean else b"")
        assert summary(read([Write(0.0, raw)])) == expected


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_pieces_that_are_decoded_together_give_the_same(case: Case) -> None:
    """As a connection does it: the head alone, then what follows in one go, each piece with its own stamp."""
    head, *rest = case.wire()
    for cut in (1, 2, 3, len(rest)):
        exchange = Exchange(100.0)
        exchange.sent_s = 100.0
        reader = ResponseReader(exchange, Api.CHAT, None)
        reader.feed(head.data, 100.0)
        for start in range(0, len(rest), cut):
            pieces = rest[start : start + cut]
            reader.feed_together([piece.data for piece in pieces], array("d", [100.0 + piece.at_s for piece in pieces]))
        if not reader.complete:
            reader.eof(100.0 + rest[-1].at_s, "the connection was closed")
        apart = read(case.wire())
        assert summary(exchange) == summary(apart)
        assert exchange.chunks_s == apart.chunks_s
        assert (exchange.first_token_s, exchange.end_s) == (apart.first_token_s, apart.end_s)


def test_over_a_real_socket_the_stamp_is_that_of_the_write() -> None:
    """Every case from a server on loopback, ten times as fast; TTFT against the server's own record of its writes."""

    def rule(request: Received) -> Script | None:
        case = _BY_NAME[str(request.json()["messages"][0]["content"])]  # type: ignore[index]  # as it was sent
        return Script(
            steps=[Step(write.at_s / 10, write.data) for write in case.writes],
            status=case.status,
            content_type=case.content_type,
            headers=case.headers,
            end=End.CLEAN if case.clean else End.ABORT,
        )

    async def ask_all(url: str) -> dict[str, Exchange]:
        async with Client(Address.of(url), "m") as client:
            return {case.name: await client.send(Ask(prompt=case.name)) for case in _CASES}

    with ScriptServer(Rules(Model(), rule)) as server:
        exchanges = reactor.run(ask_all(server.url))
        for case, served in zip(_CASES, server.served, strict=True):
            exchange = exchanges[case.name]
            _check(case, exchange)
            if case.right["ttft"] is not None:
                token_at_s = case.right["ttft"] / 10
                written = next(
                    stamp for stamp, write in zip(served.writes, case.writes, strict=True) if write.at_s / 10 > token_at_s - 1e-9
                )
                assert exchange.first_token_s >= written
                assert exchange.ttft_s is not None
                assert exchange.ttft_s >= token_at_s


def test_what_each_case_is_about() -> None:
    by = {case.name: read(case.wire()) for case in _CASES}
    assert by["41-usage-missing-sse"].token_source is TokenSource.CHUNKS
    assert by["40-baseline-sse"].token_source is TokenSource.USAGE
    assert by["44-reasoning-content-sse"].reasoning == "Let me think"
    assert by["44-reasoning-content-sse"].usage.reasoning_tokens == 3
    assert by["44-reasoning-content-sse"].first_content_s > by["44-reasoning-content-sse"].first_reasoning_s > 0
    call = by["52-tool-calls-only-sse"].tool_calls[0]
    assert (call.id, call.name, call.arguments) == ("call_1", "get_weather", '{"city": "Paris"}')
    assert by["53-error-mid-stream-sse"].detail == "the server reports an error: EngineCore encountered an issue."
    assert by["60-multi-token-chunks-sse"].one_token_a_chunk is False
    assert by["60-multi-token-chunks-sse"].tpot_s == pytest.approx(0.15 / 6)
    assert by["40-baseline-sse"].one_token_a_chunk is True
    assert list(by["66-continuous-usage-sse"].usage_tokens) == [1, 2, 3, 4, 5, 6, 7]
    early = by["68-role-chunk-early-sse"]
    assert (early.first_role_s, early.first_token_s) == (100.0, 100.2)
    assert by["73-http-429-sse"].retry_after_s == 1.0
    assert by["48-keepalive-comments-sse"].comments == 3
    assert by["85-llamacpp-python-interrupted-sse"].detail.endswith("after 5 chunks, without a finish_reason")
