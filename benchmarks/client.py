"""The endpoint client as an instrument: what an event costs it, how many it takes, and how far its stamps are off.

    python benchmarks/client.py --aiperf PYTHON --guidellm PYTHON --aiohttp PYTHON --vllm-module FILE

Everything in one run: the server on the first processor, one client after the other on the last one. Peers run in environments of
their own; each ``PYTHON`` is the interpreter of one, and a peer that is not named is left out. Of aiperf and guidellm the client
that their workers use is driven, without the records and queues around it; of vLLM's bench client the module itself. The limit is
a bare loop over sockets that reads, stamps and counts, and understands nothing.

* ``paced``: N streams of 20 tokens a second, one event a write; CPU time an event of the whole client.
* ``burst``: 64 streams as quick as the client can take them; events a second of its CPU time.
* ``unary``: 64 connections, short JSON answers; requests a second of CPU time.
* ``accuracy``: our stamps against the server's own record of its writes, on the same clock, at growing numbers of streams.
"""

import argparse
import asyncio
import gc
import json
import os
import random
import select
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from array import array
from collections.abc import Awaitable, Callable
from importlib import metadata, util
from pathlib import Path

TOKENS_PER_S = 20.0
SECONDS = 10.0
STREAMS = 600
BURST_EVENTS = 512
BURST_STREAMS = 64
BURST_REQUESTS = 1200
UNARY_REQUESTS = 12000
ACCURACY_STREAMS = (64, 256, 400, 600, 800, 1024)
MEDIAN_LIMIT_MS, P99_LIMIT_MS = 0.2, 1.0
"""The instrument is saturated where a stamp's error, of TTFT or ITL, exceeds one of these."""
ROUNDS = 2
MODULES = {
    "ours": ("nodeproof.bench.client",),
    "aiohttp": ("aiohttp",),
    "aiperf": ("aiperf.transports.aiohttp_client",),
    "guidellm": ("guidellm.backends.openai.http",),
    "vllm": ("aiohttp", "tqdm.asyncio", "regex"),
}


# What drives a client: run by the interpreter of its own environment.


def body(tokens: int, *, stream: bool = True) -> bytes:
    """One question."""
    return json.dumps(
        {
            "model": "m",
            "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": tokens,
            "stream": stream,
            "stream_options": {"include_usage": True},
        }
    ).encode()


def offsets(count: int) -> list[float]:
    """Starts of the streams, spread over one second."""
    chance = random.Random(1)
    return sorted(chance.random() for _ in range(count))


def drive_bare(url: str, streams: int, tokens: int, requests: int, *, paced: bool) -> int:
    """Read, stamp, count; nothing else."""
    host, port = url.removeprefix("http://").split(":")
    question = body(tokens)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(question)}\r\n\r\n".encode()
    sockets = {}
    poll = select.epoll()
    starts = offsets(streams) if paced else [0.0] * streams
    for _ in range(streams):
        sock = socket.create_connection((host, int(port)))
        sock.setblocking(False)
        sockets[sock.fileno()] = sock
        poll.register(sock.fileno(), select.EPOLLIN)
    waiting = list(zip(starts, sockets.values(), strict=True))
    begin = time.monotonic()  # when all are connected: streams that begin at once would tick at once, which costs less
    stamps, left, events = array("d"), requests, 0
    buffer = bytearray(262144)
    sent = 0
    while left:
        now = time.monotonic() - begin
        while waiting and waiting[0][0] <= now:
            waiting.pop(0)[1].send(head + question)
            sent += 1
        for fd, _ in poll.poll(max(0.0, waiting[0][0] - time.monotonic() + begin) if waiting else None):
            size = sockets[fd].recv_into(buffer)
            stamps.append(time.monotonic())
            events += buffer.count(b"data: ", 0, size)
            if buffer.endswith(b"0\r\n\r\n", 0, size):
                left -= 1
                if sent < requests:
                    sockets[fd].send(head + question)
                    sent += 1
    return events


async def drive_ours(url: str, streams: int, tokens: int, requests: int, *, paced: bool, stream: bool, out: str) -> int:
    """The client of nodeproof."""
    from nodeproof.bench.address import Address
    from nodeproof.bench.ask import Ask
    from nodeproof.bench.client import Client

    ask = Ask(prompt="hello", max_tokens=tokens, stream=stream)
    stamps: dict[str, list[float]] = {}
    async with Client(Address.of(url), "m") as client:
        request = client.request_bytes(ask)

        async def send() -> int:
            exchange = await client.send_bytes(request, ask)
            assert exchange.ok, exchange.detail
            if out:
                stamps[exchange.id.rpartition("-")[2]] = exchange.chunks_s.tolist()
            return len(exchange.chunks_s)

        events = await spread(send, streams, requests, paced=paced)
    if out:
        Path(out).write_text(json.dumps(stamps))
    return events


async def drive_aiohttp(url: str, streams: int, tokens: int, requests: int, *, paced: bool, stream: bool) -> int:
    """Aiohttp as a careful user would have it: no limits, no line iteration, a stamp a read, JSON decoded."""
    import aiohttp

    question = body(tokens, stream=stream)
    headers = {"Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send() -> int:
            async with session.post(f"{url}/v1/chat/completions", data=question, headers=headers) as response:
                if not stream:
                    json.loads(await response.read())
                    return 1
                carry, count, stamps = b"", 0, array("d")
                async for piece in response.content.iter_any():
                    stamps.append(time.monotonic())
                    *events, carry = (carry + piece).split(b"\n\n")
                    for event in events:
                        if event != b"data: [DONE]":
                            json.loads(event[6:])
                            count += 1
                return count

        return await spread(send, streams, requests, paced=paced)


async def drive_aiperf(url: str, streams: int, tokens: int, requests: int, *, paced: bool) -> int:
    """The HTTP client of aiperf's workers."""
    from aiperf.transports.aiohttp_client import AioHttpClient

    client = AioHttpClient()
    question, headers = body(tokens), {"Content-Type": "application/json", "Accept": "text/event-stream"}

    async def send() -> int:
        record = await client._request("POST", f"{url}/v1/chat/completions", headers, data=question)
        assert record.error is None, record.error
        return len(record.responses)

    events = await spread(send, streams, requests, paced=paced)
    await client.close()
    return events


async def drive_guidellm(url: str, streams: int, tokens: int, requests: int, *, paced: bool) -> int:
    """The backend of guidellm's workers."""
    from guidellm.backends.openai.http import OpenAIHTTPBackend
    from guidellm.schemas import GenerationRequest, RequestInfo
    from guidellm.schemas.backends import OpenAIHTTPBackendArgs

    backend = OpenAIHTTPBackend(OpenAIHTTPBackendArgs(target=url, model="m", max_tokens=tokens, http2=False))
    await backend.process_startup()

    async def send() -> int:
        request = GenerationRequest(columns={"text_column": ["hello"]})
        info = RequestInfo(request_id=request.request_id)
        async for _ in backend.resolve(request, info):
            pass
        return int(info.timings.request_iterations)

    events = await spread(send, streams, requests, paced=paced)
    await backend.process_shutdown()
    return events


async def drive_vllm(url: str, streams: int, tokens: int, requests: int, *, paced: bool, module: str) -> int:
    """VLLM's bench client: its module alone, with the session that ``vllm bench serve`` gives it."""
    import aiohttp

    spec = util.spec_from_file_location("endpoint_request_func", module)
    assert spec is not None
    assert spec.loader is not None
    loaded = util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=0, ttl_dns_cache=300, use_dns_cache=True, keepalive_timeout=60)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=21600)) as session:

        async def send() -> int:
            asked = loaded.RequestFuncInput(
                prompt="hello", api_url=f"{url}/v1/chat/completions", prompt_len=1, output_len=tokens, model="m"
            )
            output = await loaded.async_request_openai_chat_completions(asked, session)
            assert output.success, output.error
            return len(output.itl) + 1

        return await spread(send, streams, requests, paced=paced)


async def spread(send: Callable[[], Awaitable[int]], streams: int, requests: int, *, paced: bool) -> int:
    """So many slots, each asking again when it has its answer."""
    left = [requests]
    total = 0

    async def slot(start_s: float) -> int:
        count = 0
        if start_s:
            await asyncio.sleep(start_s)
        while left[0] > 0:
            left[0] -= 1
            count += await send()
        return count

    starts = offsets(streams) if paced else [0.0] * streams
    for count in await asyncio.gather(*(slot(start_s) for start_s in starts)):
        total += count
    return total


def driver(options: argparse.Namespace) -> Callable[[], int]:
    """What runs the client that is asked for."""
    name, paced, stream = options.drive, options.mode == "paced", options.mode != "unary"
    url, streams, tokens, requests = options.url, options.streams, options.tokens, options.requests
    if name == "bare":
        return lambda: drive_bare(url, streams, tokens, requests, paced=paced)
    if name == "ours":
        from nodeproof.bench import reactor

        return lambda: reactor.run(drive_ours(url, streams, tokens, requests, paced=paced, stream=stream, out=options.out))
    if name == "aiohttp":
        return lambda: asyncio.run(drive_aiohttp(url, streams, tokens, requests, paced=paced, stream=stream))
    if name == "vllm":
        return lambda: asyncio.run(drive_vllm(url, streams, tokens, requests, paced=paced, module=options.vllm_module))
    import uvloop  # both come with it, and use it

    uvloop.install()
    peer = drive_aiperf if name == "aiperf" else drive_guidellm
    return lambda: asyncio.run(peer(url, streams, tokens, requests, paced=paced))


def drive(options: argparse.Namespace) -> None:
    """Run one client and tell what it used."""
    run = driver(options)
    for module in MODULES.get(options.drive, ()):  # what loading costs is no part of an event
        __import__(module)
    gc.collect()
    gc.freeze()
    cpu_s, wall_s = time.process_time(), time.monotonic()
    events = run()
    used_s, took_s = time.process_time() - cpu_s, time.monotonic() - wall_s
    print(json.dumps({"events": events, "cpu_s": used_s, "wall_s": took_s, "requests": options.requests}))


# The burst server: one write an answer, so that it is never the limit.


def serve_burst() -> None:
    """Answer every question with the same bytes, as quickly as a socket takes them."""
    chunk = {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
    event = (
        b"data: " + json.dumps({**chunk, "choices": [{"index": 0, "delta": {"content": " tok"}, "finish_reason": None}]}).encode()
    )
    last = b"data: " + json.dumps({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}).encode()
    pieces = [event + b"\n\n"] * BURST_EVENTS + [last + b"\n\ndata: [DONE]\n\n"]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    stream = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"
    answer = json.dumps(
        {
            "id": "chatcmpl-0",
            "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": " tok"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        }
    ).encode()
    unary = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer

    class Server(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport
            self.held = b""

        def data_received(self, data: bytes) -> None:
            self.held += data
            if self.held.endswith(b"}"):
                self.transport.write(stream if b'"stream": true' in self.held or b'"stream":true' in self.held else unary)
                self.held = b""

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=4096)
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()

    asyncio.run(main())


# The comparison


class Bench:
    """Starts servers and clients, each on its processor."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.pythons = {"bare": sys.executable, "ours": sys.executable}
        for name in ("aiohttp", "aiperf", "guidellm"):
            if getattr(options, name):
                self.pythons[name] = getattr(options, name)
        if options.vllm_module and options.aiohttp:
            self.pythons["vllm"] = options.aiohttp
        self.module = options.vllm_module or ""
        cpus = sorted(os.sched_getaffinity(0))
        self.server_cpu, self.client_cpu = str(cpus[0]), str(cpus[-1])

    def server(self, *arguments: str) -> tuple[subprocess.Popen[str], str]:
        """A server and its address."""
        started = subprocess.Popen(
            ["taskset", "-c", self.server_cpu, sys.executable, *arguments], stdout=subprocess.PIPE, text=True
        )
        assert started.stdout is not None
        return started, started.stdout.readline().strip()

    def client(self, name: str, url: str, mode: str, streams: int, tokens: int, requests: int, out: str = "") -> dict[str, float]:
        """What one client used."""
        command = ["taskset", "-c", self.client_cpu, self.pythons[name], __file__, "--drive", name, "--url", url, "--mode", mode]
        command += ["--streams", str(streams), "--tokens", str(tokens), "--requests", str(requests)]
        command += ["--vllm-module", self.module] if name == "vllm" else []
        command += ["--out", out] if out else []
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr[-2000:]}")
        used: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return used

    def paced(self) -> dict[str, float]:
        """Microseconds of CPU time an event, medians of interleaved rounds."""
        tokens = int(SECONDS * TOKENS_PER_S)
        found: dict[str, list[float]] = {name: [] for name in self.pythons}
        for _ in range(ROUNDS):
            for name in self.pythons:
                server, url = self.server("-m", "nodeproof.bench.testing", "--tpot-ms", "50", "--ttft-ms", "50", "--no-log")
                used = self.client(name, url, "paced", STREAMS, tokens, STREAMS)
                server.kill()
                server.wait()
                assert used["events"] >= 0.98 * STREAMS * tokens, f"{name} saw {used['events']:g} events"
                found[name].append(used["cpu_s"] / (STREAMS * tokens) * 1e6)
        return {name: statistics.median(values) for name, values in found.items()}

    def rates(self, mode: str, requests: int, each: int, names: list[str]) -> dict[str, float]:
        """So many a second of CPU time."""
        server, url = self.server(__file__, "--serve-burst")
        found: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(ROUNDS):
            for name in names:
                share = requests // 8 if name == "guidellm" else requests
                used = self.client(name, url, mode, BURST_STREAMS, each, share)
                found[name].append(share * each / used["cpu_s"])
        server.kill()
        server.wait()
        return {name: statistics.median(values) for name, values in found.items()}

    def accuracy(self, streams: int, folder: str) -> dict[str, float]:
        """Errors of our stamps in milliseconds, and how busy the client was."""
        tokens = int(SECONDS * TOKENS_PER_S)
        server, url = self.server("-m", "nodeproof.bench.testing", "--tpot-ms", "50", "--ttft-ms", "50")
        out = os.path.join(folder, "stamps.json")
        used = self.client("ours", url, "paced", streams, tokens, streams, out)
        with urllib.request.urlopen(f"{url}/nodeproof/log") as answer:  # loopback
            writes = json.load(answer)
        server.kill()
        server.wait()
        stamps = json.loads(Path(out).read_text())
        first, gaps = [], []
        for number, seen in stamps.items():
            truth = writes[number][: len(seen)]
            first.append((seen[0] - truth[0]) * 1e3)
            gaps += [abs((b - a) - (d - c)) * 1e3 for a, b, c, d in zip(seen, seen[1:], truth, truth[1:], strict=False)]
        first.sort()
        gaps.sort()

        def at(values: list[float], q: float) -> float:
            return values[int(q * (len(values) - 1))]

        return {
            "ttft_p50": at(first, 0.5),
            "ttft_p99": at(first, 0.99),
            "itl_p50": at(gaps, 0.5),
            "itl_p99": at(gaps, 0.99),
            "cpu_share": used["cpu_s"] / used["wall_s"],
        }


def main() -> int:
    """Run the comparison and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("aiohttp", "aiperf", "guidellm"):
        parser.add_argument(f"--{name}", metavar="PYTHON", help=f"interpreter that has {name}")
    parser.add_argument("--vllm-module", metavar="FILE", help="vllm/benchmarks/lib/endpoint_request_func.py of a vLLM wheel")
    parser.add_argument("--only", choices=("paced", "burst", "unary", "accuracy"), action="append", help="this part alone")
    parser.add_argument("--folder", default="/tmp", help="for stamps")
    parser.add_argument("--drive", help=argparse.SUPPRESS)
    for name, kind in (("url", str), ("mode", str), ("streams", int), ("tokens", int), ("requests", int), ("out", str)):
        parser.add_argument(f"--{name}", type=kind, default="" if kind is str else 0, help=argparse.SUPPRESS)
    parser.add_argument("--serve-burst", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve_burst:
        serve_burst()
    elif options.drive:
        drive(options)
    else:
        compare(Bench(options), options.only or ["paced", "burst", "unary", "accuracy"], options.folder)
    return 0


def compare(bench: Bench, parts: list[str], folder: str) -> None:
    """Print what was measured, each beside the limit or the peer that it is held against."""
    print(f"server on processor {bench.server_cpu}, client on {bench.client_cpu}; nodeproof {metadata.version('nodeproof')}")
    if "paced" in parts:
        cost = bench.paced()
        print(f"\n{STREAMS} streams x {TOKENS_PER_S:g} tokens/s: CPU time an event")
        for name, us in cost.items():
            print(f"  {name:<10}{us:8.2f} us   {us / cost['bare']:6.2f} x bare   {cost['ours'] / us:6.2f} = ours / this")
    names = [name for name in bench.pythons if name != "bare"]
    if "burst" in parts:
        rate = bench.rates("burst", BURST_REQUESTS, BURST_EVENTS, names)
        print("\nevents a second of CPU time, as quick as they come")
        for name, value in rate.items():
            print(f"  {name:<10}{value:12,.0f} /s   {rate['ours'] / value:6.2f} = ours / this")
    if "unary" in parts:
        rate = bench.rates("unary", UNARY_REQUESTS, 1, [name for name in names if name in {"ours", "aiohttp"}])
        print("\nrequests a second of CPU time, short JSON answers")
        for name, value in rate.items():
            print(f"  {name:<10}{value:12,.0f} /s   {rate['ours'] / value:6.2f} = ours / this")
    if "accuracy" in parts:
        print("\nour stamps against the server's record, 20 tokens/s a stream (ms)")
        print("  streams   TTFT p50   TTFT p99    ITL p50    ITL p99   client CPU")
        held = 0
        for streams in ACCURACY_STREAMS:
            one = bench.accuracy(streams, folder)
            if held == previous(streams) and within_limits(one):
                held = streams
            errors = "".join(f"{one[key]:11.3f}" for key in ("ttft_p50", "ttft_p99", "itl_p50", "itl_p99"))
            print(f"  {streams:7}{errors}{one['cpu_share']:12.1%}")
        limits = f"p50 <= {MEDIAN_LIMIT_MS:g} ms, p99 <= {P99_LIMIT_MS:g} ms"
        print(f"  saturation: {limits} hold up to {held} streams x {TOKENS_PER_S:g} tokens/s on one processor")


def previous(streams: int) -> int:
    """The number of streams measured before; 0 before the first."""
    place = ACCURACY_STREAMS.index(streams)
    return ACCURACY_STREAMS[place - 1] if place else 0


def within_limits(errors: dict[str, float]) -> bool:
    """Whether stamps are as exact as the instrument promises."""
    medians = max(errors["ttft_p50"], errors["itl_p50"])
    return medians <= MEDIAN_LIMIT_MS and max(errors["ttft_p99"], errors["itl_p99"]) <= P99_LIMIT_MS


if __name__ == "__main__":
    sys.exit(main())
