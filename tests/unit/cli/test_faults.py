"""``nodeproof faults`` at an interface that is really served: what is refused, and events that go out again."""

import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nodeproof.cli import fault_orders
from nodeproof.cli.main import main
from nodeproof.errors import NodeproofError, UsageError
from nodeproof.faults.coalesce import CoalescedEvent
from nodeproof.faults.delivery import DeliverySettings
from nodeproof.faults.desk import FaultDesk
from nodeproof.faults.service import FaultService
from nodeproof.host.recorded import ManualClock
from support.daemon import free_port, until
from support.http_client import Client
from support.kernel_log import event
from support.webhooks import fault_event


class Served:
    """An interface with a configuration that names it, and a subscriber that does not answer yet."""

    def __init__(self, folder: Path) -> None:
        self.desk = FaultDesk(str(folder / "faults"), ManualClock(), "boot")
        self.desk.open()
        self.service = FaultService(
            self.desk,
            ManualClock(),
            "127.0.0.1:0",
            boot_id="boot",
            settings=DeliverySettings(timeout_s=5.0, retries=0),
            buffer=10,
            webhook_allow=["127.0.0.1"],
        )
        self.service.start()
        self.hook = free_port()
        self.config = folder / "nodeproof.yaml"
        self.configure(self.service.server.ports[0])
        self.environ = {"NODEPROOF_DATA_DIR": str(folder), "NODEPROOF_CONFIG": str(self.config)}

    def configure(self, port: int, *, enabled: bool = True) -> None:
        """Write the configuration."""
        faults = {"enabled": enabled, "dir": self.desk.directory, "rest_addr": f"127.0.0.1:{port}"}
        self.config.write_bytes(msgspec.json.encode({"faultsub": faults}))

    def subscribe(self) -> str:
        """A webhook at the port where nobody listens yet."""
        body = msgspec.json.encode({"endpoint": f"http://127.0.0.1:{self.hook}/hook"})
        fields = ("POST /faultsub/subscriptions HTTP/1.0", "Content-Type: application/json", f"Content-Length: {len(body)}")
        client = Client(("127.0.0.1", self.service.server.ports[0]))
        client.send("\r\n".join(fields).encode() + b"\r\n\r\n" + body)
        answer = client.read()
        client.close()
        return str(msgspec.json.decode(answer.body)["id"])

    def give_up(self, identity: str) -> None:
        """One event that nobody takes."""
        taken = self.desk.record(fault_event(0))
        assert self.desk.keep(taken.sequence, 5.0)
        until(lambda: self.service._deliverer.dead_letters(identity), "it is given up")

    def run(self, *arguments: str) -> int:
        """The command."""
        return main(["faults", *arguments], self.environ)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    one = Served(tmp_path)
    yield one
    one.service.stop()
    one.desk.close()


class _Receiver(http.server.BaseHTTPRequestHandler):
    got: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).got.append(self.headers["X-Nodeproof-Redelivery"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has it so
        """Quiet."""


def test_events_that_were_given_up_are_listed_and_go_out_again(
    served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # loopback is asked through no proxy
    assert (served.run("dead"), capsys.readouterr().out) == (0, "Nobody has subscribed.\n")
    identity = served.subscribe()
    assert served.run("redeliver") == 1
    assert capsys.readouterr().out == "No dead letter to send again.\n"
    served.give_up(identity)
    assert served.run("dead") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == f"{identity}  http://127.0.0.1:{served.hook}/hook: 1 dead letters"
    assert shown[2].split() == ["Number", "Given", "up", "Attempts", "What", "Why"]
    assert "set card_drop npu_id=3" in shown[3]
    assert served.run("dead", "-o", "json") == 0
    (told,) = msgspec.json.decode(capsys.readouterr().out)
    assert (told["subscription"], told["letters"][0]["event"]["sequence"]) == (identity, 1)
    with http.server.HTTPServer(("127.0.0.1", served.hook), type("Receiver", (_Receiver,), {"got": []})) as receiver:
        thread = threading.Thread(target=receiver.handle_request)
        thread.start()
        assert served.run("redeliver", "--subscription", identity, "--number", "1") == 0
        assert capsys.readouterr().out == f"{identity}: 1 events go out again: 1\n"
        thread.join(10.0)
        assert receiver.RequestHandlerClass.got == ["true"]  # type: ignore[attr-defined]
    assert served.run("redeliver", "--number", "1") == 1


def test_what_cannot_be_asked(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert served.run("redeliver", "--subscription", "sub-0") == 2
    assert "no subscription 'sub-0'; nodeproof faults dead lists those that there are" in capsys.readouterr().err
    served.configure(free_port())
    assert served.run("dead") == 1
    assert "/faultsub/subscriptions does not answer ([Errno 111] Connection refused); start the daemon" in capsys.readouterr().err
    served.configure(1, enabled=False)
    assert served.run("dead") == 2
    assert "nobody is served here: faultsub.enabled is false" in capsys.readouterr().err


def test_what_the_interface_says_against_it_is_repeated(
    served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodeproof.faults.api.uid_of_connection", lambda _client, _server: 4242)
    assert served.run("dead") == 2
    assert "uid 4242 may not do this; faultsub.operators may name that user" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "known"), [("--component", "chassis, cpu, daemon"), ("--type", "card_drop, ")])
def test_a_history_of_what_there_is_not_is_refused(
    served: Served, option: str, known: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """``Nothing happened.`` was the answer to a name that was misspelt."""
    assert served.run("history", option, "nope") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"nodeproof: {option} 'nope': no fault is of it, and no entry; there are ")
    assert known in said
    assert served.run("history", "--component", "gpu", "--type", "card_drop") == 0
    assert capsys.readouterr().out == "Nothing happened.\n"


def test_a_name_of_somebody_elses_that_is_in_the_log_is_known(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    taken = served.desk.record(fault_event(0, component="their_own", type="their_type"))
    assert served.desk.keep(taken.sequence, 5.0)
    since = "2999-01-01T00:00:00Z"
    assert served.run("history", "--component", "their_own", "--type", "their_type", "--since", since) == 0
    assert capsys.readouterr().out == "Nothing happened.\n"


def _lose_gpu(served: Served) -> None:
    found = event("NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.")
    assert found is not None
    served.desk.hear([CoalescedEvent(found, 3, 1.0, 1.0)])
    assert served.desk.keep(served.desk.sequence, 5.0)


def test_a_rule_on_the_kernel_log_is_explained_with_what_stands(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "xid.79"], served.environ) == 0
    assert capsys.readouterr().out.startswith("xid.79 (gpu): clear\n")
    _lose_gpu(served)
    assert main(["explain", "xid.79"], served.environ) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("xid.79 (gpu): triggered\n")
    for line in (
        "  Type:     card_drop, class lost, severity critical",
        "  Source:   /dev/kmsg",
        "  Ends:     the next boot, or an",
    ):
        assert line in shown
    assert "  Stands:   f1 0000:05:00 since 20" in shown
    assert ", 3 times\n" in shown
    assert " set 0000:05:00: " in shown
    assert main(["explain", "xid.79", "-o", "json"], served.environ) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    assert (told["rule"]["name"], told["standing"][0]["fault_id"], told["events"][0]["change"]) == ("xid.79", "f1", "set")


@pytest.mark.parametrize(
    ("rule", "ends"),
    [
        ("xid.8", "it is an event, and stands for nothing that could end"),
        ("kernel.io_error", "no other one for 3600 s, or an operator's word"),
    ],
)
def test_how_a_rule_on_the_kernel_log_ends(served: Served, rule: str, ends: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", rule], served.environ) == 0
    assert f"  Ends:     {ends}\n" in capsys.readouterr().out


def test_a_rule_on_the_kernel_log_that_there_is_not(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "kernel.nothing"], served.environ) == 2
    assert "no rule 'kernel.nothing'; docs/faults.md and nodeproof faults list" in capsys.readouterr().err
    _spoil(served)
    assert main(["explain", "xid.79"], served.environ) == 2
    assert "active.json cannot be read" in capsys.readouterr().err


def _spoil(served: Served) -> None:
    served.service.stop()
    served.desk.close()
    (Path(served.desk.directory) / "active.json").write_text("{", encoding="ascii")


def test_what_stands_is_unknown_without_a_daemon_or_a_file_that_can_be_read(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    _lose_gpu(served)
    assert served.run("active") == 3
    shown = capsys.readouterr().out
    assert shown.startswith("Not the present: daemon absent: no daemon has written to ")
    assert "f1  critical  card_drop" in shown
    _spoil(served)
    assert served.run("active", "-o", "json") == 3
    told = msgspec.json.decode(capsys.readouterr().out)
    assert (told["fresh"], told["faults"]) == (False, [])
    assert "active.json cannot be read" in told["problem"]


def test_an_order_without_a_daemon_says_what_to_start(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert served.run("ack", "f1", "--note", "ordered") == 1
    assert "no daemon can be asked (absent: no daemon has written to" in capsys.readouterr().err


def test_who_has_no_name_is_known_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_uid: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert fault_orders.caller() == str(os.getuid())


def test_a_process_that_the_signal_would_end_gets_none() -> None:
    with subprocess.Popen(["/bin/sleep", "30"]) as child:
        with pytest.raises(NodeproofError, match=f"process {child.pid} takes no orders"):
            fault_orders._wake(child.pid)
        assert child.poll() is None
        child.kill()
    with pytest.raises(FileNotFoundError):
        fault_orders._wake(child.pid)


def test_a_daemon_that_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_orders, "_ANSWER_S", 0.05)
    with pytest.raises(NodeproofError, match=r"did not answer within 0\.05 s"):
        fault_orders._await(str(tmp_path / "x.json"))
    (tmp_path / "x.answer").write_text('{"error": "no fault stands"}')
    with pytest.raises(UsageError, match="no fault stands"):
        fault_orders._await(str(tmp_path / "x.json"))
