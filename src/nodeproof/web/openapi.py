"""The OpenAPI 3.1 document, made of the contract and the types that it names; loaded when somebody asks for it."""

import importlib
from collections.abc import Iterable, Iterator
from types import GenericAlias
from typing import Any

import msgspec

from nodeproof import __version__
from nodeproof.web import wire
from nodeproof.web.contract import MAX_BODY_BYTES, OPERATIONS, Answer, Kind, Operation

__all__ = ["content_type", "document"]

_REFERENCE = "#/components/schemas/{name}"
_GROUPS = {
    "node": "The node as it is now.",
    "stress": "Stress jobs: one at a time on this machine, whoever starts it.",
    "runs": "Records of everything that was run.",
    "faults": "Faults and their history.",
    "access": "The caller, and this interface itself.",
}
_MEANINGS = {
    400: "The request is not as it should be.",
    403: "This caller may not: a browser's request for another site, a token that is missing or allows too little.",
    404: "There is no such thing.",
    405: "This path knows other methods; `Allow` lists them.",
    409: "Another job runs; the body is its report.",
    413: f"The body is longer than {MAX_BODY_BYTES} bytes.",
    415: "The body is not `application/json`.",
    421: "This server does not go by the name in `Host`.",
    429: "Too often; `Retry-After` tells when to come back.",
    500: "An error of the server, or a record that cannot be read.",
    501: "Not on this operating system.",
    503: "Not now: there is no snapshot yet, or too much is asked at once.",
}
_ALWAYS = (403, 421)


def content_type(kind: Kind) -> object:
    """The type that ``kind`` names."""
    module, _, name = kind.type.partition(":")
    found: object = getattr(importlib.import_module(module), name)
    return GenericAlias(list, (found,)) if kind.many else found


def document(operations: Iterable[Operation] = OPERATIONS) -> dict[str, Any]:
    """The whole document."""
    operations = list(operations)
    types = [wire.Problem, *_types(operations)]
    schemas, components = msgspec.json.schema_components(types, schema_hook=_anything, ref_template=_REFERENCE)
    known = dict(zip(map(str, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nodeproof",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "One node: readings, verdict, stress jobs, run records and faults.",
        },
        "tags": [{"name": name, "description": text} for name, text in _GROUPS.items()],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Needed where web.token_file is set."},
            },
        },
        "security": [{}, {"token": []}],
    }


def _anything(kind: type) -> dict[str, Any]:
    """Of content that is handed on as it is."""
    if kind is object:
        return {"description": "Handed on as it is."}
    raise NotImplementedError(kind)


def _types(operations: Iterable[Operation]) -> Iterator[object]:
    """Everything that a schema is needed of."""
    for operation in operations:
        if operation.answer.content is not None and operation.answer.content.type:
            yield content_type(operation.answer.content)
        if operation.body is not None:
            yield operation.body


def _operation(operation: Operation, known: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.group],
        "summary": operation.help,
        "responses": {str(operation.answer.status): _answer(operation.answer, known)}
        | {str(status): _problem(status, operation, known) for status in sorted({*operation.problems, *_ALWAYS})},
    }
    parameters = [*_parameters(operation.path_parameters, "path"), *_parameters(operation.query, "query")]
    if operation.action:
        parameters.append(_action(operation.action))
    if parameters:
        found["parameters"] = parameters
    if operation.body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": known[str(operation.body)]}}}
    elif operation.method == "POST":
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": {}}}}
    return found


def _action(word: str) -> dict[str, Any]:
    return {
        "name": "X-Nodeproof-Action",
        "in": "header",
        "required": True,
        "description": "Says that the request is meant; no form and no link can send it. `X-CATMonitor-Action` does as well.",
        "schema": {"type": "string", "const": word},
    }


def _answer(answer: Answer, known: dict[str, Any]) -> dict[str, Any]:
    kind = answer.content
    if kind is None:
        return {"description": answer.help}
    if not kind.type:
        schema = {"type": "object"} if kind.media_type == "application/json" else {"type": "string"}
        return {"description": answer.help, "content": {kind.media_type: {"schema": schema}}}
    return {"description": answer.help, "content": {kind.media_type: {"schema": known[str(content_type(kind))]}}}


def _problem(status: int, operation: Operation, known: dict[str, Any]) -> dict[str, Any]:
    if status == 409 and operation.answer.content is not None:
        return {
            "description": _MEANINGS[status],
            "content": {"application/json": {"schema": known[str(content_type(operation.answer.content))]}},
        }
    found: dict[str, Any] = {
        "description": _MEANINGS[status],
        "content": {"application/problem+json": {"schema": known[str(wire.Problem)]}},
    }
    if status == 429:
        found["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 0}}}
    return found


def _parameters(kind: type, place: str) -> Iterator[dict[str, Any]]:
    """The fields of a struct, each a parameter."""
    (schema,), components = msgspec.json.schema_components([kind], ref_template=_REFERENCE)
    body = components[schema["$ref"].rsplit("/", 1)[1]]
    for name, field in body["properties"].items():
        text = field.pop("description", "")
        yield {"name": name, "in": place, "required": place == "path" or name in body.get("required", ()), "schema": field} | (
            {"description": text} if text else {}
        )
