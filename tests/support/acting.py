"""Models that act: a server whose answers are the next step of a plan, for the turn that the conversation has come to."""

import json
from collections.abc import Callable, Mapping, Sequence

from nodeproof.bench.testing import Model, Received, Script, Step, chat_chunk, sse

__all__ = ["Acting", "Plan", "call", "good_plan", "tool_stream"]

Plan = Sequence[list[tuple[str, dict[str, str]]] | str]
"""Turn by turn: calls of tools, or words."""

_SERVER = """
import http.server, os

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"pong" if self.path == "/ping" else b"?"
        self.send_response(200 if self.path == "/ping" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""
_TRY = """PORT=18080 bash run.sh > server.log 2>&1 & server=$!
for _ in $(seq 100); do python3 ask.py > /dev/null 2>&1 && break; sleep 0.05; done
curl -s http://127.0.0.1:18080/ping || python3 ask.py # /ping by http.client
kill $server; wait $server; true"""
_ASK = """import http.client
connection = http.client.HTTPConnection('127.0.0.1', 18080)
connection.request('GET', '/ping')
print(connection.getresponse().read())
"""
_TEST = 'python3 -c \'compile(open("server.py").read(), "server.py", "exec")\'\n'


def call(name: str, **fields: str) -> tuple[str, dict[str, str]]:
    """A call of a tool."""
    return name, fields


def good_plan() -> list[list[tuple[str, dict[str, str]]] | str]:
    """All that is asked for."""
    return [
        [
            call("write_file", path="server.py", content=_SERVER),
            call("write_file", path="run.sh", content="exec python3 server.py\n"),
            call("write_file", path="ask.py", content=_ASK),
            call("write_file", path="test.sh", content=_TEST),
        ],
        [call("bash", command="bash test.sh")],
        [call("bash", command=_TRY)],
        [call("read_file", path="server.log")],
        "The server is written, tested and stopped.",
    ]


class Acting(Model):
    """Goes through a plan, by the number of answers that a conversation holds already."""

    def __init__(self, plan: Plan, *, rule: Callable[[Mapping[str, object]], Script | None] = lambda _: None) -> None:
        super().__init__(ttft_s=0.0, tpot_s=0.0)
        self.plan = plan
        self._rule = rule

    def __call__(self, request: Received) -> Script:
        fields = request.json()
        if "tools" not in fields:
            return super().__call__(request)
        refused = self._rule(fields)
        if refused is not None:
            return refused
        messages = fields["messages"]
        assert isinstance(messages, list)
        turn = sum(message["role"] == "assistant" for message in messages)
        step = self.plan[min(turn, len(self.plan) - 1)]
        return _words(step) if isinstance(step, str) else tool_stream(step, turn)


def tool_stream(calls: Sequence[tuple[str, dict[str, str]]], turn: int = 0) -> Script:
    """Calls as a stream."""
    pieces = [
        {
            "index": place,
            "id": f"call_{turn}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(fields)},
        }
        for place, (name, fields) in enumerate(calls)
    ]
    events = chat_chunk({"role": "assistant", "content": None, "tool_calls": pieces}) + chat_chunk({}, finish="tool_calls")
    return _script(events)


def _words(text: str) -> Script:
    return _script(chat_chunk({"role": "assistant", "content": text}) + chat_chunk({}, finish="stop"))


def _script(events: bytes) -> Script:
    usage = sse({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}})
    return Script(steps=[Step(0.0, events + usage + b"data: [DONE]\n\n")])
