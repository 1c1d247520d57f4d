"""Reading and judging the configuration file, as plain values.

Every problem of a file is reported at once, each with its line, its path and what to write instead. A key of the reference that
never did anything loads with a warning.
"""

import os
import stat
from collections.abc import Iterable
from typing import NamedTuple

from nodeproof.config.document import Document, Value, parse
from nodeproof.config.keys import RENAMED, SCHEMA, Dead, Each, Node, Section
from nodeproof.errors import ConfigError

__all__ = ["ConfigProblemsError", "Judged", "judged", "read"]

_ANOTHER = "give another file with -c"
_MOST_BYTES = 2 * 1024 * 1024
"""More than any that is accepted, so that its size is what is complained of."""


class ConfigProblemsError(ConfigError):
    """All that is wrong with one file."""

    def __init__(self, problems: list[ConfigError]) -> None:
        self.problems = problems
        first = problems[0]
        super().__init__(first.path, first.problem, source=first.source, remedy=first.remedy)
        self.args = ("\n".join(str(problem) for problem in problems),)


class Judged(NamedTuple):
    """What a file says, every value checked; what it does not say is not in it."""

    tree: dict[str, object]
    warnings: tuple[str, ...]


def read(path: str) -> Judged:
    """Read and judge the file. Raises ConfigError (ConfigProblemsError when there are several).

    A pipe is refused: it could not be read again at a reload, and one that nobody writes to would be waited for without end.
    ``/dev/null`` is an empty file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode) and about.st_rdev != os.stat(os.devnull).st_rdev:
                raise ConfigError("", f"is {_kind(about.st_mode)}, not a file", source=path, remedy=_ANOTHER)
            content = _content(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise ConfigError("", error.strerror or str(error), source=path, remedy=_ANOTHER) from None
    return judged(path, content)


def _content(fd: int) -> bytes:
    content = b""
    while len(content) < _MOST_BYTES and (part := os.read(fd, _MOST_BYTES)):
        content += part
    return content


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a pipe" if stat.S_ISFIFO(mode) else "a device"


def judged(name: str, content: bytes) -> Judged:
    """Judge the text of the file ``name``. Raises ConfigError."""
    document = parse(name, content)
    judge = _Judge(document)
    tree = judge.section(document.root, SCHEMA, "")
    judge.reach(tree.get("web"))
    if judge.problems:
        raise judge.problems[0] if len(judge.problems) == 1 else ConfigProblemsError(judge.problems)
    return Judged(tree, tuple(judge.warnings))


class _Judge:
    """Walks a document beside the schema and collects what is wrong."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.problems: list[ConfigError] = []
        self.warnings: list[str] = []

    def reach(self, web: object) -> None:
        """Whether a page that others can reach asks them who they are."""
        if not isinstance(web, dict) or "address" not in web:
            return
        host = str(web["address"]).rpartition(":")[0].removeprefix("[").removesuffix("]")
        loopback = host in {"localhost", "::1"} or host.startswith("127.")
        if not loopback and not all(web.get(key) for key in ("token_file", "tls_cert", "tls_key")):
            remedy = "set web.token_file, web.tls_cert and web.tls_key, or write 127.0.0.1:9527 and come through ssh -L"
            self._problem("web.address", f"{web['address']!r} can be reached from other machines", remedy)

    def section(self, values: dict[str, Value], schema: Section, path: str) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, value in values.items():
            inner = f"{path}.{key}" if path else key
            if key not in schema.keys:
                self._problem(inner, "unknown key", _suggest(key, schema.keys))
                continue
            self._take(result, key, value, schema.keys[key], inner)
        return result

    def _each(self, values: dict[str, Value], schema: Each, path: str) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, value in values.items():
            inner = f"{path}.{key}"
            if schema.names is not None and key not in schema.names:
                self._problem(inner, "unknown name", _suggest(key, schema.names))
                continue
            self._take(result, key, value, schema.item, inner)
        return result

    def _take(self, result: dict[str, object], key: str, value: Value, node: Node, path: str) -> None:
        if isinstance(node, Dead):
            self.warnings.append(f"{self._document.place(path)}: {path}: has no effect: {node.help}")
        elif isinstance(node, Section | Each):
            if value is None:
                return
            if not isinstance(value, dict):
                self._problem(path, f"{value!r} is no mapping of keys", "")
            elif isinstance(node, Section):
                result[key] = self.section(value, node, path)
            else:
                result[key] = self._each(value, node, path)
        else:
            try:
                result[RENAMED.get(key, key)] = node.check(value)
            except ValueError as error:
                self._problem(path, str(error), "")

    def _problem(self, path: str, problem: str, remedy: str) -> None:
        self.problems.append(ConfigError(path, problem, source=self._document.place(path), remedy=remedy))


def _suggest(key: str, known: Iterable[str]) -> str:
    import difflib  # noqa: PLC0415 - only for the message

    near = difflib.get_close_matches(key, list(known), n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
