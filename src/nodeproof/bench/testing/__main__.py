"""``python -m nodeproof.bench.testing``: a model server with known times, as a process of its own.

Prints its address on one line, then serves until it is ended. ``GET /nodeproof/log`` tells when each write happened.
"""

import argparse
import contextlib
import sys

from nodeproof.bench.testing.careful import Careful, Leaky
from nodeproof.bench.testing.model import Model
from nodeproof.bench.testing.script import Behaviour
from nodeproof.bench.testing.server import ScriptServer

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Serve."""
    parser = argparse.ArgumentParser(prog="python -m nodeproof.bench.testing", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on loopback (default: any)")
    parser.add_argument("--ttft-ms", type=float, default=20.0, help="to the first token")
    parser.add_argument("--tpot-ms", type=float, default=5.0, help="from token to token")
    parser.add_argument("--tokens", type=int, help="where the model stops by itself (default: at max_tokens)")
    parser.add_argument("--slots", type=int, help="requests worked on at once (default: any number)")
    parser.add_argument("--per-chunk", type=int, default=1, help="tokens in one chunk")
    parser.add_argument("--prefix-cache", action="store_true", help="count cached tokens")
    parser.add_argument("--careful", action="store_true", help="refuse requests that are wrong, as a good server does")
    parser.add_argument("--leak-kib", type=int, default=0, help="memory lost with each question")
    parser.add_argument("--leak-files", type=int, default=0, help="descriptors lost with each question")
    parser.add_argument("--no-log", action="store_true", help="forget requests that have ended")
    options = parser.parse_args(arguments)
    model = Model(
        ttft_s=options.ttft_ms / 1000,
        tpot_s=options.tpot_ms / 1000,
        tokens=options.tokens,
        slots=options.slots,
        tokens_per_chunk=options.per_chunk,
        prefix_cache=options.prefix_cache,
        answers={"two and two": "4", "capital of France": "Paris"},
    )
    behaviour: Behaviour = Careful(model) if options.careful else model
    if options.leak_kib or options.leak_files:
        behaviour = Leaky(behaviour, kib=options.leak_kib, files=options.leak_files)
    server = ScriptServer(behaviour, port=options.port)
    server.keep_log = not options.no_log
    server.start()
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
