"""Subscribers for tests: a log of faults to serve them from, a network that answers by a script, receivers that are processes."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from nodeproof.clock import rfc3339
from nodeproof.faults.delivery import Deliverer, DeliverySettings
from nodeproof.faults.journal import Journal
from nodeproof.faults.subscriptions import Request, Subscriptions, Targets
from nodeproof.host.recorded import ManualClock
from nodeproof.host.webhook_client import Answer, Target, Unreachable
from nodeproof.model.event import Severity
from nodeproof.model.fault import Change, FaultClass, FaultEvent, Subscription
from support.daemon import SOURCES

__all__ = ["Delivered", "Network", "Office", "Receiver", "fault_event"]

BOOT = "7d2f0c9e-0000-4000-8000-000000000001"


def fault_event(sequence: int, *, change: Change = Change.SET, at_s: float = 1_790_000_000.0, **more: object) -> FaultEvent:
    """An entry of the log."""
    plain = FaultEvent(
        event_id=f"{sequence:032x}",
        type="card_drop",
        component="npu",
        npu_id="3",
        severity=Severity.CRITICAL,
        detail={"card_drop": "1"},
        timestamp=rfc3339(at_s),
        recovered=change is Change.CLEARED,
        sequence=sequence,
        change=change,
        fault_class=FaultClass.LOST,
        rule="npu.card_drop",
        device="npu_id=3",
        message="the card is gone",
        boot_id=BOOT,
        fault_id=f"f{sequence}",
    )
    return msgspec.structs.replace(plain, **more)


class Delivered(msgspec.Struct):
    """One POST that arrived."""

    sequence: int
    attempt: int
    again: bool
    address: str
    body: bytes
    headers: dict[str, str]


class Network:
    """Answers by a script, and remembers what came."""

    def __init__(self, answer: Callable[[int, FaultEvent], int | Answer | str] = lambda _number, _event: 204) -> None:
        """``answer``: of the number of the POST (from 1) and its event; a text is why nothing answered."""
        self._answer = answer
        self.addresses: dict[str, list[list[str]]] = {}
        """Answers of the name server, one a look-up; the last one stays."""
        self.arrived: list[Delivered] = []
        self.looked_up: list[str] = []

    def resolve(self, host: str, _port: int) -> list[str]:
        """Addresses of ``host``."""
        self.looked_up.append(host)
        known = self.addresses.get(host, [["93.184.215.14"]])
        return known.pop(0) if len(known) > 1 else known[0]

    def post(self, _target: Target, address: str, headers: dict[str, str], body: bytes, _limit_s: float) -> Answer:
        """Answer as the script says."""
        event = msgspec.json.decode(body, type=FaultEvent)
        again = headers["X-Nodeproof-Redelivery"] == "true"
        self.arrived.append(Delivered(event.sequence, int(headers["X-Nodeproof-Attempt"]), again, address, body, headers))
        answer = self._answer(len(self.arrived), event)
        if isinstance(answer, str):
            raise Unreachable(answer)
        return answer if isinstance(answer, Answer) else Answer(answer, None)

    @property
    def sequences(self) -> list[int]:
        """Numbers of the events that arrived, in their order."""
        return [one.sequence for one in self.arrived]


class Office:
    """A deliverer on a clock that runs by its own pauses, and the log it serves from."""

    def __init__(
        self,
        folder: Path,
        network: Network,
        *,
        settings: DeliverySettings | None = None,
        boot: str = BOOT,
        allow: Sequence[str] = (),
    ) -> None:
        self.folder = str(folder)
        self.clock = ManualClock()
        self.network = network
        self.journal = Journal(self.folder)
        events = self.journal.open()
        self.written = events[-1].sequence if events else 0
        targets = Targets(allow)
        self.subscriptions = Subscriptions(self.folder, targets, lambda: rfc3339(self.clock.wall_s))
        self.subscriptions.load()
        self.pauses: list[float] = []
        self.deliverer = Deliverer(
            self.folder,
            self.subscriptions,
            targets,
            self.clock,
            boot_id=boot,
            node_key=b"k" * 64,
            written=lambda: self.written,
            settings=settings or DeliverySettings(),
            transport=network,
            pause=self._pause,
        )

    def _pause(self, _ended: threading.Event, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.advance(seconds)

    def subscribe(self, endpoint: str = "https://alerts.example.com/hook", **more: object) -> Subscription:
        """A webhook."""
        return self.subscriptions.add(msgspec.convert({"endpoint": endpoint, **more}, Request), self.written)

    def happen(self, *events: FaultEvent) -> None:
        """Put entries into the log, and have them delivered as far as they can be."""
        self.journal.append(events)
        self.written = events[-1].sequence
        self.serve()

    def serve(self) -> None:
        """Deliver what is there; returns when there is no more to do."""
        self.deliverer.wake()
        self.settle()

    def settle(self) -> None:
        """Wait until nobody works."""
        for postman in list(self.deliverer._posts.values()):
            postman.join(15.0)
            assert postman._thread is None or not postman._thread.is_alive(), "a postman does not come to an end"

    def close(self) -> None:
        """End."""
        self.deliverer.stop()
        self.journal.close()


_RECEIVER = """
import os, socket, sys
port, path = int(sys.argv[1]), sys.argv[2]
log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", port))
server.listen(64)
while True:
    connection, _ = server.accept()
    data = b""
    while b"\\r\\n\\r\\n" not in data:
        part = connection.recv(65536)
        if not part:
            break
        data += part
    head, found, body = data.partition(b"\\r\\n\\r\\n")
    if found:
        fields = dict(line.split(b": ", 1) for line in head.split(b"\\r\\n")[1:])
        length = int(fields[b"Content-Length"])
        while len(body) < length:
            part = connection.recv(65536)
            if not part:
                break
            body += part
        if len(body) == length:
            os.write(log, fields[b"X-Nodeproof-Event-Id"] + b" " + fields[b"X-Nodeproof-Redelivery"] + b"\\n")
            try:
                connection.sendall(b"HTTP/1.1 204 No Content\\r\\nContent-Length: 0\\r\\n\\r\\n")
            except OSError:
                pass
    connection.close()
"""


class Receiver:
    """A receiver in a process of its own: it writes down the event's id, and whether it was marked, before it answers."""

    def __init__(self, port: int, log: Path) -> None:
        self.port = port
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Listen."""
        self.process = subprocess.Popen([sys.executable, "-c", _RECEIVER, str(self.port), str(self.log)], env={**os.environ})

    def kill(self) -> None:
        """SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def has(self, count: int) -> bool:
        """Whether so many deliveries arrived."""
        return len(self.deliveries()) >= count

    def deliveries(self) -> list[tuple[str, bool]]:
        """Id and mark of each delivery that arrived, in order."""
        if not self.log.exists():
            return []
        lines = self.log.read_text(encoding="ascii").splitlines()
        return [(line.split()[0], line.split()[1] == "true") for line in lines]


SENDER = f"""
import sys, threading, time
sys.path.insert(0, {str(SOURCES)!r})
import msgspec
from nodeproof.clock import SystemClock
from nodeproof.faults import delivery
from nodeproof.faults.desk import FaultDesk
from nodeproof.faults.service import FaultService
from nodeproof.model.fault import Change, FaultClass, FaultEvent
from nodeproof.model.event import Severity
directory, port, total = sys.argv[1], sys.argv[2], int(sys.argv[3])
delivery._FIRST_PAUSE_S = delivery._LAST_PAUSE_S = 0.05
desk = FaultDesk(directory, SystemClock(), "boot")
desk.open()
service = FaultService(desk, SystemClock(), "127.0.0.1:" + port, boot_id="boot",
                       settings=delivery.DeliverySettings(timeout_s=2.0), buffer=1024, webhook_allow=["127.0.0.1"])
service.start()
while desk.sequence < total:
    desk.record(FaultEvent(event_id="", type="t", component="npu", npu_id="1", severity=Severity.WARNING, detail={{}},
        timestamp="", recovered=False, sequence=0, change=Change.EVENT, fault_class=FaultClass.UNKNOWN, rule="ingest",
        device="1", message="", boot_id=""))
    if desk.sequence % 10 == 0:
        desk.keep(desk.sequence, 5.0)
threading.Event().wait()
"""
"""A process that writes events into the log of faults until there are as many as it is told, and serves subscribers."""
