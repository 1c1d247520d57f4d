"""Faults of a real daemon: found, kept over kills, cleared by an operator, drilled everywhere."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nodeproof.faults.records import read_events, read_state
from nodeproof.model.fault import Change
from support.daemon import Daemon, free_port, nodeproof, until
from support.http_client import Client
from support.webhooks import Receiver

_HOST = Path(__file__).parents[1] / "fixtures" / "hosts" / "vm-2cpu"
_LOG = b"""\
4,0,5550000001,-;NVRM: Xid (PCI:0000:01:00): 31, pid=99, name=a.out, Ch 00000008, intr 00000000. MMU Fault
4,1,5551000001,-;NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
12,2,5551000002,-;NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.
4,3,5551000003,-;NVRM: Xid (PCI:0000:05:00): 777, something new
"""


class Node:
    """A daemon on a recorded node whose GPU has left the bus, its page, and one subscriber."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        shutil.copytree(_HOST, self.root, symlinks=True)
        (self.root / "dev").mkdir(exist_ok=True)
        (self.root / "dev" / "kmsg").write_bytes(_LOG)
        self.api, self.page = free_port(), free_port()
        self.daemon = Daemon(folder / "daemon")
        self.daemon.configure(
            faultsub={"enabled": True, "rest_addr": f"127.0.0.1:{self.api}", "webhook_allow": ["127.0.0.1"]},
            web={"enabled": True, "address": f"127.0.0.1:{self.page}"},
        )
        self.faults = str(self.daemon.data / "faults")
        self.receiver = Receiver(free_port(), folder / "received")
        self.web: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.daemon.start("--root", str(self.root))
        until(self.fault_ids, "a fault")

    def fault_ids(self) -> list[str]:
        state = read_state(self.faults)
        return [] if state is None else [fault.fault_id for fault in state.faults]

    def serve_page(self) -> None:
        argv = [sys.executable, "-m", "nodeproof", "web", "-c", str(self.daemon.config)]
        self.web = subprocess.Popen(argv, env=self.daemon.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, *argv: str) -> tuple[int, str]:
        done = nodeproof("faults", *argv, "-c", str(self.daemon.config), env=self.daemon.env, limit_s=40.0)
        return done.code, done.out + done.err

    def subscribe(self) -> None:
        self.receiver.start()
        body = msgspec.json.encode({"endpoint": f"http://127.0.0.1:{self.receiver.port}/"})
        client = Client(("127.0.0.1", self.api))
        fields = ["Host: localhost", "Content-Type: application/json", f"Content-Length: {len(body)}"]
        head = "\r\n".join(["POST /faultsub/subscriptions HTTP/1.1", *fields])
        client.send(head.encode() + b"\r\n\r\n" + body)
        assert client.read().status == 201
        client.close()

    def stop(self) -> None:
        if self.web is not None:
            self.web.terminate()
            self.web.wait(10.0)
        if self.receiver.process is not None:
            self.receiver.kill()
        if self.daemon.process is not None and self.daemon.process.poll() is None:
            self.daemon.stop()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    one = Node(tmp_path)
    one.start()
    yield one
    one.stop()


@pytest.mark.timeout(90)
def test_found_kept_over_a_kill_and_cleared_by_an_operator(node: Node) -> None:
    code, text = node.run("active")
    assert (code, "card_drop" in text, "0000:05:00" in text) == (2, True, True)
    events = read_events(node.faults, limit=10)
    assert [(one.change, one.rule, one.severity) for one in events] == [
        (Change.EVENT, "xid.31", "info"),
        (Change.SET, "xid.79", "critical"),
        (Change.EVENT, "kernel.unverified", "info"),
        (Change.EVENT, "xid.777", "warning"),
    ]
    whole = node.daemon.whole()
    assert (whole.health.grade, next(one.rule for one in whole.health.findings if one.component == "gpu")) == (
        "Critical",
        "xid.79",
    )
    node.daemon.send(signal.SIGKILL)
    node.daemon.wait()
    code, text = node.run("active")
    assert (code, "Not the present" in text, "f2" in text) == (3, True, True)
    assert node.run("ack", "f2")[0] == 1
    # The log of the kernel is read again from its beginning: nothing of it is news.
    node.start()
    assert node.fault_ids() == ["f2"]
    assert [one.sequence for one in read_events(node.faults, limit=10)] == [1, 2, 3, 4]
    assert node.run("ack", "f2", "--note", "reseating it")[0] == 0
    assert node.run("clear", "f7") == (
        2,
        "nodeproof: no fault 'f7' stands; nodeproof faults active lists those that do\n",
    )
    assert node.run("clear", "f2")[0] == 0
    until(lambda: node.fault_ids() == [], "no fault")
    until(lambda: node.daemon.whole().health.grade != "Critical", "a better grade")
    code, text = node.run("history", "-o", "json", "--limit", "2")
    assert [msgspec.json.decode(line)["change"] for line in text.splitlines()] == ["acknowledged", "cleared"]


@pytest.mark.timeout(90)
def test_a_drill_is_seen_everywhere_and_gone_after_it(node: Node) -> None:
    node.serve_page()
    node.subscribe()
    node.run("clear", "f2")
    until(lambda: node.fault_ids() == [] and node.daemon.whole().health.grade != "Critical", "peace")
    code, text = node.run("inject", "npu.card_drop", "-o", "json")
    told = msgspec.json.decode(text)
    assert (code, told["passed"]) == (0, True), text
    places = {place["name"]: place for place in told["places"]}
    assert list(places) == [
        "snapshot",
        "score",
        "check",
        "faults",
        "history",
        "end in history",
        "page",
        "interface",
        "webhooks",
    ]
    assert places["score"]["found"] == "grade Critical"
    assert places["page"]["found"] == "shown, marked as a drill"
    assert places["webhooks"]["found"] == "1 of 1 served"
    assert [name for name, place in places.items() if place["gone_s"] is not None] == [
        "snapshot",
        "score",
        "check",
        "faults",
        "page",
        "interface",
    ]
    assert node.daemon.whole().health.grade != "Critical"
    assert node.fault_ids() == []
    drills = [one for one in read_events(node.faults, limit=10) if one.drill]
    assert [one.change for one in drills] == [Change.SET, Change.CLEARED]
    until(lambda: {one.event_id for one in drills} <= {got for got, _ in node.receiver.deliveries()}, "both at the receiver")


@pytest.mark.timeout(60)
def test_words_against_it(node: Node) -> None:
    assert node.run("inject", "cpu.usage")[0] == 2
    assert "makes a fault" in node.run("inject", "cpu.usage")[1]
    assert node.run("inject", "xid.79", "--seconds", "1")[0] == 2
    assert node.run("history", "--since", "yesterday")[0] == 2
    assert node.run("history", "--limit", "0")[0] == 2
    code, text = node.run("list")
    assert (code, "xid.79" in text, "npu.card_drop" in text) == (0, True, True)
    code, text = node.run("history", "--type", "card_drop", "--component", "gpu")
    assert (code, text.count("\n")) == (0, 2)
