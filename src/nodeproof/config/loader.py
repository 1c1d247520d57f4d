"""Finding, reading and judging the configuration file.

Every problem of a file is reported at once, each with its line, its path and what to write instead. A key of the reference that
never did anything loads with a warning.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nodeproof.config import fields
from nodeproof.config.document import Document, Value, parse
from nodeproof.config.fields import Check
from nodeproof.config.resolve import build
from nodeproof.config.schema import Config
from nodeproof.errors import ConfigError
from nodeproof.model.catalogue import FEATURES

__all__ = ["ConfigProblemsError", "load", "load_text"]

_BENCHMARKS = ("gpu_burn", "hpcg", "hpl", "npu_burn", "stream", "cpu_sdc", "memory_pattern")
_ONE_HOUR_S = 3600.0


class ConfigProblemsError(ConfigError):
    """All that is wrong with one file."""

    def __init__(self, problems: list[ConfigError]) -> None:
        self.problems = problems
        first = problems[0]
        super().__init__(first.path, first.problem, source=first.source, remedy=first.remedy)
        self.args = ("\n".join(str(problem) for problem in problems),)


class _Dead(NamedTuple):
    """A key that loads and does nothing."""

    why: str


class _Section(NamedTuple):
    """A mapping with known keys."""

    keys: "Mapping[str, _Node]"


class _Each(NamedTuple):
    """A mapping whose keys are names of things, all with the same content."""

    item: "_Node"
    names: tuple[str, ...] | None = None


_Node = Check[object] | _Section | _Each | _Dead


_RENAMED = {
    "deadline": "deadline_s",
    "flush_interval": "flush_interval_s",
    "interval": "interval_s",
    "max_file_age": "max_file_age_s",
    "max_total_size": "max_total_bytes",
    "retention": "retention_s",
    "timeout": "timeout_s",
    "webhook_timeout": "webhook_timeout_s",
}
"""Keys of the file whose value has a unit, and the field it becomes."""

_INTERVAL = fields.duration(0.1, 86400.0)
_WORD = fields.text
_UNUSED = _Dead("has no effect, there as here")

_SCHEMA = _Section(
    {
        "server": _Section({"type": _UNUSED}),
        "collectors": _Each(
            _Section({"enabled": fields.boolean, "interval": _INTERVAL, "deadline": fields.duration(0.1, 3600.0)}), None
        ),
        "storage": _Section(
            {
                "enabled": fields.boolean,
                "data_dir": fields.absolute_path,
                "interval": fields.duration(1.0, 86400.0),
                "max_file_age": fields.duration(3600.0),
                "max_total_size": fields.size_bytes,
                "rotation": _Dead("data files are always kept by day"),
            }
        ),
        "health": _Section(
            {
                "enabled": _Dead("health is always judged"),
                "weight_scheme": fields.one_of("auto", "cpu_only", "accelerated_2card", "accelerated_4card", "accelerated_8card"),
                "ruleset": fields.one_of("0.3.5", "0.3.3"),
            }
        ),
        "collection": _Section(
            {"min_priority": fields.one_of("low", "medium", "high"), "interval_from": fields.one_of("features", "collectors")}
        ),
        "features": fields.listing(_WORD, tuple(FEATURES)),
        "snapshot": _Section({"enabled": fields.boolean, "dir": fields.absolute_path}),
        "exporter": _Section(
            {
                "enabled": fields.boolean,
                "address": fields.address,
                "naming": fields.one_of("nodeproof", "catmonitor"),
                "allowed_hosts": fields.listing(_WORD),
            }
        ),
        "faultsub": _Section(
            {
                "enabled": fields.boolean,
                "rest_addr": fields.address,
                "webhook_timeout": fields.duration(0.1, 60.0, zero_is=5.0),
                "webhook_retry": fields.integer(0, 100),
                "event_buffer": fields.integer(-1_000_000, 1_000_000),
                "defaults": _Section({"debounce_ms": _UNUSED, "min_severity": _UNUSED}),
                "rules": _Each(fields.boolean),
            }
        ),
        "straggler_output": _Section(
            {
                "enabled": fields.boolean,
                "data_dir": fields.absolute_path,
                "retention": fields.duration(3600.0, zero_is=360 * _ONE_HOUR_S),
                "flush_interval": fields.duration(0.1, 86400.0, zero_is=60.0),
                "metrics": _UNUSED,
            }
        ),
        "stress": _Section(
            {
                "enabled": fields.boolean,
                "web_enabled": fields.boolean,
                "script_path": fields.optional_path,
                "report_path": fields.optional_path,
                "default_benchmarks": fields.listing(_WORD, _BENCHMARKS),
                "benchmarks": _Each(
                    _Section(
                        {
                            "enabled": fields.boolean,
                            "timeout": fields.duration(0.0, zero_is=_ONE_HOUR_S),
                            "result_dir": fields.optional_path,
                            "adapter": fields.one_of("builtin", "native"),
                        }
                    ),
                    _BENCHMARKS,
                ),
            }
        ),
    }
)


def load(path: str, environ: Mapping[str, str]) -> Config:
    """Read and judge the file. Raises ConfigError (ConfigProblemsError when there are several)."""
    try:
        with open(path, "rb") as file:
            content = file.read(2 * 1024 * 1024)
    except OSError as error:
        raise ConfigError("", error.strerror or str(error), source=path, remedy="give another file with -c") from None
    return load_text(path, content, environ)


def load_text(name: str, content: bytes, environ: Mapping[str, str]) -> Config:
    """Judge the text of the file ``name``. Raises ConfigError."""
    document = parse(name, content)
    judge = _Judge(document)
    tree = judge.section(document.root, _SCHEMA, "")
    if judge.problems:
        raise judge.problems[0] if len(judge.problems) == 1 else ConfigProblemsError(judge.problems)
    return build(tree, name, tuple(judge.warnings), environ)


class _Judge:
    """Walks a document beside the schema and collects what is wrong."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.problems: list[ConfigError] = []
        self.warnings: list[str] = []

    def section(self, values: dict[str, Value], schema: _Section, path: str) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, value in values.items():
            inner = f"{path}.{key}" if path else key
            if key not in schema.keys:
                self._problem(inner, "unknown key", _suggest(key, schema.keys))
                continue
            self._take(result, key, value, schema.keys[key], inner)
        return result

    def _each(self, values: dict[str, Value], schema: _Each, path: str) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, value in values.items():
            inner = f"{path}.{key}"
            if schema.names is not None and key not in schema.names:
                self._problem(inner, "unknown name", _suggest(key, schema.names))
                continue
            self._take(result, key, value, schema.item, inner)
        return result

    def _take(self, result: dict[str, object], key: str, value: Value, node: _Node, path: str) -> None:
        if isinstance(node, _Dead):
            self.warnings.append(f"{self._document.place(path)}: {path}: {node.why}")
        elif isinstance(node, _Section | _Each):
            if value is None:
                return
            if not isinstance(value, dict):
                self._problem(path, f"{value!r} is no mapping of keys", "")
            elif isinstance(node, _Section):
                result[key] = self.section(value, node, path)
            else:
                result[key] = self._each(value, node, path)
        else:
            try:
                result[_RENAMED.get(key, key)] = node(value)
            except ValueError as error:
                self._problem(path, str(error), "")

    def _problem(self, path: str, problem: str, remedy: str) -> None:
        self.problems.append(ConfigError(path, problem, source=self._document.place(path), remedy=remedy))


def _suggest(key: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(key, list(known), n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
