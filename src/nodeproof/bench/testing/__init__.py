"""An endpoint that does exactly what it is told, and remembers to the microsecond when it did it.

::

    with ScriptServer(Model(ttft_s=0.05, tpot_s=0.01)) as server:
        ...                       # ask http://127.0.0.1:<port>
        server.served[0].writes   # CLOCK_MONOTONIC of each write

The truth that the client is measured against, and what benchmarks are driven through their verdicts with. A behaviour is any
callable that makes a :class:`Script` of a :class:`Received` request; :class:`Model` is one that acts like a model server, and
:class:`Rules` lets a few requests be answered otherwise. ``python -m nodeproof.bench.testing`` runs one as a process of its own.
"""

from nodeproof.bench.testing.careful import Careful, Leaky
from nodeproof.bench.testing.chunks import chat_chunk, chat_stream, completion, sse
from nodeproof.bench.testing.model import Model, Rules
from nodeproof.bench.testing.script import End, Received, Script, Served, Step
from nodeproof.bench.testing.server import ScriptServer

__all__ = [
    "Careful",
    "End",
    "Leaky",
    "Model",
    "Received",
    "Rules",
    "Script",
    "ScriptServer",
    "Served",
    "Step",
    "chat_chunk",
    "chat_stream",
    "completion",
    "sse",
]
