"""The REST interface over real sockets: routes and bodies of the reference, without its defects."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeproof.errors import UsageError
from nodeproof.faults import api as api_module
from nodeproof.faults.coalesce import CoalescedEvent
from nodeproof.faults.dead_letters import DeadLetter
from nodeproof.faults.delivery import DeliverySettings
from nodeproof.faults.desk import FaultDesk
from nodeproof.faults.drill import drill_rule, drill_rules
from nodeproof.faults.service import KEY_FILE, FaultService
from nodeproof.faults.views import known_types
from nodeproof.faults.vocabulary import REFERENCE_TYPES
from nodeproof.host.recorded import ManualClock
from nodeproof.model.health import Severity, Standing
from support.http_client import Answer, Client
from support.kernel_log import event
from support.webhooks import fault_event


class Served:
    """A service on a free port."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.clock = ManualClock()
        self.desk = FaultDesk(str(folder), self.clock, "boot")
        self.desk.open()
        settings = DeliverySettings(timeout_s=0.5)
        self.service = FaultService(
            self.desk, self.clock, "127.0.0.1:0", boot_id="boot", settings=settings, **{"buffer": 1024, **more}
        )
        self.service.start()

    def call(self, method: str, path: str, body: object = None, *fields: str, host: str = "localhost") -> Answer:
        """One request."""
        client = Client(("127.0.0.1", self.service.server.ports[0]))
        try:
            raw = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
            head = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(raw)}"]
            head += fields or ["Content-Type: application/json"]
            client.send("\r\n".join(head).encode() + b"\r\n\r\n" + raw)
            return client.read(body=method != "HEAD")
        finally:
            client.close()

    def get(self, path: str) -> Any:
        """The JSON at ``path``."""
        answer = self.call("GET", path)
        assert answer.status == 200, answer.body
        return msgspec.json.decode(answer.body)

    def lose_gpu(self, number: int = 5) -> None:
        found = event(f"NVRM: Xid (PCI:0000:{number:02x}:00): 79, GPU has fallen off the bus.")
        assert found is not None
        now_s = self.clock.mono_s
        self.desk.hear([CoalescedEvent(found, 1, now_s, now_s)])

    def npu(self, *rules: tuple[str, str]) -> None:
        """Rules of health that hold of chips, by rule and NPU."""
        conditions = [
            Standing(
                rule=rule,
                severity=Severity.CRITICAL,
                component="npu",
                message=rule,
                labels={"npu_id": npu_id},
                entity=("npu_id",),
                value=1.0,
                since_wall_s=self.clock.wall_s,
                clears_when="",
                remedy="",
                current=True,
                tier="hbm_double_ecc" if rule == "npu.hbm_ecc" else "",
            )
            for rule, npu_id in rules
        ]
        self.desk.judge(conditions, lambda _rule, _same: True, log_readable=True)

    def close(self) -> None:
        self.service.stop()
        self.desk.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    one = Served(tmp_path)
    yield one
    one.close()


def _error(answer: Answer) -> str:
    return str(msgspec.json.decode(answer.body)["error"])


def test_the_types_are_those_of_all_rules(served: Served) -> None:
    types = served.get("/faultsub/types")["types"]
    assert tuple(types[:8]) == REFERENCE_TYPES
    made = {rule.naming.type for rule in map(drill_rule, drill_rules()) if rule is not None}
    assert made <= set(types) == set(known_types())


def test_the_snapshot_has_the_gravest_of_each_card_and_active_has_all(served: Served) -> None:
    """Defect 25: a second fault replaced the first, and any recovery removed the card."""
    served.npu(("npu.hbm_ecc", "3"), ("npu.error_code", "3"), ("npu.error_code", "4"))
    served.lose_gpu()
    snapshot = served.get("/faultsub/snapshot")
    assert {key: one["type"] for key, one in snapshot.items()} == {
        "3": "hbm_uce",
        "4": "npu_error_code",
        "gpu-0000:05:00": "card_drop",
    }
    one = snapshot["3"]
    assert {key: type(one[key]) for key in ("event_id", "type", "component", "npu_id", "severity", "timestamp")} == dict.fromkeys(
        ("event_id", "type", "component", "npu_id", "severity", "timestamp"), str
    )
    assert (one["recovered"], one["npu_id"], one["component"], one["class"]) == (False, "3", "npu", "ecc_uncorrected")
    assert all(isinstance(text, str) for text in one["detail"].values())
    assert [fault["type"] for fault in served.get("/faultsub/active")] == [
        "hbm_uce",
        "npu_error_code",
        "npu_error_code",
        "card_drop",
    ]
    served.npu(("npu.error_code", "3"), ("npu.error_code", "4"))
    assert {key: one["type"] for key, one in served.get("/faultsub/snapshot").items()}["3"] == "npu_error_code"


def test_events_with_their_filters(served: Served) -> None:
    served.npu(("npu.error_code", "3"))
    served.clock.advance(60.0)
    served.lose_gpu()
    assert served.desk.keep(2, 5.0)
    both = served.get("/faultsub/events")
    assert [one["type"] for one in both] == ["npu_error_code", "card_drop"]
    assert [one["type"] for one in served.get("/faultsub/events?type=card_drop")] == ["card_drop"]
    assert [one["npu_id"] for one in served.get("/faultsub/events?npu_id=3")] == ["3"]
    assert served.get("/faultsub/events?gpu_id=9") == []
    assert [one["sequence"] for one in served.get("/faultsub/events?after=1")] == [2]
    since = both[0]["timestamp"].replace("+", "%2B")
    assert [one["sequence"] for one in served.get(f"/faultsub/events?since={since}")] == [2]
    for query in ("since=yesterday", "since=2026-11-30T22:20:41", "after=x", "after=-1"):
        answer = served.call("GET", f"/faultsub/events?{query}")
        assert (answer.status, _error(answer)[:6]) == (400, f"{query.partition('=')[0]}: "[:6])


def test_an_event_is_taken_in_filled_and_changes_no_snapshot(served: Served) -> None:
    answer = served.call("POST", "/faultsub/events", {"type": "straggler_detected", "npu_id": "5", "detail": {"z": "4.1"}})
    assert answer.status == 202
    told = msgspec.json.decode(answer.body)
    assert told["status"] == "dispatched"
    (kept,) = served.get("/faultsub/events")
    assert (kept["event_id"], kept["component"], kept["npu_id"], kept["detail"]) == (told["event_id"], "npu", "5", {"z": "4.1"})
    assert (kept["class"], kept["verified"]) == ("straggler", False)
    assert served.get("/faultsub/snapshot") == {}
    assert served.call("POST", "/faultsub/events", {"type": "of_my_own", "event_id": "a" * 32, "severity": "info"}).status == 202


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "the body is not"),
        (b"[1]", "the body is not"),
        (b"\xff", "the body is not"),
        (b'{"type": ' + b"[" * 3000, "the body is not"),
        ({}, "the body is not"),
        ({"type": "a b"}, "type: 'a b'"),
        ({"type": "<script>"}, "type: "),
        ({"type": "t", "component": ""}, "component: "),
        ({"type": "t", "severity": "fatal"}, "the body is not"),
        ({"type": "t", "event_id": "xyz"}, "event_id: "),
        ({"type": "t", "timestamp": "now"}, "timestamp: "),
        ({"type": "t", "detail": {"k": "v" * 2000}}, "detail: "),
        ({"type": "t", "npu_id": "9" * 65}, "npu_id, gpu_id: "),
    ],
)
def test_events_that_are_refused(served: Served, body: object, problem: str) -> None:
    answer = served.call("POST", "/faultsub/events", body)
    assert answer.status == 400
    assert _error(answer).startswith(problem)
    assert served.desk.sequence == 0


def test_events_are_taken_in_at_a_bounded_rate(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "_INGESTS_A_MINUTE", 2)
    answers = [served.call("POST", "/faultsub/events", {"type": "t"}) for _ in range(3)]
    assert [one.status for one in answers] == [202, 202, 429]
    assert answers[2].headers["retry-after"] == "60"
    served.clock.advance(61.0)
    assert served.call("POST", "/faultsub/events", {"type": "t"}).status == 202


def test_an_event_that_is_not_kept_is_not_taken(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.desk, "keep", lambda _sequence, _limit_s: False)
    assert served.call("POST", "/faultsub/events", {"type": "t"}).status == 503


def test_subscriptions_come_and_go(served: Served, tmp_path: Path) -> None:
    wish = {"delivery": "poll", "types": ["card_drop", "card_dorp"], "components": None, "min_severity": "critical"}
    answer = served.call("POST", "/faultsub/subscriptions", wish)
    assert answer.status == 201
    made = msgspec.json.decode(answer.body)
    assert made["warnings"] == ["no rule here makes events of type 'card_dorp'"]
    assert set(made) >= {
        "id",
        "types",
        "components",
        "npu_ids",
        "delivery",
        "endpoint",
        "debounce_ms",
        "min_severity",
        "created_at",
    }
    assert served.get(f"/faultsub/subscriptions/{made['id']}") == {**made, "warnings": []}
    assert [one["id"] for one in served.get("/faultsub/subscriptions")] == [made["id"]]
    assert served.get(f"/faultsub/subscriptions/{made['id']}/dead-letters") == []
    assert served.call("DELETE", f"/faultsub/subscriptions/{made['id']}").status == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/dead-letters"), ("POST", "/redeliver")):
        gone = served.call(method, f"/faultsub/subscriptions/{made['id']}{path}")
        assert (gone.status, _error(gone)) == (404, f"no subscription '{made['id']}'")
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_secrets_are_never_told(served: Served) -> None:
    wish = {"endpoint": "https://a.example.invalid/", "secret": "a very secret secret"}
    made = served.call("POST", "/faultsub/subscriptions", wish)
    assert made.status == 201
    for answer in (made, served.call("GET", "/faultsub/subscriptions")):
        assert b"very secret" not in answer.body


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        (b"no", "the body is not"),
        ({"delivery": "webhook"}, "endpoint: a webhook needs one"),
        ({"delivery": "fax"}, "delivery: "),
        ({"endpoint": "http://10.0.0.1/"}, "endpoint: 10.0.0.1 is no public address"),
    ],
)
def test_subscriptions_that_are_refused(served: Served, wish: object, problem: str) -> None:
    answer = served.call("POST", "/faultsub/subscriptions", wish)
    assert (answer.status, _error(answer)[: len(problem)]) == (400, problem)


def test_a_port_takes_no_operators_word(served: Served) -> None:
    served.lose_gpu()
    for verb in ("ack", "hold", "release", "clear"):
        answer = served.call("POST", f"/faultsub/faults/f1/{verb}", {"by": "root"})
        assert (answer.status, _error(answer)) == (403, f"on the node itself: nodeproof faults {verb} f1")
    assert len(served.get("/faultsub/active")) == 1
    assert served.call("POST", "/faultsub/faults/f1/explode").status == 404


def test_wellbeing(served: Served) -> None:
    """Defect of the reference: ready only while something was broken."""
    assert served.call("GET", "/-/healthy").body == b"ok\n"
    assert served.call("GET", "/-/ready").status == 200
    served.desk.problem = "the disk is full"
    answer = served.call("GET", "/-/ready")
    assert (answer.status, answer.body) == (503, b"the disk is full\n")


def test_methods_and_paths(served: Served) -> None:
    answer = served.call("DELETE", "/faultsub/events")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")
    assert served.call("PUT", "/faultsub/events").status == 405
    assert served.call("HEAD", "/faultsub/active").status == 200
    for path in ("/", "/faultsub", "/faultsub/subscriptions/", "/faultsub/subscriptions/a/b", "/faultsub/../etc/passwd"):
        assert served.call("GET", path).status == 404, path


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (("Content-Type: application/json",), 202),
        (("Content-Type: application/json; charset=utf-8", "Origin: http://localhost:19321"), 202),
        (("Content-Type: application/json", "Origin: http://127.0.0.1:19321", "Sec-Fetch-Site: same-origin"), 202),
        (("Content-Type: text/plain",), 415),
        (("X-Nothing: 1",), 415),
        (("Content-Type: application/json", "Origin: https://evil.example.com"), 403),
        (("Content-Type: application/json", "Origin: null"), 403),
        (("Content-Type: application/json", "Sec-Fetch-Site: cross-site"), 403),
    ],
)
def test_pages_of_other_sites_are_kept_out(served: Served, fields: tuple[str, ...], status: int) -> None:
    assert served.call("POST", "/faultsub/events", {"type": "t"}, *fields).status == status


def test_other_names_and_huge_or_odd_bodies(served: Served) -> None:
    assert served.call("GET", "/faultsub/active", None, host="evil.example.com").status == 421
    assert served.call("POST", "/faultsub/events", b"x" * (64 * 1024 + 1)).status == 413
    for field, status in (("Transfer-Encoding: chunked", 411), ("Expect: 100-continue", 417)):
        answer = served.call("POST", "/faultsub/events", {"type": "t"}, "Content-Type: application/json", field)
        assert answer.status == status


def test_a_buffer_below_zero_keeps_nothing_to_ask_for(tmp_path: Path) -> None:
    one = Served(tmp_path, buffer=-5)
    one.lose_gpu()
    assert one.desk.keep(1, 5.0)
    assert one.get("/faultsub/events") == []
    one.close()


def test_trouble_with_files_is_told_and_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / KEY_FILE).mkdir()
    (tmp_path / "subscriptions.json").write_text("{", encoding="ascii")
    one = Served(tmp_path)
    assert "Is a directory" in caplog.text
    assert "set aside as" in caplog.text
    assert one.get("/faultsub/subscriptions") == []
    (tmp_path / "subscriptions.json").mkdir()
    answer = one.call("POST", "/faultsub/subscriptions", {"delivery": "poll"})
    assert (answer.status, "subscriptions.json" in _error(answer)) == (503, True)
    one.close()


def test_the_key_stays(tmp_path: Path) -> None:
    Served(tmp_path).close()
    key = (tmp_path / KEY_FILE).read_bytes()
    Served(tmp_path).close()
    assert (tmp_path / KEY_FILE).read_bytes() == key
    assert len(key.strip()) == 64


_CHANGES = (
    ("POST", "/faultsub/events"),
    ("GET", "/faultsub/subscriptions"),
    ("GET", "/faultsub/%73ubscriptions/sub-1"),
    ("POST", "/faultsub/subscriptions"),
    ("DELETE", "/faultsub/subscriptions/sub-1"),
    ("POST", "/faultsub/subscriptions/sub-1/redeliver"),
    ("POST", "/faultsub/faults/f1/clear"),
)


def test_users_of_the_machine_may_read_and_no_more(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any user of the machine could subscribe, read the endpoints of others, and hand events in."""
    monkeypatch.setattr(api_module, "uid_of_connection", lambda _client, _server: 4242)
    for path in ("active", "snapshot", "events", "types"):
        assert served.call("GET", f"/faultsub/{path}").status == 200, path
    for method, path in _CHANGES:
        answer = served.call(method, path, {"type": "t"} if method == "POST" else None)
        assert answer.status == 403, (method, path)
        assert _error(answer) == "uid 4242 may not do this; faultsub.operators may name that user, or a group with a %"
    assert served.desk.sequence == 0


def test_who_cannot_be_told_may_change_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "uid_of_connection", lambda _client, _server: None)
    answer = served.call("POST", "/faultsub/events", {"type": "t"})
    assert (answer.status, _error(answer)) == (403, "it cannot be told which user of this machine asks; ask from the node itself")
    assert served.call("GET", "/faultsub/active").status == 200


def test_operators_are_named_in_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Served(tmp_path, operators=("4242", "%0"))
    monkeypatch.setattr(api_module, "uid_of_connection", lambda _client, _server: 4242)
    assert one.call("POST", "/faultsub/events", {"type": "t"}).status == 202
    monkeypatch.setattr(api_module, "uid_of_connection", lambda _client, _server: 4243)
    assert one.call("POST", "/faultsub/events", {"type": "t"}).status == 403
    one.close()
    with pytest.raises(UsageError, match=r"^faultsub\.operators: 'no such user': this machine has no such user$"):
        Served(tmp_path, operators=("no such user",))


def test_a_user_who_may_not_is_known_by_his_end_of_the_connection(served: Served) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root becomes somebody else, by setpriv")
    head = "POST /faultsub/events HTTP/1.0\\r\\nContent-Type: application/json\\r\\nContent-Length: 13\\r\\n\\r\\n"
    talk = (
        f"exec 3<>/dev/tcp/127.0.0.1/{served.service.server.ports[0]}; printf '{head}%s' '{{\"type\": \"t\"}}' >&3; head -n 1 <&3"
    )
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    assert subprocess.run([*prefix, "bash", "-c", talk], capture_output=True, check=True).stdout.split()[1] == b"403"
    assert subprocess.run(["/bin/bash", "-c", talk], capture_output=True, check=True).stdout.split()[1] == b"202"


def test_given_up_events_are_asked_to_go_out_again(served: Served, tmp_path: Path) -> None:
    made = msgspec.json.decode(served.call("POST", "/faultsub/subscriptions", {"endpoint": "https://a.example.invalid/"}).body)
    path = tmp_path / "deliveries" / f"{made['id']}.dead.json"
    path.write_bytes(
        msgspec.json.encode([DeadLetter("now", "it answered 410", 1, fault_event(7)), DeadLetter("now", "x", 0, lost=3)])
    )
    target = f"/faultsub/subscriptions/{made['id']}/redeliver"
    answer = served.call("POST", target, {"sequences": [9]})
    assert (answer.status, msgspec.json.decode(answer.body)) == (202, {"sequences": []})
    assert served.call("POST", target, {"sequences": "all"}).status == 400
    answer = served.call("POST", target)
    assert (answer.status, msgspec.json.decode(answer.body)) == (202, {"sequences": [7]})
