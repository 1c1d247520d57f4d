"""``/api/runs/*``: records of stress items and benchmarks, their logs and files, and what is going on."""

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from nodeproof.errors import RecordError
from nodeproof.web import wire
from nodeproof.web.answers import Body, answer
from nodeproof.web.backstage import Backstage
from nodeproof.web.http_messages import Endpoint, Request, Response, Wire
from nodeproof.web.requests import Refused, path_of, query_of

if TYPE_CHECKING:
    from nodeproof.model.run import RunRecord
    from nodeproof.runs.manifest import FileEntry
    from nodeproof.runs.store import RunStore

__all__ = ["Download", "RunsApi", "runs_endpoints"]

_T = TypeVar("_T")
_encode = msgspec.json.Encoder().encode
_BLOCK_BYTES = 256 * 1024
_EQUALS = 30
"""Newest runs of a benchmark among which equal ones are looked for, to tell how far they differ."""


class RunsApi:
    """The endpoints of one server."""

    def __init__(self, backstage: Backstage) -> None:
        self._backstage = backstage

    async def listed(self, request: Request) -> Response:
        """Records, newest first, and what is going on."""
        query = query_of(request, wire.RunsQuery)

        def runs(store: "RunStore") -> object:
            from nodeproof.runs.benchmark_ids import canonical  # noqa: PLC0415 - with the store, loaded when asked for
            from nodeproof.web.run_wire import OpenRunHead, RunList  # noqa: PLC0415

            wanted = canonical(query.benchmark)
            heads = [
                OpenRunHead(
                    run_id=draft.run_id,
                    benchmark_id=draft.benchmark_id,
                    benchmark_name=draft.benchmark_name,
                    started_at=draft.started_at,
                    source=draft.source,
                )
                for draft in store.going_on()
                if wanted in {"", draft.benchmark_id}
            ]
            return RunList(going_on=heads, runs=store.history(wanted, query.limit))

        return await self._document(request, runs)

    async def one(self, request: Request) -> Response:
        """A record with its files."""
        run_id = path_of(request, wire.RunPath).id

        def view(store: "RunStore") -> object:
            from nodeproof.runs.live import read_live_run  # noqa: PLC0415 - with the store
            from nodeproof.web.run_wire import RunFile, RunView  # noqa: PLC0415

            draft = _draft(store, run_id)
            if draft is not None:
                live = read_live_run(store.runs_folder, run_id)
                return RunView(run_id=run_id, going_on=True, record=draft, files=[], problems=[], live=live)
            stored = store.inspect(run_id)
            files = [RunFile(name, entry.bytes, entry.sha256) for name, entry in _files(stored.path)]
            return RunView(run_id=run_id, going_on=False, record=stored.record, files=files, problems=list(stored.problems))

        return await self._document(request, view)

    async def messages(self, request: Request) -> Response:
        """What it said."""
        run_id = path_of(request, wire.RunPath).id
        query = query_of(request, wire.MessagesQuery)

        def part(store: "RunStore") -> object:
            from nodeproof.runs.reading import messages_of  # noqa: PLC0415 - with the store
            from nodeproof.web.run_wire import RunMessages  # noqa: PLC0415

            going_on = _draft(store, run_id) is not None
            messages = messages_of(store.place(run_id), query.after, query.limit)
            last = messages[-1].sequence if messages else query.after
            return RunMessages(run_id=run_id, going_on=going_on, messages=messages, next=last)

        return await self._document(request, part)

    async def compare(self, request: Request) -> Response:
        """Two records."""
        pair = query_of(request, wire.PairQuery)

        def comparison(store: "RunStore") -> object:
            from nodeproof.bench.compare.pair import compare_records, equal_runs  # noqa: PLC0415 - with the store

            first, second = store.inspect(pair.first), store.inspect(pair.second)
            others = store.records_like(first.record, _EQUALS)
            equals = equal_runs(first.record, others, [pair.first, pair.second])
            return compare_records(first.record, second.record, equals, problems=[*first.problems, *second.problems])

        return await self._document(request, comparison)

    async def file(self, request: Request) -> Response:
        """A file, as a download that no browser shows."""
        path = path_of(request, wire.RunFilePath)

        def opened(store: "RunStore") -> tuple[int, "FileEntry"]:
            from nodeproof.runs.reading import open_file  # noqa: PLC0415 - with the store

            return open_file(store.place(path.id), path.name)

        fd, entry = await self._work(opened)
        return Download(fd, entry.bytes, path.name, entry.sha256)

    async def _document(self, request: Request, make: "Callable[[RunStore], object]") -> Response:
        return answer(request, await self._work(lambda store: Body.of(_encode(make(store)), "application/json")))

    async def _work(self, make: "Callable[[RunStore], _T]") -> _T:
        def work() -> _T:
            try:
                return make(self._backstage.store())
            except RecordError as error:
                raise Refused(404, "no such run", str(error)) from None

        return await self._backstage.run(work)


def runs_endpoints(backstage: Backstage) -> Mapping[str, Endpoint]:
    """By the ids of the contract."""
    api = RunsApi(backstage)
    return {
        "runs": api.listed,
        "run": api.one,
        "runMessages": api.messages,
        "runsCompare": api.compare,
        "runFile": api.file,
    }


def _draft(store: "RunStore", run_id: str) -> "RunRecord | None":
    """The run, when it is going on."""
    return next((draft for draft in store.going_on() if draft.run_id == run_id), None)


def _files(place: str) -> "list[tuple[str, FileEntry]]":
    """Files of a stored run; none where its manifest cannot be read, which is told as a problem already."""
    from nodeproof.runs.reading import files_of  # noqa: PLC0415 - with the store

    try:
        return list(files_of(place).items())
    except RecordError:
        return []


class Download(Response):
    """``size`` bytes of ``fd``, which is closed at the end whatever happens. A file of a stored run never changes."""

    def __init__(self, fd: int, size: int, name: str, sha256: str) -> None:
        headers = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Length": str(size),
            "Cache-Control": "no-cache",
            "ETag": f'"{sha256}"',
        }
        super().__init__(media_type="application/octet-stream", headers=headers)
        self._fd = fd
        self._size = size

    async def send(self, wire: Wire, *, head_only: bool) -> None:
        """Send it block by block, each once the reader has taken the one before."""
        loop = asyncio.get_running_loop()
        try:
            await self.begin(wire)
            left = 0 if head_only else self._size
            while left > 0 and (block := await loop.run_in_executor(None, os.read, self._fd, min(left, _BLOCK_BYTES))):
                left -= len(block)
                await wire.write(block)
            await wire.end()
        finally:
            os.close(self._fd)
