"""Clients that misbehave, against servers that bear it, break, forget to close, or cannot be disturbed."""

import os
import socket
import ssl
from pathlib import Path

import pytest

from nodeproof.bench.benchmarks import DESCRIPTORS
from nodeproof.bench.chaos.malformed import MALFORMED
from nodeproof.bench.testing import Careful, End, Leaky, Model, Received, Rules, Script, ScriptServer, Served, Step
from nodeproof.errors import ParamError
from nodeproof.host.server_sight import ServerSight, half_closed
from nodeproof.runs.params import ParamValues
from support.bench_course import Outcome, run, serving
from support.certificates import self_signed

_QUICK = {
    "connections": "4",
    "slow_reader_s": "0.3",
    "oversize_kib": "2048",
    "answer_s": "1",
    "max_recovery_s": "3",
    "long_tokens": "200",
}


def _chaos(tmp_path: Path, url: str, **params: str) -> Outcome:
    return run(tmp_path, url, "chaos", **{**_QUICK, **params})


@pytest.mark.timeout(60)
def test_a_server_that_bears_it_passes(tmp_path: Path) -> None:
    with serving("--careful", "--ttft-ms", "20", "--tpot-ms", "10") as url:
        outcome = _chaos(tmp_path, url)
    assert outcome.kind == "pass", outcome.reason
    assert outcome.reason.endswith("after 5 kinds of faults, limit 3 s")
    metrics = outcome.metrics
    assert (metrics["disconnects_done"], metrics["cancel_storm_done"]) == (4, 12)
    assert (metrics["malformed_done"], metrics["slow_reader_done"], metrics["oversize_done"]) == (len(MALFORMED), 4, 1)
    assert metrics["half_closed_connections"] == 0
    assert metrics["descriptor_growth"] <= 16
    assert 0 < metrics["disconnects_recovery_s"] < 3
    table = outcome.record.frame.table
    assert table is not None
    answers = {row[0].text: row[3].text for row in table.rows}
    assert answers["oversize"] == "1 x 413"
    assert "6 x 400" in answers["malformed"]
    assert "3 x 422" in answers["malformed"]


@pytest.mark.timeout(60)
def test_clients_leave_no_connection_open(tmp_path: Path) -> None:
    with ScriptServer(Careful(Model(ttft_s=0.02, tpot_s=0.01))) as server:
        before = len(os.listdir("/proc/self/fd"))
        outcome = _chaos(tmp_path, server.url, max_descriptor_growth="4")
        assert outcome.kind == "pass", outcome.reason
        assert len(os.listdir("/proc/self/fd")) <= before + 2
        assert half_closed(server.port) == 0
    left = [served for served in server.served if served.disconnected]
    assert len(left) >= 4 + 4  # streams left in their middle, and those that nobody read


@pytest.mark.timeout(60)
def test_the_same_through_tls_with_the_key(tmp_path: Path) -> None:
    certificate, key = self_signed("sound.example")
    path = tmp_path / "server.pem"
    path.write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    with ScriptServer(Careful(Model(ttft_s=0.02, tpot_s=0.01)), tls=context) as server:
        outcome = _chaos(tmp_path, server.url, ca_file=str(path), answer_s="3")
        keys = {served.request.headers.get("authorization") for served in server.served}
    assert outcome.kind == "pass", outcome.reason
    assert outcome.metrics["disconnects_done"] == 4
    assert outcome.metrics["malformed_done"] == len(MALFORMED) - 3  # three need a connection that is closed by halves
    assert keys == {"Bearer sk-planted"}
    for file in outcome.files.iterdir():
        assert b"sk-planted" not in file.read_bytes()


@pytest.mark.timeout(60)
def test_clients_that_do_not_read_and_hold_the_others_up_fail(tmp_path: Path) -> None:
    class Held(Model):
        """As long as four long answers are under way, nobody else is served in time."""

        long = 0

        def __call__(self, request: Received) -> Script:
            if b"thousand" in request.body:
                self.long += 1
                return super().__call__(request)
            self.ttft_s = 1.5 if self.long >= 4 else 0.01
            return super().__call__(request)

        def ended(self, served: Served) -> None:
            self.long -= b"thousand" in served.request.body

    with ScriptServer(Held(ttft_s=0.01, tpot_s=0.02)) as server:
        outcome = _chaos(tmp_path, server.url, faults="slow-reader", slow_reader_s="3.4", long_tokens="400")
    assert outcome.kind == "fail", outcome.reason
    assert outcome.reason.startswith("slow-reader: beside clients that do not read, ")
    assert "others were not served within" in outcome.reason


@pytest.mark.timeout(60)
def test_an_error_of_the_server_for_a_mistake_of_the_client_fails(tmp_path: Path) -> None:
    def breaks(request: Received) -> Script | None:
        return Script(status=500) if request.body.startswith(b"this is no JSON") else None

    with ScriptServer(Rules(Careful(Model(ttft_s=0.01, tpot_s=0.01)), breaks)) as server:
        outcome = _chaos(tmp_path, server.url, faults="malformed")
        allowed = _chaos(tmp_path, server.url, faults="malformed", allow_5xx="yes")
    assert outcome.kind == "fail"
    assert outcome.reason == ("malformed: no-json: status 500 for a mistake of the client, which is none of the server's (4xx)")
    assert allowed.kind == "pass", allowed.reason
    assert any("no-json: status 500" in warning for warning in allowed.record.warnings)


@pytest.mark.timeout(60)
def test_silence_fails(tmp_path: Path) -> None:
    def silent(request: Received) -> Script | None:
        return Script(end=End.HANG) if request.method == "DELETE" else None

    with ScriptServer(Rules(Careful(Model(ttft_s=0.01, tpot_s=0.01)), silent)) as server:
        outcome = _chaos(tmp_path, server.url, faults="malformed", answer_s="0.3")
    assert outcome.kind == "fail"
    assert outcome.reason == "malformed: wrong-method: neither an answer nor an end within 0.3 s"


@pytest.mark.timeout(60)
def test_a_server_that_does_not_come_back_fails(tmp_path: Path) -> None:
    class Fragile(Model):
        """Answers nobody any more once a client has left a stream."""

        broken = False

        def __call__(self, request: Received) -> Script:
            return Script(end=End.HANG) if self.broken else super().__call__(request)

        def ended(self, served: object) -> None:
            self.broken |= bool(getattr(served, "disconnected", False))

    with ScriptServer(Fragile(ttft_s=0.01, tpot_s=0.01)) as server:
        outcome = _chaos(tmp_path, server.url, max_recovery_s="0.5")
    assert outcome.kind == "fail"
    assert outcome.reason.startswith("disconnects: no healthy answer within 0.5 s (")
    assert "disconnects_recovery_s" not in outcome.metrics
    assert outcome.metrics["faults"] == 1


@pytest.mark.timeout(60)
def test_work_for_nobody_shows_as_a_long_recovery(tmp_path: Path) -> None:
    """A server that goes on generating for clients that left keeps the others waiting."""

    class Stubborn(Model):
        def __call__(self, request: Received) -> Script:
            script = super().__call__(request)
            if b"thousand" in request.body:
                self.ttft_s = 0.8
            return script

    with ScriptServer(Stubborn(ttft_s=0.01, tpot_s=0.01)) as server:
        outcome = _chaos(tmp_path, server.url, faults="cancel-storm", max_recovery_s="1")
    assert outcome.kind == "fail"
    assert "whole, but after" in outcome.reason


@pytest.mark.timeout(60)
def test_descriptors_left_at_the_server_fail(tmp_path: Path) -> None:
    with serving("--careful", "--ttft-ms", "10", "--tpot-ms", "5", "--leak-files", "2") as url:
        outcome = _chaos(tmp_path, url, max_recovery_s="1", faults="cancel-storm")
    assert outcome.kind == "fail"
    assert "descriptors more than before, limit 16" in outcome.reason


@pytest.mark.timeout(60)
def test_nobody_is_disturbed_where_answers_are_over_at_once(tmp_path: Path) -> None:
    def at_once(request: Received) -> Script | None:
        return Script(
            steps=[Step(0.0, b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')]
        )

    with ScriptServer(Rules(Model(), at_once)) as server:
        outcome = _chaos(tmp_path, server.url, faults="disconnects")
    assert outcome.kind == "inconclusive", outcome.reason
    assert outcome.reason == "vacuous: disconnects met no work under way; ask for longer answers (long_tokens)"


@pytest.mark.timeout(60)
def test_a_server_that_does_not_answer_anyhow_cannot_be_disturbed(tmp_path: Path) -> None:
    with ScriptServer(Rules(Model(), lambda _: Script(status=503))) as server:
        outcome = _chaos(tmp_path, server.url)
    assert outcome.kind == "inconclusive"
    assert outcome.reason.startswith("vacuous: the endpoint does not answer even undisturbed (status: status 503")


@pytest.mark.timeout(60)
def test_what_cannot_be_seen_is_not_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(sight: ServerSight) -> None:
        sight.reason = "port 1 is forwarded by docker-proxy"

    monkeypatch.setattr(ServerSight, "look", blind)
    with ScriptServer(Careful(Model(ttft_s=0.01, tpot_s=0.01))) as server:
        outcome = _chaos(tmp_path, server.url, faults="oversize")
        judged = _chaos(tmp_path, server.url, faults="oversize", leaks="no")
    assert outcome.kind == "inconclusive"
    assert "what was left at the server is unknown: port 1 is forwarded by docker-proxy" in outcome.reason
    assert judged.kind == "pass"


@pytest.mark.timeout(60)
def test_nobody_listens(tmp_path: Path) -> None:
    outcome = _chaos(tmp_path, "http://127.0.0.1:9")
    assert str(outcome.record.status) == "failed"
    assert outcome.reason.startswith("http://127.0.0.1:9 cannot be reached: no connection: 127.0.0.1: Connection refused; start")


@pytest.mark.parametrize(("faults", "problem"), [("rain", "there is no 'rain'"), (",", "name at least one")])
def test_faults_have_names(faults: str, problem: str) -> None:
    benchmark = next(one for one in DESCRIPTORS if one.id == "chaos").build()
    with pytest.raises(ParamError, match=problem):
        benchmark.configure(ParamValues.from_overrides(benchmark.parameters(), [("faults", faults)]))


def test_connections_that_only_the_client_has_closed_are_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        held, _ = listener.accept()
        with held:
            assert half_closed(port) == 0
            client.close()
            held.recv(1)
            assert half_closed(port) == 1
    assert half_closed(port, "/nowhere") is None


def test_leaks_can_be_given_back() -> None:
    leaky = Leaky(Model(), files=3)
    before = len(os.listdir("/proc/self/fd"))
    leaky(Received(0, "POST", "/v1/completions", {}, b"{}", 0.0))
    assert len(os.listdir("/proc/self/fd")) == before + 3
    leaky.give_back()
    assert len(os.listdir("/proc/self/fd")) == before
