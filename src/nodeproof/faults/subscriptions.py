"""Who wants to be told of what, kept on disk: subscriptions survive a restart, and so does how far each has been served."""

import contextlib
import os
import threading
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

import msgspec

from nodeproof.errors import RecordError, UsageError
from nodeproof.host.atomic import store_file
from nodeproof.host.webhook_client import Target, in_networks, is_network, is_private
from nodeproof.model.fault import Delivery, Subscription

__all__ = ["SUBSCRIPTIONS_FILE", "Request", "Subscriptions", "Targets", "target_of"]

SUBSCRIPTIONS_FILE = "subscriptions.json"
_SECRET_MODE = 0o600
_MOST = 64
_MOST_ENTRIES = 64
_MOST_CHARS = 64
_URL_CHARS = 2048
_SECRET_CHARS = (16, 256)
_DEBOUNCE_MS = 86_400_000
_SEVERITIES = ("", "info", "warning", "critical")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a subscriber sends; ``id`` and ``created_at`` are assigned, whatever it says there."""

    types: list[str] | None = None
    components: list[str] | None = None
    npu_ids: list[str] | None = None
    delivery: str = "webhook"
    endpoint: str = ""
    debounce_ms: int = 0
    min_severity: str = ""
    secret: str = ""
    """Signs the deliveries; never told again."""
    id: str = ""
    created_at: str = ""


class _Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    subscription: Subscription
    secret: str = ""
    after: int = 0
    """Events up to this number are older than the subscription."""


class _File(msgspec.Struct, frozen=True):
    schema: int
    entries: list[_Kept]


class Targets:
    """Which addresses may be sent to: public ones, and of private ones those that the configuration names."""

    def __init__(self, allowed: Collection[str]) -> None:
        """``allowed``: addresses and networks (``10.1.0.0/16``), and host names that may mean any address."""
        self._networks = [text for text in allowed if is_network(text)]
        self._names = frozenset(text.lower().rstrip(".") for text in allowed if not is_network(text))

    def refuses(self, host: str, addresses: Collection[str]) -> str:
        """Why nothing may be sent to ``host``, which means ``addresses``; empty when it may. One bad address spoils them all."""
        if host.lower().rstrip(".") in self._names:
            return ""
        for address in addresses:
            if is_private(address) and not in_networks(address, self._networks):
                what = address if address == host else f"{host} means {address}, which"
                return f"{what} is no public address; faultsub.webhook_allow may name it"
        return ""


def target_of(endpoint: str) -> Target:
    """The parts of a webhook's URL. Raises UsageError for one that cannot be sent to."""
    if len(endpoint) > _URL_CHARS or not endpoint.isascii() or any(char <= " " or char == "\x7f" for char in endpoint):
        raise UsageError(f"endpoint: no URL of at most {_URL_CHARS} printable ASCII characters")
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"endpoint: {error}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError("endpoint: write http://HOST[:PORT]/PATH or https://...")
    if parts.username is not None or parts.password is not None:
        raise UsageError("endpoint: a URL that carries a user or password ends up in logs; give a secret instead")
    if port == 0:
        raise UsageError("endpoint: nothing listens at port 0")
    tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(tls, parts.hostname, port or (443 if tls else 80), path)


class Subscriptions:
    """All of them. May be called from several threads."""

    def __init__(self, directory: str, targets: Targets, now: Callable[[], str]) -> None:
        self._path = os.path.join(directory, SUBSCRIPTIONS_FILE)
        self._targets = targets
        self._now = now
        self._lock = threading.Lock()
        self._entries: dict[str, _Kept] = {}

    def load(self) -> None:
        """Take up what was kept. A file that cannot be read is set aside, and told of by RecordError: there are none then."""
        try:
            with open(self._path, "rb") as file:
                kept = msgspec.json.decode(file.read(), type=_File)
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError) as error:
            with contextlib.suppress(OSError):
                os.replace(self._path, f"{self._path}.bad")
            raise RecordError(f"{self._path} cannot be read ({error}); it is set aside as {self._path}.bad") from None
        self._entries = {entry.subscription.id: entry for entry in kept.entries}

    def add(self, wish: Request, after: int) -> Subscription:
        """Keep a new one; it is told of events numbered above ``after``. Raises UsageError for a wish that cannot be met."""
        _check(wish)
        if wish.delivery == Delivery.WEBHOOK:
            self._check_target(wish.endpoint)
        subscription = Subscription(
            id=f"sub-{os.urandom(16).hex()}",
            delivery=Delivery(wish.delivery),
            created_at=self._now(),
            types=wish.types or [],
            components=wish.components or [],
            npu_ids=wish.npu_ids or [],
            endpoint=wish.endpoint if wish.delivery == Delivery.WEBHOOK else "",
            debounce_ms=wish.debounce_ms,
            min_severity=wish.min_severity,
            signed=bool(wish.secret),
        )
        with self._lock:
            if len(self._entries) >= _MOST:
                raise UsageError(f"there are {_MOST} subscriptions; delete one first")
            self._store({**self._entries, subscription.id: _Kept(subscription, wish.secret, after)})
        return subscription

    def _check_target(self, endpoint: str) -> None:
        host = target_of(endpoint).host
        if is_network(host) and (refusal := self._targets.refuses(host, [host])):
            raise UsageError(f"endpoint: {refusal}")

    def remove(self, subscription_id: str) -> bool:
        """Whether there was such a one."""
        with self._lock:
            if subscription_id not in self._entries:
                return False
            self._store({key: entry for key, entry in self._entries.items() if key != subscription_id})
            return True

    def all(self) -> list[Subscription]:
        """Every one, the oldest first."""
        with self._lock:
            return [entry.subscription for entry in self._entries.values()]

    def get(self, subscription_id: str) -> Subscription | None:
        """That one."""
        with self._lock:
            entry = self._entries.get(subscription_id)
        return None if entry is None else entry.subscription

    def served(self, subscription_id: str) -> tuple[str, int]:
        """Its secret, and the number of the last event before it."""
        with self._lock:
            entry = self._entries[subscription_id]
        return entry.secret, entry.after

    def _store(self, entries: dict[str, _Kept]) -> None:
        store_file(self._path, msgspec.json.encode(_File(1, list(entries.values()))), mode=_SECRET_MODE)
        self._entries = entries


def _check(wish: Request) -> None:
    """Raises UsageError, naming the key."""
    for key, entries in (("types", wish.types), ("components", wish.components), ("npu_ids", wish.npu_ids)):
        for entry in entries or ():
            if not 0 < len(entry) <= _MOST_CHARS or not entry.isprintable():
                raise UsageError(f"{key}: {entry[:80]!r} is no name of at most {_MOST_CHARS} characters")
        if len(entries or ()) > _MOST_ENTRIES:
            raise UsageError(f"{key}: more than {_MOST_ENTRIES} entries")
    if wish.delivery not in {"webhook", "poll"}:
        raise UsageError(f"delivery: {wish.delivery[:40]!r} is neither webhook nor poll")
    if wish.delivery == Delivery.WEBHOOK and not wish.endpoint:
        raise UsageError("endpoint: a webhook needs one")
    if not 0 <= wish.debounce_ms <= _DEBOUNCE_MS:
        raise UsageError(f"debounce_ms: not within 0 and {_DEBOUNCE_MS}")
    if wish.min_severity not in _SEVERITIES:
        raise UsageError(f"min_severity: {wish.min_severity[:40]!r} is none of info, warning, critical")
    low, high = _SECRET_CHARS
    if wish.secret and not low <= len(wish.secret) <= high:
        raise UsageError(f"secret: not within {low} and {high} characters")
