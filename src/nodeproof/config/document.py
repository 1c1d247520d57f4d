"""YAML text as plain values that know where they stood.

The composer of PyYAML is used for syntax and tags; construction is our own, so that a duplicate key, an alias bomb or a tag
of Python is an error with its line instead of a surprise.
"""

from typing import NamedTuple

import yaml

from nodeproof.errors import ConfigError

__all__ = ["Document", "Value", "parse"]

_MAX_BYTES = 1024 * 1024
_MAX_NODES = 20_000
_MAX_DEPTH = 20

Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Document(NamedTuple):
    """A configuration file, read but not yet judged."""

    name: str
    root: dict[str, Value]
    lines: dict[str, int]
    """Line of each key, by its path (``collectors.cpu.interval``), from 1."""

    def place(self, path: str) -> str:
        """``file:line`` of a key, as near as is known."""
        probe = path
        while probe and probe not in self.lines:
            probe = probe.rpartition(".")[0]
        return f"{self.name}:{self.lines[probe]}" if probe else self.name


def parse(name: str, text: bytes) -> Document:
    """Read YAML ``text`` of the file ``name``. Raises ConfigError with the line."""
    if len(text) > _MAX_BYTES:
        raise ConfigError("", f"larger than {_MAX_BYTES} bytes", source=name, remedy="is this the right file?")
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError("", f"byte {error.start} is no UTF-8", source=name, remedy="save the file as UTF-8") from None
    try:
        node = yaml.compose(decoded, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}" if mark else name
        raise ConfigError("", f"not YAML: {error.problem or error.context}", source=place) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError("", f"not YAML: {str(error).splitlines()[0]}", source=name) from None
    if node is None:
        return Document(name, {}, {})
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError("", "not a mapping of sections", source=f"{name}:{node.start_mark.line + 1}")
    builder = _Builder(name)
    root = builder.mapping(node, "", 0)
    return Document(name, root, builder.lines)


class _Builder:
    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes = 0
        self.lines: dict[str, int] = {}

    def mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Value]:
        result: dict[str, Value] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                raise self._error(key_node, path, "a key must be a plain word")
            inner = f"{path}.{key}" if path else key
            if key in result:
                raise self._error(key_node, inner, f"stands twice, first in line {self.lines[inner]}")
            self.lines[inner] = key_node.start_mark.line + 1
            result[key] = self._value(value_node, inner, depth + 1)
        return result

    def _value(self, node: yaml.Node, path: str, depth: int) -> Value:
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise self._error(node, path, "the file is nested or repeated (by aliases) beyond reason")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _scalar(self, node: yaml.Node, path: str) -> Value:
        loader = _LOADER("")
        try:
            value = loader.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise self._error(node, path, str(error).splitlines()[0]) from None
        finally:
            loader.dispose()
        if value is None or isinstance(value, str | bool | int | float):
            return value
        return str(node.value)  # a date or the like: the schema judges its text

    def _error(self, node: yaml.Node, path: str, problem: str) -> ConfigError:
        return ConfigError(path, problem, source=f"{self._name}:{node.start_mark.line + 1}")
