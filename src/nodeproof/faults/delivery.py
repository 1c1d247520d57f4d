"""Telling subscribers: each event at least once, in order, for as long as it takes.

The log of faults is the queue: each subscriber has a place in it, kept on disk, which moves on once the receiver said 2xx (or the
event was given up and put among the dead letters). So a queue is as bounded as the log is, and survives whatever ends a process.
A process that ends between sending and writing the place down sends that event once more; it cannot know better, and marks it
(``X-Nodeproof-Redelivery: true``), as it does with every further attempt. Each subscriber has a thread while there is something
for it, so that a receiver that hangs holds up nobody else.
"""

import contextlib
import logging
import os
import random
import re
import threading
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple, Protocol

import msgspec

from nodeproof.clock import Clock, rfc3339
from nodeproof.errors import WriteError
from nodeproof.faults.dead_letters import DeadLetter, DeadLetterFile
from nodeproof.faults.journal import oldest_sequence, read_journal
from nodeproof.faults.selection import Debounce, wants
from nodeproof.faults.signing import signature
from nodeproof.faults.subscriptions import Subscriptions, Targets, target_of
from nodeproof.host.atomic import replace_file
from nodeproof.host.webhook_client import Answer, Target, Unreachable, post, resolve
from nodeproof.model.fault import Delivery, FaultEvent, Subscription

__all__ = ["Deliverer", "DeliverySettings", "Network", "Progress", "Transport"]

_log = logging.getLogger(__name__)
_FOLDER = "deliveries"
_FIRST_PAUSE_S = 1.0
_LAST_PAUSE_S = 300.0
_MOST_HELD = 256
_OWNED = re.compile(r"(sub-[0-9a-f]{32})(\.dead)?\.json")
_GONE = 410
_STOP_S = 2.0
_encoder = msgspec.json.Encoder()


class Transport(Protocol):
    """How deliveries leave the machine."""

    def resolve(self, host: str, port: int, /) -> list[str]:
        """Addresses of ``host``. Raises Unreachable."""
        ...

    def post(self, target: Target, address: str, headers: dict[str, str], body: bytes, limit_s: float, /) -> Answer:
        """Send, and hear the status. Raises Unreachable."""
        ...


class Network:
    """The real one."""

    def resolve(self, host: str, port: int) -> list[str]:
        """Addresses of ``host``. Raises Unreachable."""
        return resolve(host, port)

    def post(self, target: Target, address: str, headers: dict[str, str], body: bytes, limit_s: float) -> Answer:
        """Send, and hear the status. Raises Unreachable."""
        return post(target, address, headers, body, limit_s)


class DeliverySettings(NamedTuple):
    """How hard it is tried."""

    timeout_s: float = 5.0
    """For one attempt."""
    retries: int | None = None
    """Further attempts before an event is given up; None = as long as :attr:`give_up_s` allows."""
    give_up_s: float = 72 * 3600.0
    """A receiver that failed for so long without a break: events are given up from then on, each after one more attempt."""


class Progress(msgspec.Struct, omit_defaults=True):
    """How far one subscriber has been served."""

    place: int
    """Number of the last event that is done with."""
    boot_id: str = ""
    delivered: int = 0
    dead: int = 0
    """Events given up, also those that fell out of the log before their turn."""
    attempts: int = 0
    """Attempts on the event whose turn it is."""
    problem: str = ""
    """Why the last attempt failed; empty when it did not."""
    last_success: str = ""
    failing_since: float = 0.0
    """Seconds since the epoch: the first failure since the last success; 0 = none."""
    held: list[FaultEvent] = []
    """Kept back by the debounce."""
    again: list[FaultEvent] = []
    """Dead letters that somebody asked to have sent once more."""


class Deliverer:
    """Serves all webhooks between :meth:`start` and :meth:`stop`."""

    def __init__(
        self,
        directory: str,
        subscriptions: Subscriptions,
        targets: Targets,
        clock: Clock,
        *,
        boot_id: str,
        node_key: bytes,
        written: Callable[[], int],
        settings: DeliverySettings = DeliverySettings(),  # noqa: B008 - immutable
        transport: Transport | None = None,
        pause: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> None:
        """``written``: number of the newest event that is on the disk. ``node_key`` signs for subscribers without a secret.

        ``pause``: waits so many seconds or until the event is set; a test lets its clock run instead.
        """
        self.directory = directory
        self.subscriptions = subscriptions
        self.targets = targets
        self.clock = clock
        self.boot_id = boot_id
        self.node_key = node_key
        self.settings = settings
        self.transport = transport or Network()
        self.stopping = threading.Event()
        self.in_doubt_through = 0
        """Events up to this number may have been sent by a process before this one."""
        self.pause = pause
        self.written = written
        self._lock = threading.Lock()
        self._posts: dict[str, _Postman] = {}

    def start(self) -> None:
        """Begin to serve."""
        self.in_doubt_through = self.written()
        self.wake()

    def wake(self) -> None:
        """Look whether there is anything for anybody: called when events came to the disk, or a subscription."""
        with self._lock:
            if self.stopping.is_set():
                return
            wanted = {one.id: one for one in self.subscriptions.all() if one.delivery is Delivery.WEBHOOK}
            for known in self._posts.keys() - wanted.keys():
                self._posts.pop(known).dismiss()
            for identity, subscription in wanted.items():
                postman = self._posts.get(identity)
                if postman is None:
                    postman = self._posts[identity] = _Postman(self, subscription)
                postman.wake()

    def stop(self) -> None:
        """End; what is under way is sent again, and marked, by the next process."""
        self.stopping.set()
        with self._lock:
            posts = list(self._posts.values())
        for postman in posts:
            postman.retire()
        for postman in posts:
            postman.join(_STOP_S)

    def progress(self, subscription_id: str) -> Progress | None:
        """How far that one has been served; None for one that is not served by webhook."""
        with self._lock:
            postman = self._posts.get(subscription_id)
        return None if postman is None else postman.progress

    def dead_letters(self, subscription_id: str) -> list[DeadLetter]:
        """What was given up, the newest last."""
        return DeadLetterFile(self._dead_path(subscription_id)).read()

    def redeliver(self, subscription_id: str, numbers: Collection[int] | None = None) -> list[int]:
        """Send dead letters once more: those of these numbers, None = all. The numbers of the events that will be.

        They come before whatever waits, and are dead letters again when they are given up again.
        """
        with self._lock:
            postman = self._posts.get(subscription_id)
        if postman is None:
            return []
        buried = [one.event.sequence for one in self.dead_letters(subscription_id) if one.event is not None]
        chosen = sorted({number for number in buried if numbers is None or number in numbers})
        if chosen:
            postman.take_back(chosen)
        return chosen

    def forget_strangers(self) -> None:
        """Remove what was kept for subscriptions that are gone. Not to be called when they could not be read."""
        known = {one.id for one in self.subscriptions.all()}
        folder = os.path.join(self.directory, _FOLDER)
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                owner = _OWNED.fullmatch(name)
                if owner is not None and owner[1] not in known:
                    with contextlib.suppress(OSError):
                        os.unlink(os.path.join(folder, name))

    def _dead_path(self, subscription_id: str) -> str:
        return os.path.join(self.directory, _FOLDER, f"{subscription_id}.dead.json")


class _Postman:
    """Serves one webhook."""

    def __init__(self, office: Deliverer, subscription: Subscription) -> None:
        self._office = office
        self._subscription = subscription
        self._target = target_of(subscription.endpoint)
        self._secret, after = office.subscriptions.served(subscription.id)
        self._path = os.path.join(office.directory, _FOLDER, f"{subscription.id}.json")
        self._dead = DeadLetterFile(os.path.join(office.directory, _FOLDER, f"{subscription.id}.dead.json"))
        kept = _read_progress(self._path)
        self.progress = kept or Progress(place=after)
        # On the same boot everything this file says was seen by us: one event at most was under way. After a power failure the
        # file may be an older one, and any of the events that were there may have been sent.
        self._doubt_one = kept is not None and kept.boot_id == office.boot_id
        self._doubt_through = 0 if kept is None or self._doubt_one else office.in_doubt_through
        self._doubted = {event.sequence for event in (*self.progress.held, *self.progress.again)}
        # A log that was taken away begins anew, with numbers that we are beyond.
        self.progress.place = min(self.progress.place, max(after, office.in_doubt_through))
        self._debounce = Debounce(subscription.debounce_ms / 1000.0, self.progress.held)
        self._lock = threading.Lock()
        self._bell = threading.Event()
        self._retired = threading.Event()
        self._thread: threading.Thread | None = None
        self._wanted: set[int] = set()
        """Dead letters to be taken back, by the number of their event."""
        self._dismissed = False
        if kept is None:
            self._store()  # what is sent from now on may be sent again by another process, which must know

    def wake(self) -> None:
        """Work, if there is no work under way."""
        with self._lock:
            self._bell.set()
            if self._thread is None and not self._retired.is_set():
                self._thread = threading.Thread(target=self._run, name=f"webhook-{self._subscription.id[:8]}", daemon=True)
                self._thread.start()

    def retire(self) -> None:
        """Work no more."""
        self._retired.set()
        self._bell.set()

    def dismiss(self) -> None:
        """Work no more, and leave nothing behind: there is no such subscription any more."""
        with self._lock:
            self._dismissed = True
            idle = self._thread is None
        self.retire()
        if idle:
            self._leave_nothing()

    def _leave_nothing(self) -> None:
        self._dead.forget()
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def take_back(self, numbers: Collection[int]) -> None:
        """Send the dead letters with these events once more."""
        with self._lock:
            self._wanted |= set(numbers)
        self.wake()

    def join(self, limit_s: float) -> None:
        """Wait for the end of what is under way."""
        with self._lock:  # one that is being started cannot be waited for yet
            thread = self._thread
        if thread is not None:
            thread.join(limit_s)

    def _run(self) -> None:
        try:
            while not self._retired.is_set():
                self._bell.clear()
                self._serve()
                with self._lock:
                    if not self._bell.is_set() and not self._dismissed:
                        self._thread = None
                        return
        except Exception:  # noqa: BLE001 - a thread that dies of a bug is begun anew with the next event
            _log.exception("webhook %s: nothing more is delivered to it until the next event", self._subscription.id)
        with self._lock:
            self._thread = None
            dismissed = self._dismissed
        if dismissed:
            self._leave_nothing()

    def _serve(self) -> None:
        """Deliver everything that is there, and what the debounce kept back, in its time."""
        while not self._retired.is_set():
            self._send_again()
            for event in self._events():
                self._deal_with(event)
                self._send_again()
                if self._retired.is_set():
                    return
            due_s = self._debounce.next_due_s()
            if due_s is None:
                return
            now_s = self._office.clock.now().mono_s
            if due_s > now_s:
                self._bell.wait(due_s - now_s)
                if self._bell.is_set():
                    self._bell.clear()
                    continue
            held = self._debounce.due(self._office.clock.now().mono_s)
            if held is not None and self._deliver(held):
                self._debounce.told(held, self._office.clock.now().mono_s)
                self._store()

    def _send_again(self) -> None:
        """Send the dead letters that somebody asked for."""
        with self._lock:
            wanted, self._wanted = self._wanted, set()
        if wanted:
            letters = [one.event for one in self._dead.read() if one.event is not None and one.event.sequence in wanted]
            self._doubted |= wanted
            self.progress.again += letters
            self.progress.dead -= len(letters)
            # In this order: whoever ends between the two has them sent twice, and never loses them.
            if self._store():
                self._rewrite(lambda: self._dead.drop(wanted))
        while self.progress.again and self._deliver(self.progress.again[0]):
            del self.progress.again[0]
            self.progress.attempts = 0
            self._store()

    def _events(self) -> Iterator[FaultEvent]:
        """Events after our place, as far as they are on the disk."""
        oldest = oldest_sequence(self._office.directory)
        if oldest > self.progress.place + 1:
            lost = oldest - 1 - self.progress.place
            self._bury(DeadLetter(self._now(), "the log had no more room for it", 0, lost=lost))
            self.progress.dead += lost
            self._move_to(oldest - 1)
        written = self._office.written()
        for event in read_journal(self._office.directory, self.progress.place):
            if event.sequence > written:
                return  # not on the disk: after a power failure its number would be another one's
            yield event

    def _deal_with(self, event: FaultEvent) -> None:
        if wants(self._subscription, event):
            now_s = self._office.clock.now().mono_s
            if len(self._debounce.held) < _MOST_HELD and not self._debounce.passes(event, now_s):
                self._move_to(event.sequence)
                return
            if not self._deliver(event):
                return
        self._move_to(event.sequence)

    def _move_to(self, place: int) -> None:
        self.progress.place = max(place, self.progress.place)
        self.progress.attempts = 0
        self._store()

    def _store(self) -> bool:
        """Keep how far it got; whether that is kept."""
        self.progress.boot_id = self._office.boot_id
        self.progress.held = self._debounce.held
        try:
            replace_file(self._path, _encoder.encode(self.progress))
        except WriteError as error:
            _log.error("webhook %s: how far it got is not kept: %s", self._subscription.id, error)
            return False
        return True

    def _deliver(self, event: FaultEvent) -> bool:
        """Send until the receiver has it or it is given up; False when we are to end before."""
        settings = self._office.settings
        body = _encoder.encode(event)
        pause_s = _FIRST_PAUSE_S
        while not self._retired.is_set():
            self.progress.attempts += 1
            answer, problem = self._attempt(event, body)
            if answer is not None and 200 <= answer.status < 300:
                self.progress.delivered += 1
                self.progress.problem = ""
                self.progress.failing_since = 0.0
                self.progress.last_success = self._now()
                return True
            now_s = self._office.clock.now().wall_s
            self.progress.failing_since = self.progress.failing_since or now_s
            self._tell(problem)
            waited_s = now_s - self.progress.failing_since
            used_up = settings.retries is not None and self.progress.attempts > settings.retries
            if used_up or waited_s >= settings.give_up_s or (answer is not None and answer.status == _GONE):
                self._bury(DeadLetter(self._now(), problem, self.progress.attempts, event))
                self.progress.dead += 1
                return True
            wanted_s = answer.retry_after_s if answer is not None and answer.retry_after_s is not None else 0.0
            longest_s = min(_LAST_PAUSE_S, max(pause_s, wanted_s))
            # Half of it at random, so that receivers that come back are not met by all nodes at once.
            self._office.pause(self._retired, longest_s * (0.5 + random.random() / 2))  # noqa: S311 - no secret
            pause_s = min(_LAST_PAUSE_S, pause_s * 2)
        return False

    def _attempt(self, event: FaultEvent, body: bytes) -> tuple[Answer | None, str]:
        office, target = self._office, self._target
        doubted = event.sequence <= self._doubt_through or event.sequence in self._doubted
        again = self.progress.attempts > 1 or self._doubt_one or doubted
        self._doubt_one = False
        try:
            addresses = office.transport.resolve(target.host, target.port)
            # Looked up once and used as it is: a name that means something else a moment later is not asked again.
            refusal = office.targets.refuses(target.host, addresses)
            if refusal:
                return None, refusal
            answer = office.transport.post(
                target, addresses[0], self._headers(event, body, again), body, office.settings.timeout_s
            )
        except Unreachable as error:
            return None, str(error)
        if 300 <= answer.status < 400:
            return answer, f"it answered {answer.status}: redirects are not followed, give its real address"
        return answer, f"it answered {answer.status}"

    def _headers(self, event: FaultEvent, body: bytes, again: bool) -> dict[str, str]:  # noqa: FBT001 - private
        timestamp = str(int(self._office.clock.now().wall_s))
        secret = self._secret.encode() if self._secret else self._office.node_key
        return {
            "Content-Type": "application/json",
            "User-Agent": "nodeproof",
            "X-CatMonitor-Event": event.type,
            "X-CatMonitor-EventID": event.event_id,
            "X-Nodeproof-Event": event.type,
            "X-Nodeproof-Event-Id": event.event_id,
            "X-Nodeproof-Sequence": str(event.sequence),
            "X-Nodeproof-Subscription": self._subscription.id,
            "X-Nodeproof-Attempt": str(self.progress.attempts),
            "X-Nodeproof-Redelivery": "true" if again else "false",
            "X-Nodeproof-Drill": "true" if event.drill else "false",
            "X-Nodeproof-Timestamp": timestamp,
            "X-Nodeproof-Signature": signature(secret, timestamp, body),
        }

    def _tell(self, problem: str) -> None:
        if problem != self.progress.problem:
            _log.warning("webhook %s (%s): %s; it is tried again", self._subscription.id, self._target.host, problem)
        self.progress.problem = problem
        self._store()

    def _bury(self, letter: DeadLetter) -> None:
        _log.error("webhook %s: given up: %s", self._subscription.id, letter.reason)
        self._rewrite(lambda: self._dead.bury(letter))

    def _rewrite(self, act: Callable[[], None]) -> None:
        try:
            act()
        except WriteError as error:
            _log.error("webhook %s: its dead letters are not kept: %s", self._subscription.id, error)

    def _now(self) -> str:
        return rfc3339(self._office.clock.now().wall_s)


def _read_progress(path: str) -> Progress | None:
    with contextlib.suppress(OSError, msgspec.MsgspecError), open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=Progress)
    return None
