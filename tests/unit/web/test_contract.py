"""The contract, the routes, the OpenAPI document and the page of documents say the same."""

from typing import Any

import pytest

from nodeproof.web import contract
from nodeproof.web.openapi import content_type, document


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return document()


def test_every_operation_stands_in_the_document(whole: dict[str, Any]) -> None:
    assert whole["openapi"] == "3.1.0"
    found = {(method.upper(), path) for path, methods in whole["paths"].items() for method in methods}
    assert found == {(one.method, one.path) for one in contract.OPERATIONS}
    assert len({one.id for one in contract.OPERATIONS}) == len(contract.OPERATIONS)


def test_every_named_type_is_there() -> None:
    for one in contract.OPERATIONS:
        if one.answer.content is not None and one.answer.content.type:
            assert content_type(one.answer.content) is not None


def test_every_reference_leads_somewhere(whole: dict[str, Any]) -> None:
    known = {f"#/components/schemas/{name}" for name in whole["components"]["schemas"]}

    def references(node: object) -> set[str]:
        if isinstance(node, dict):
            own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
            return own.union(*(references(one) for one in node.values()))
        return set().union(*(references(one) for one in node)) if isinstance(node, list) else set()

    assert references(whole) - known == set()


def test_parameters_carry_their_limits(whole: dict[str, Any]) -> None:
    (limit,) = whole["paths"]["/api/stress/history"]["get"]["parameters"]
    assert (limit["name"], limit["in"], limit["required"]) == ("limit", "query", False)
    assert limit["schema"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
