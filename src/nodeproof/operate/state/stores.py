"""Every place where nodeproof keeps something, with what can be wrong there."""

import os
import re
import time
import zlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import msgspec

from nodeproof.config.schema import Config
from nodeproof.errors import NodeproofError, RecordError
from nodeproof.faults.dead_letters import DeadLetter
from nodeproof.faults.delivery import Progress
from nodeproof.faults.journal import segments
from nodeproof.faults.records import ACTIVE_FILE, read_state
from nodeproof.faults.subscriptions import SUBSCRIPTIONS_FILE
from nodeproof.host.atomic import remove_leftovers, store_file
from nodeproof.host.node_key import NodeKey
from nodeproof.host.signing_key import SigningKey
from nodeproof.model.fault import FaultEvent
from nodeproof.operate.state.problems import Problem, Store, set_aside
from nodeproof.operate.state.version import SCHEMA, read_form
from nodeproof.runs.index import RunIndex
from nodeproof.runs.store import RunStore
from nodeproof.sinks.jsonl_files import DataName
from nodeproof.stress.baselines import BaselineFile, BaselineStore
from nodeproof.stress.report_files import ReportFiles

__all__ = ["stores_of"]

_MAX_BYTES = 64 << 20
_BLOCK_BYTES = 1 << 20
_GZIP = 31
_LEFTOVER = re.compile(r"^\..+\.([0-9]+)-[0-9]+\.np-tmp$")
_SEGMENT = re.compile(r"events-[0-9]{12}\.jsonl")
_KPI = re.compile(r"straggler_kpi_[0-9]{4}-[0-9]{2}-[0-9]{2}\.jsonl")
_RUN_ID = re.compile(r"run-[0-9]{19}")
_ASIDE = "set it aside under another name"
_NO_FILE = "is a link, or no plain file: nothing of ours is"


def stores_of(config: Config, home: str, report_path: str) -> list[Store]:
    """All of them, in the order in which they depend on one another."""
    faults = config.faultsub.dir
    stores: list[Store] = [
        _Form(home),
        _Key(home),
        _Runs(home),
        _Baselines(home),
        _Lines("samples", config.storage.data_dir, lambda name: DataName.parse(name) is not None, _is_object),
        _Faults(faults),
        _Lines("fault log", faults, lambda name: _SEGMENT.fullmatch(name) is not None, _decodes(FaultEvent)),
        _Documents("subscriptions", faults, {SUBSCRIPTIONS_FILE: _decodes(dict)}),
        _Deliveries(os.path.join(faults, "deliveries")),
        _Lines("slow-node files", config.straggler_output.data_dir, lambda name: _KPI.fullmatch(name) is not None, _is_object),
        _Lines("audit log", home, lambda name: name in {"web-audit.jsonl", "web-audit.jsonl.1"}, _is_object),
    ]
    if report_path:
        stores.append(_Reports(report_path))
    folders = {store.path for store in stores if os.path.isdir(store.path)} | {config.snapshot.dir}
    return [*stores, _Leftovers(sorted(folders))]


def _decodes(kind: Any) -> Callable[[bytes], str]:  # noqa: ANN401 - whatever msgspec takes
    decoder = msgspec.json.Decoder(kind)

    def judge(raw: bytes) -> str:
        try:
            decoder.decode(raw)
        except (msgspec.MsgspecError, RecursionError) as error:
            return str(error)
        return ""

    return judge


_is_object = _decodes(dict[str, msgspec.Raw])


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


class _Form:
    """``state.json``."""

    name = "form"

    def __init__(self, home: str) -> None:
        self.path = home
        self.examined = 0

    def problems(self, *, deep: bool) -> Iterator[Problem]:
        """A file that cannot be read, or an upgrade that is not over."""
        del deep
        path = os.path.join(self.path, "state.json")
        self.examined = int(os.path.exists(path))
        try:
            form = read_form(self.path)
        except RecordError as error:
            yield Problem(path, str(error), _ASIDE, lambda: set_aside(path))
            return
        if form is not None and form.heading_for:
            what = f"a change from form {form.schema} to {form.heading_for} was cut short after {list(form.done)}"
            yield Problem(path, what, "", None)
        elif form is not None and form.schema > SCHEMA:
            yield Problem(path, f"form {form.schema} of nodeproof {form.nodeproof}, newer than this one's {SCHEMA}", "", None)


class _Key:
    """The secret that baselines are signed with, and the key pair that runs are."""

    name = "key of the node"

    def __init__(self, home: str) -> None:
        self.path = os.path.join(home, "identity")
        self._home = home
        self.examined = 0

    def problems(self, *, deep: bool) -> Iterator[Problem]:
        """One that is of no use."""
        del deep
        self.examined = 0
        secret, pair = NodeKey(self._home), SigningKey(self._home)
        keys: list[tuple[str, Callable[[], object]]] = [(secret.path, lambda: secret.sign("state", b""))]
        if find_spec("cryptography") is not None:
            keys.append((pair.path, lambda: pair.public))
        for path, use in keys:
            if os.path.lexists(path):
                self.examined += 1
                try:
                    use()
                except NodeproofError as error:
                    yield Problem(path, str(error), "", None)


class _Runs:
    """Stored runs and their index."""

    name = "runs"

    def __init__(self, home: str) -> None:
        self._home = home
        self.path = os.path.join(home, "runs")
        self.examined = 0
        self._index = RunIndex(os.path.join(self.path, ".index.sqlite3"))

    def problems(self, *, deep: bool) -> Iterator[Problem]:
        """Records that cannot be understood or were changed, and an index that does not say what is there."""
        store = RunStore(self._home)
        on_disk: set[str] = set()
        for benchmark in _names(self.path):
            folder = os.path.join(self.path, benchmark)
            if benchmark.startswith(".") or not os.path.isdir(folder):
                continue
            for name in _names(folder):
                if _RUN_ID.fullmatch(name) is None:
                    yield Problem(os.path.join(folder, name), "is no run", "", None)
                    continue
                on_disk.add(name)
                self.examined += 1
                yield from self._run(store, os.path.join(folder, name), name, deep=deep)
        yield from self._indexed(store, on_disk)
        for name in _names(os.path.join(self.path, ".open")):
            if name not in {run.run_id for run in store.going_on()}:
                place = os.path.join(self.path, ".open", name)
                yield Problem(place, "its owner died before it was stored", "store it as crashed", self._recover(store))

    def _run(self, store: RunStore, place: str, name: str, *, deep: bool) -> Iterator[Problem]:
        missing = [part for part in ("record.json", "manifest.json") if not os.path.isfile(os.path.join(place, part))]
        what = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing" if missing else ""
        if deep and not what:
            try:
                what = "; ".join(store.inspect(name).problems)
            except (NodeproofError, OSError) as error:
                what = str(error)
        if what:

            def mend() -> str:
                store.set_aside(name, what)
                return f"set aside as {os.path.join(self.path, '.damaged', name)}"

            yield Problem(place, what, "set the run aside, below .damaged", mend)

    def _indexed(self, store: RunStore, on_disk: set[str]) -> Iterator[Problem]:
        if not on_disk and not os.path.exists(self._index.path):
            return
        try:
            damage = self._index.damage()
            known = set(self._index.places()) if not damage else set()
        except RecordError as error:
            damage, known = str(error), set()
        if damage or known != on_disk:
            what = damage or f"lists {len(known)} runs where {len(on_disk)} lie: {len(known ^ on_disk)} differ"
            yield Problem(self._index.path, what, "make it again from the runs", self._rebuild(store, damaged=bool(damage)))

    def _rebuild(self, store: RunStore, *, damaged: bool) -> Callable[[], str]:
        def mend() -> str:
            aside = f"; the old one {set_aside(self._index.path)}" if damaged and os.path.exists(self._index.path) else ""
            store.recover()
            return f"made again: {len(self._index.places())} runs{aside}"

        return mend

    @staticmethod
    def _recover(store: RunStore) -> Callable[[], str]:
        def mend() -> str:
            found = store.recover()
            return f"stored: {', '.join(found) or 'nothing was left'}"

        return mend


class _Documents:
    """Files that are one JSON document each."""

    def __init__(self, name: str, folder: str, judges: dict[str, Callable[[bytes], str]]) -> None:
        self.name = name
        self.path = folder
        self.examined = 0
        self._judges = judges

    def problems(self, *, deep: bool) -> Iterator[Problem]:
        """Documents that cannot be understood."""
        del deep
        for name, judge in self._judges.items():
            path = os.path.join(self.path, name)
            if os.path.lexists(path):
                self.examined += 1
                what = _read_and(judge, path)
                if what:
                    yield Problem(path, what, _ASIDE, lambda path=path: set_aside(path), live=True)  # type: ignore[misc]


class _Deliveries(_Documents):
    """How far each subscriber was told, and what could not be delivered."""

    def __init__(self, folder: str) -> None:
        names = [name for name in _names(folder) if name.endswith(".json")]
        progress, dead = _decodes(Progress), _decodes(list[DeadLetter])
        super().__init__("deliveries", folder, {name: dead if name.endswith(".dead.json") else progress for name in names})


class _Faults:
    """What stands; made again from the log by the daemon when it is not there."""

    name = "faults"

    def __init__(self, folder: str) -> None:
        self.path = folder
        self.examined = 0

    def problems(self, *, deep: bool) -> Iterator[Problem]:
        """A state that cannot be understood, and gaps in the numbers of the log."""
        del deep
        path = os.path.join(self.path, ACTIVE_FILE)
        self.examined = int(os.path.lexists(path))
        try:
            read_state(self.path)
        except RecordError as error:
            would = "set it aside; the daemon makes it again from the log"
            yield Problem(path, str(error), would, lambda: set_aside(path), live=True)
        for _, segment in segments(self.path):
            if os.path.islink(segment):
                yield Problem(segment, "is a link, which no log of ours is", "", None)


class _Baselines:
    """What this machine did before."""

    name = "baselines"

    def __init__(self, home: str) -> None:
        self.path = os.path.join(home, "stress", "baselines")
        self.examined = 0
        self._store = BaselineStore(self.path, NodeKey(home))

    def problems(self, *, deep: bool) -> Iterator[Problem]:
        """Files that are not as this node wrote them."""
        del deep
        for name in _names(self.path):
            if not name.endswith(".json"):
                continue
            self.examined += 1
            path = os.path.join(self.path, name)
            what = _read_and(_decodes(BaselineFile), path) or self._vouched(path)
            if what:
                yield Problem(path, what, f"{_ASIDE}; it is begun anew", lambda path=path: set_aside(path))  # type: ignore[misc]

    def _vouched(self, path: str) -> str:
        try:
            with open(path, "rb") as file:
                found = msgspec.json.decode(file.read(_MAX_BYTES), type=BaselineFile)
            if self._store.path(found.benchmark, found.identity) != path:
                return f"is the baseline of {found.benchmark} {found.identity}, under another's name"
            self._store.read(found.benchmark, found.identity)
        except (OSError, NodeproofError, msgspec.MsgspecError) as error:
            return str(error)
        return ""


class _Reports:
    """The report of the newest stress job, and the history beside it."""

    name = "stress reports"

    def __init__(self, report_path: str) -> None:
        self.path = os.path.dirname(report_path)
        self.examined = 0
        self._files = ReportFiles(report_path)

    def problems(self, *, deep: bool) -> Iterator[Problem]:
        """Files that cannot be understood; of a history, what can be is kept."""
        del deep
        files = self._files
        self.examined = sum(os.path.lexists(path) for path in (files.latest_path, files.history_path))
        try:
            files.latest()
        except RecordError as error:
            yield Problem(files.latest_path, str(error), _ASIDE, lambda: set_aside(files.latest_path))
        damage = files.damage()
        if damage:
            would = f"{_ASIDE}, and keep the entries that can be understood"
            yield Problem(files.history_path, damage, would, files.mend_history)


class _Lines:
    """Files of JSON lines, packed or not."""

    def __init__(self, name: str, folder: str, ours: Callable[[str], bool], judge: Callable[[bytes], str]) -> None:
        self.name = name
        self.path = folder
        self.examined = 0
        self._ours = ours
        self._judge = judge

    def problems(self, *, deep: bool) -> Iterator[Problem]:
        """Packed files that cannot be unpacked, lines that cannot be read."""
        del deep
        for name in _names(self.path):
            path = os.path.join(self.path, name)
            if not self._ours(name):
                continue
            self.examined += 1
            if os.path.islink(path) or not os.path.isfile(path):
                yield Problem(path, _NO_FILE, _ASIDE, lambda path=path: set_aside(path), live=True)  # type: ignore[misc]
                continue
            if name.endswith(".gz"):
                what = _unpacks(path)
                if what:
                    yield Problem(path, what, _ASIDE, lambda path=path: set_aside(path), live=True)  # type: ignore[misc]
                continue
            bad = self._bad_lines(path)
            if bad:
                would = "keep these lines apart, in a file *.bad, and the others where they are"
                yield Problem(path, f"{bad} lines cannot be read", would, lambda path=path: self._sort(path), live=True)  # type: ignore[misc]

    def _bad_lines(self, path: str) -> int:
        try:
            with open(path, "rb") as file:
                return sum(bool(self._wrong(line)) for line in file)
        except OSError as error:
            return int(bool(error))

    def _wrong(self, line: bytes) -> str:
        return "cut off" if not line.endswith(b"\n") else self._judge(line)

    def _sort(self, path: str) -> str:
        good: list[bytes] = []
        bad: list[bytes] = []
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb") as file:
            for line in file:
                (bad if self._wrong(line) else good).append(line)
        aside = f"{path}.bad-{time.time_ns():019d}"
        store_file(aside, b"".join(bad))
        store_file(path, b"".join(good))
        return f"{len(bad)} lines kept apart as {aside}, {len(good)} stay"


class _Leftovers:
    """Temporary files of processes that died."""

    name = "leftovers"
    path = ""

    def __init__(self, folders: list[str]) -> None:
        self.examined = 0
        self._folders = folders

    def problems(self, *, deep: bool) -> Iterator[Problem]:
        """A line a folder."""
        del deep
        for folder in self._folders:
            left = [name for name in _names(folder) if (match := _LEFTOVER.match(name)) and not _lives(match[1])]
            self.examined += len(left)
            if left:
                what = f"{len(left)} temporary files that a crash left"

                def mend(folder: str = folder) -> str:
                    return f"{len(remove_leftovers(folder))} removed; those of a living process stay"

                yield Problem(folder, what, "remove them", mend)


def _lives(pid: str) -> bool:
    return os.path.exists(f"/proc/{pid}")


def _read_and(judge: Callable[[bytes], str], path: str) -> str:
    if os.path.islink(path) or not os.path.isfile(path):
        return _NO_FILE
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        return str(error.strerror or error)
    return f"more than {_MAX_BYTES} bytes" if len(raw) > _MAX_BYTES else judge(raw)


def _unpacks(path: str) -> str:
    """Why a packed file cannot be unpacked to its end; nothing of it is kept in memory."""
    unpacker = zlib.decompressobj(_GZIP)
    try:
        with open(path, "rb") as file:
            while block := file.read(_BLOCK_BYTES):
                while block:
                    unpacker.decompress(block, _BLOCK_BYTES)
                    block = unpacker.unconsumed_tail
    except OSError as error:
        return str(error.strerror or error)
    except zlib.error as error:
        return str(error)
    return "" if unpacker.eof else "ends before its end"
