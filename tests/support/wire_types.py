"""TypeScript declarations of the server's documents, made of its OpenAPI document; the page's code is checked against them."""

from collections.abc import Mapping
from typing import Any

__all__ = ["declarations"]

_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def declarations(schemas: Mapping[str, Mapping[str, Any]]) -> str:
    """One namespace, ``Wire``, with a type for each of ``schemas``."""
    lines = [f"  type {_name(name)} = {_type(schema)};" for name, schema in sorted(schemas.items())]
    return "declare namespace Wire {\n" + "\n".join(lines) + "\n}\n"


def _name(full: str) -> str:
    """Last part of a name; where two end alike, the room comes first: ``model.job.Evidence`` is ``JobEvidence``."""
    parts = full.split(".")
    return parts[-1] if len(parts) == 1 else f"{parts[-2].title()}{parts[-1]}"


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return _name(str(schema["$ref"]).rsplit("/", 1)[-1])
    choices = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if choices:
        return " | ".join(f'"{one}"' for one in choices)
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    match schema.get("type"):
        case "array":
            return _array(schema)
        case "object":
            return _object(schema)
        case kind:
            return _PLAIN.get(str(kind), "any")


def _array(schema: Mapping[str, Any]) -> str:
    prefix = schema.get("prefixItems")
    return f"[{', '.join(_type(one) for one in prefix)}]" if prefix else f"({_type(schema.get('items') or {})})[]"


def _object(schema: Mapping[str, Any]) -> str:
    if "properties" not in schema:
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'any'}>"
    required = set(schema.get("required", ()))
    fields = [f"{name}{'' if name in required else '?'}: {_type(one)}" for name, one in schema["properties"].items()]
    return "{ " + "; ".join(fields) + " }"
