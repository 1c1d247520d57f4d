"""The machine as collectors see it: its files, its programs, its clock, and the slow sources that several collectors share."""

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from nodeproof.clock import Clock, SystemClock
from nodeproof.host.background import Background
from nodeproof.host.commands import Commands, HostCommands
from nodeproof.host.files import FileTree

if TYPE_CHECKING:
    from nodeproof.host.dcmi import Dcmi
    from nodeproof.host.nvml import Nvml

__all__ = ["Machine"]

_T = TypeVar("_T")


class Machine:
    """Everything outside that a collector may touch; a test hands in a recorded one (``nodeproof.host.recorded``)."""

    def __init__(
        self, files: FileTree, commands: Commands, clock: Clock, nvml: "Nvml | None" = None, dcmi: "Dcmi | None" = None
    ) -> None:
        self.files = files
        self.commands = commands
        self.clock = clock
        self._nvml = nvml
        self._dcmi = dcmi
        self._own = False
        """It is the machine that this process runs on."""
        self._lock = threading.RLock()
        self._shared: dict[object, object] = {}
        self._slow: list[Background[object]] = []

    @classmethod
    def here(cls, root: str = "/") -> "Machine":
        """This machine, its files below ``root`` (``/host`` in a container)."""
        files, commands = FileTree(root), cast("Commands", HostCommands())
        if not root.strip("/") and os.geteuid() != 0:
            from nodeproof.host.reader.client import own_or_lent  # noqa: PLC0415 - what root needs not, costs it nothing

            opener, commands = own_or_lent()
            files = FileTree(root, opener)
        machine = cls(files, commands, SystemClock())
        machine._own = True
        return machine

    @property
    def nvml(self) -> "Nvml | None":
        """The way to ask NVML, made when somebody wants to; None = nobody can here."""
        if self._nvml is None and self._own:
            from nodeproof.host.nvml import HelperNvml  # noqa: PLC0415 - only where there are cards

            self._nvml = HelperNvml()
        return self._nvml

    @property
    def dcmi(self) -> "Dcmi | None":
        """The way to ask DCMI, made when somebody wants to; None = nobody can here."""
        if self._dcmi is None and self._own:
            from nodeproof.host.dcmi import HelperDcmi  # noqa: PLC0415 - only where there are chips

            self._dcmi = HelperDcmi()
        return self._dcmi

    def may_use(self, device: str, program: str) -> bool:
        """Whether ``program`` may open ``device``: by our own rights, or by those of the reader."""
        return self.files.can_read(device) or self.commands.lent(program)

    def shared(self, make: "Callable[[Machine], _T]") -> _T:
        """The one ``make(self)`` of this machine: a source that several collectors read is made once."""
        with self._lock:
            if make not in self._shared:
                self._shared[make] = make(self)
            return cast("_T", self._shared[make])

    def background(self, name: str, call: Callable[[], _T], *, interval_s: float, deadline_s: float) -> Background[_T]:
        """A slow source on this machine's clock; :meth:`settle` waits for it."""
        source = Background(name, call, interval_s=interval_s, deadline_s=deadline_s, clock=self.clock)
        with self._lock:
            self._slow.append(cast("Background[object]", source))
        return source

    def retire(self, source: Background[_T]) -> None:
        """Forget a slow source whose device or mount has gone."""
        with self._lock:
            self._slow = [kept for kept in self._slow if kept is not source]

    def settle(self, timeout_s: float) -> None:
        """Wait, at most so long in all, for the slow calls in flight: for commands that read only once."""
        deadline = self.clock.now().mono_s + timeout_s
        with self._lock:
            slow = list(self._slow)
        for source in slow:
            source.wait(max(0.0, deadline - self.clock.now().mono_s))

    def close(self) -> None:
        """Give descriptors back and end programs in flight; shared sources that have a ``close`` of their own end first."""
        with self._lock:
            shared = list(self._shared.values())
        for source in (*shared, self._nvml, self._dcmi, self.commands):
            end = getattr(source, "close", None)
            if callable(end):
                end()
        self.files.close()
