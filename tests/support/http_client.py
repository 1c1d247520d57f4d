"""A bare HTTP client for tests: sends bytes, reads answers, hides nothing."""

import socket
from typing import NamedTuple

__all__ = ["Answer", "Client"]


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """One connection."""

    def __init__(self, address: tuple[str, int] | str, *, timeout_s: float = 5.0) -> None:
        family = socket.AF_UNIX if isinstance(address, str) else (socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        self.socket = socket.socket(family)
        self.socket.settimeout(timeout_s)
        try:
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        self._buffer = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def get(self, path: str, *fields: str, method: str = "GET", host: str = "localhost") -> Answer:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *fields]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        return self.read(body=method != "HEAD")

    def read(self, *, body: bool = True) -> Answer:
        while b"\r\n\r\n" not in self._buffer:
            self._more()
        head, _, rest = self._buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in lines[1:])}
        length = int(headers["content-length"]) if body else 0
        self._buffer = rest
        while len(self._buffer) < length:
            self._more()
        content, self._buffer = self._buffer[:length], self._buffer[length:]
        return Answer(int(lines[0].split()[1]), headers, content)

    def at_end(self) -> bool:
        """Whether the server has closed."""
        try:
            return not self._buffer and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.socket.close()

    def _more(self) -> None:
        chunk = self.socket.recv(65536)
        if not chunk:
            raise EOFError("the server closed the connection")
        self._buffer += chunk
