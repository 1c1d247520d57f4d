"""HTTP/1.1 to a runner over its Unix socket, with limits on what is believed to be an answer."""

import contextlib
import http.client
import socket
from collections.abc import Iterator

from nodeproof.errors import RunError
from nodeproof.stress.runner.wire import MAX_OUTPUT_BYTES

__all__ = ["RunnerClient", "RunnerGone", "Stream"]

_CONNECT_S = 5.0
_ANSWER_S = 60.0
_MAX_LINE_BYTES = 8 * 1024 * 1024


class RunnerGone(RunError):  # noqa: N818 - a state, and the clearest word for it
    """The runner cannot be reached, or went away."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float | None) -> None:
        super().__init__("localhost", timeout=_CONNECT_S)
        self._path = path
        self._timeout_s = timeout_s
        self.stream: socket.socket | None = None
        """The socket, also once an answer that ends the connection has taken it away from us."""

    def connect(self) -> None:
        """Connect to the socket file."""
        self.sock = self.stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_CONNECT_S)
        self.sock.connect(self._path)
        self.sock.settimeout(self._timeout_s)


class RunnerClient:
    """Asks the runner at ``path``. For any thread: each question has a connection of its own."""

    def __init__(self, path: str) -> None:
        self.path = path

    def ask(
        self, method: str, target: str, body: bytes | None = None, *, answer_s: float | None = _ANSWER_S
    ) -> tuple[int, bytes]:
        """Status and body of an answer. Raises RunnerGone.

        ``answer_s``: patience between two pieces of it, None = without end.
        """
        connection = _UnixConnection(self.path, answer_s)
        try:
            with self._request(connection, method, target, body) as response:
                data = response.read(MAX_OUTPUT_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            raise self.gone(error) from None
        finally:
            connection.close()
        if len(data) > MAX_OUTPUT_BYTES:
            raise RunnerGone(f"the runner at {self.path} answered more than {MAX_OUTPUT_BYTES} bytes")
        return response.status, data

    def stream(self, method: str, target: str, body: bytes | None = None) -> tuple[int, "Stream"]:
        """Status, and the lines that follow. Raises RunnerGone."""
        connection = _UnixConnection(self.path, None)
        try:
            response = self._request(connection, method, target, body)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self.gone(error) from None
        return response.status, Stream(connection, response, self)

    @staticmethod
    def _request(connection: _UnixConnection, method: str, target: str, body: bytes | None) -> http.client.HTTPResponse:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, target, body=body, headers=headers)
        return connection.getresponse()

    def gone(self, error: Exception) -> RunnerGone:
        """What ``error`` on a connection means to whoever asked."""
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return RunnerGone(
            f"the runner at {self.path}: {reason}; is nodeproof-runner running, and may this user write to its socket?"
        )


class Stream:
    """Lines of an answer that goes on."""

    def __init__(self, connection: _UnixConnection, response: http.client.HTTPResponse, client: RunnerClient) -> None:
        self._connection = connection
        self._response = response
        self._client = client

    def lines(self) -> Iterator[bytes]:
        """Until the answer's own end. Raises RunnerGone when the runner goes away before."""
        try:
            while line := self._response.readline(_MAX_LINE_BYTES):
                yield line
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._client.gone(error) from None

    def read(self) -> bytes:
        """All of an answer that is no stream after all, and hang up. Raises RunnerGone."""
        try:
            return b"".join(self.lines())
        finally:
            self.close()

    def hang_up(self) -> None:
        """From any thread: whoever reads comes to the end."""
        if self._connection.stream is not None:
            with contextlib.suppress(OSError):
                self._connection.stream.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """For the thread that reads: hang up and give everything back."""
        self.hang_up()
        self._connection.close()
        self._response.close()
