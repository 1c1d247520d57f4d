"""What is loaded only where faults are served: the interface, subscriptions and their delivery, as one thing."""

import logging
import os
from collections.abc import Collection

from nodeproof.clock import Clock, rfc3339
from nodeproof.errors import RecordError, UsageError, WriteError
from nodeproof.faults.api import MOST_BODY_BYTES, FaultApi
from nodeproof.faults.delivery import Deliverer, DeliverySettings
from nodeproof.faults.desk import FaultDesk
from nodeproof.faults.subscriptions import Subscriptions, Targets
from nodeproof.host.atomic import store_file
from nodeproof.host.http_server import HttpServer, ServerLimits
from nodeproof.host.users import UserList

__all__ = ["KEY_FILE", "FaultService"]

_log = logging.getLogger(__name__)
KEY_FILE = "webhook.key"
"""In the directory of the faults: the key of this node, in hexadecimal digits; it signs where a subscriber gave no secret."""
_KEY_BYTES = 32
_LIMITS = ServerLimits(connections=32, head_s=5.0, answer_s=10.0, idle_s=30.0, body_bytes=MOST_BODY_BYTES)
_METHODS = ("GET", "HEAD", "POST", "DELETE")
_REMEDY = "stop that process, or set faultsub.rest_addr to another one"


class FaultService:
    """Serves the faults of ``desk`` at ``address`` between :meth:`start` and :meth:`stop`."""

    def __init__(
        self,
        desk: FaultDesk,
        clock: Clock,
        address: str,
        *,
        boot_id: str,
        settings: DeliverySettings,
        buffer: int,
        operators: Collection[str] = (),
        webhook_allow: Collection[str] = (),
        allowed_hosts: Collection[str] = (),
    ) -> None:
        """Nothing listens yet. Raises UsageError for an address that is none, and for an operator that this machine has not.

        ``operators``: who may subscribe and hand events in, beside root and this process's own user.
        """
        self._desk = desk
        targets = Targets(webhook_allow)
        self._subscriptions = Subscriptions(desk.directory, targets, lambda: rfc3339(clock.now().wall_s))
        self._deliverer = Deliverer(
            desk.directory,
            self._subscriptions,
            targets,
            clock,
            boot_id=boot_id,
            node_key=b"",
            written=lambda: desk.written,
            settings=settings,
        )
        api = FaultApi(
            desk,
            self._subscriptions,
            self._deliverer,
            buffer=buffer,
            operators=_operators(operators),
            allowed_hosts=allowed_hosts,
        )
        self.server = HttpServer(
            [address],
            {},
            allowed_hosts=allowed_hosts,
            limits=_LIMITS,
            remedy=_REMEDY,
            otherwise=api.answer,
            methods=_METHODS,
            with_ends=True,
        )

    def start(self) -> None:
        """Listen, and serve subscribers. Raises AddressInUseError, naming the holder."""
        self.server.start()
        try:
            self._deliverer.node_key = _node_key(self._desk.directory)
        except WriteError as error:
            _log.error("%s; until then deliveries are signed with a key that nobody knows", error)
            self._deliverer.node_key = os.urandom(_KEY_BYTES)
        try:
            self._subscriptions.load()
            self._deliverer.forget_strangers()
        except RecordError as error:
            _log.error("%s", error)
        self._deliverer.start()
        self._desk.listeners.append(self._deliverer.wake)

    def stop(self) -> None:
        """End."""
        self._desk.listeners.clear()
        self.server.stop()
        self._deliverer.stop()


def _operators(names: Collection[str]) -> UserList:
    try:
        return UserList(names)
    except UsageError as error:
        raise UsageError(f"faultsub.operators: {error}") from None


def _node_key(directory: str) -> bytes:
    """The key of this node, made when there is none. Raises WriteError."""
    path = os.path.join(directory, KEY_FILE)
    try:
        with open(path, "rb") as file:
            key = file.read(1024).strip()
    except FileNotFoundError:
        key = os.urandom(_KEY_BYTES).hex().encode("ascii")
        store_file(path, key + b"\n", mode=0o600)
    except OSError as error:
        raise WriteError(path, f"{error.strerror}", remedy="let this user read it, or remove it") from None
    return key
