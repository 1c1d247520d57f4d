"""Documents made of a JSON schema with the same hostile text in every string field."""

from collections.abc import Mapping
from typing import Any

__all__ = ["Hostile"]


class Hostile:
    """Makes documents by ``schemas``; ``text`` stands wherever a schema allows a string, in keys of maps too.

    ``everywhere``: also where only certain words are allowed; else the first of them stands there, so that a page shows the rest.
    """

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]], text: str, *, everywhere: bool) -> None:
        self._schemas = schemas
        self._text = text
        self._everywhere = everywhere

    def of(self, name: str) -> Any:
        """A document of the type ``name``."""
        return self.make(self._schemas[name])

    def make(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        """A document of ``schema``; deeper than twelve levels there is nothing."""
        if "$ref" in schema:
            return None if depth > 12 else self.make(self._schemas[str(schema["$ref"]).rsplit("/", 1)[-1]], depth + 1)
        words = schema.get("enum", [schema["const"]] if "const" in schema else [])
        if words:
            return self._text if self._everywhere and isinstance(words[0], str) else words[0]
        if "anyOf" in schema:
            return self.make(next(one for one in schema["anyOf"] if one.get("type") != "null"), depth)
        plain = {"string": self._text, "integer": 1, "number": 1.5, "boolean": True, "null": None}
        if schema.get("type") == "array":
            return self._array(schema, depth)
        if schema.get("type") == "object" or "properties" in schema:
            return self._object(schema, depth)
        return plain.get(str(schema.get("type")), self._text)

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        if "prefixItems" in schema:
            return [self.make(one, depth) for one in schema["prefixItems"]]
        return [self.make(schema.get("items") or {}, depth)]

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        if "properties" in schema:
            return {name: self.make(one, depth) for name, one in schema["properties"].items()}
        values = schema.get("additionalProperties")
        return {self._text: self.make(values if isinstance(values, dict) else {}, depth)}
