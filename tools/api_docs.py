"""``docs/api.md``: the interface of the page, printed from its OpenAPI document."""

from collections.abc import Mapping, Sequence
from typing import Any

from nodeproof.web.contract import MAX_BODY_BYTES
from nodeproof.web.openapi import document

__all__ = ["api_page"]

_INTRODUCTION = f"""\
Served by `nodeproof up` and `nodeproof web`, by default at `http://127.0.0.1:9527`. The same as an OpenAPI 3.1 document:
`/api/openapi.json`.

* Contents are JSON. Good answers to reads carry a strong `ETag`; `If-None-Match` is answered with 304. `gzip` is used for those
  who accept it. `HEAD` does as `GET` without the content, `OPTIONS` tells what a path allows, other methods are 405 with `Allow`.
* Problems are `application/problem+json` (RFC 9457) with the reference's `error` beside it; a 409 is the report of the job that
  runs.
* What changes something is `POST` with `Content-Type: application/json`, the header `X-Nodeproof-Action: stress` (or
  `X-CATMonitor-Action`) and, from a browser, the page's own `Origin`; at most {MAX_BODY_BYTES // 1024} KiB, and five starts a
  minute a caller.
* Times are RFC 3339 unless a name ends in `_s` (seconds) or `_ms`. A time that is not set has no key. A reading that is absent
  stands in `missing` with its reason, never as 0.
"""


def api_page(generated: str) -> str:
    """The page; ``generated`` is the line that says so."""
    whole = document()
    parts = ["# HTTP interface\n", generated, _INTRODUCTION]
    for group in whole["tags"]:
        parts.append(f"## {group['name'].capitalize()}\n\n{group['description']}\n")
        parts += [
            _operation(method, path, found)
            for path, methods in whole["paths"].items()
            for method, found in methods.items()
            if group["name"] in found["tags"]
        ]
    parts.append("## Types\n\nA field in *italics* may be left out.\n")
    parts += [_schema(name, found) for name, found in sorted(whole["components"]["schemas"].items(), key=_by_name)]
    return "\n".join(parts)


def _by_name(item: tuple[str, object]) -> str:
    return _short(item[0])


def _operation(method: str, path: str, found: Mapping[str, Any]) -> str:
    lines = [f"### `{method.upper()} {path}`\n", f"{found['summary']}\n"]
    for one in found.get("parameters", ()):
        told = f" {one['description']}" if "description" in one else ""
        lines.append(f"* {one['in']} `{one['name']}`: {_type(one['schema'])}{_default(one['schema'])}.{told}")
    if "requestBody" in found:
        lines.append(f"* body: {_content(found['requestBody'])}")
    for status, answer in found["responses"].items():
        if answer.get("content") and "application/problem+json" not in answer["content"]:
            lines.append(f"* {status}: {_content(answer)}")
    refused = (status for status, answer in found["responses"].items() if "application/problem+json" in answer.get("content", ()))
    lines.append(f"* problems: {', '.join(refused)}\n")
    return "\n".join(lines)


def _content(found: Mapping[str, Any]) -> str:
    ((media_type, content),) = found["content"].items()
    if media_type != "application/json":
        return f"`{media_type}`"
    return _type(content["schema"]) if content["schema"] else "any JSON"


def _schema(name: str, found: Mapping[str, Any]) -> str:
    head = f"### {name}\n"
    told = found.get("description", "").split("\n")[0]
    if "enum" in found:
        return f"{head}\n{told} One of {', '.join(f'`{one}`' for one in found['enum'])}.\n"
    required = set(found.get("required", ()))
    properties = found.get("properties", {})
    fields = [f"* {f'`{key}`' if key in required else f'*`{key}`*'}: {_type(field)}" for key, field in properties.items()]
    if "prefixItems" in found:
        fields = [f"* item {number}: {_type(field)}" for number, field in enumerate(found["prefixItems"])]
    return "\n".join([head, told, "", *fields, ""])


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{_short(name)}](#{_anchor(name)})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(_type(one) for one in schema[key])
    if "const" in schema or "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema.get("enum", [schema.get("const")]))
    return _plain(schema)


def _plain(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "anything")
    if kind == "array":
        return _array(schema)
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"map of text to {_type(values)}" if isinstance(values, Mapping) else "object"
    if kind == "string":
        return "text" + (f" like `{schema['pattern']}`" if "pattern" in schema else "")
    low, high = schema.get("minimum"), schema.get("maximum")
    return str(kind) + (f" {low} to {high}" if low is not None and high is not None else "")


def _array(schema: Mapping[str, Any]) -> str:
    kinds: Sequence[Mapping[str, Any]] = schema.get("prefixItems", ())
    if kinds:
        return f"[{', '.join(_type(one) for one in kinds)}]"
    items = schema.get("items")
    return f"list of {_type(items)}" if isinstance(items, Mapping) else "list"


def _default(schema: Mapping[str, Any]) -> str:
    return f", {schema['default']!r} if not given" if "default" in schema else ""


def _short(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _anchor(name: str) -> str:
    """As a heading of that text is linked to."""
    return name.replace(".", "").lower()
