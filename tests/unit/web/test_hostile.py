"""A hostile text in every text field of every type of the interface stays text; the page of attacks names real tests."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import msgspec.inspect as mi
import pytest

from nodeproof.web.answers import Body, answer
from nodeproof.web.contract import OPERATIONS, Kind
from nodeproof.web.http_messages import Request
from nodeproof.web.openapi import content_type
from support.documents import ROOT

HOSTILE = "</script><img src=x onerror=alert(1)>\"'`\u2028\r\nSet-Cookie: a=b"
WITHOUT_TEXT = {"nodeproof.web.wire:Ok", "nodeproof.web.documents:Settings"}
KINDS = sorted({one.answer.content for one in OPERATIONS if one.answer.content is not None and one.answer.content.type})


def filled(kind: mi.Type) -> object:
    """Something of this type with ``HOSTILE`` wherever a text may stand."""
    if isinstance(kind, mi.StructType):
        tag = {kind.tag_field: kind.tag} if kind.tag_field else {}
        return {field.encode_name: filled(field.type) for field in kind.fields} | tag
    if isinstance(kind, mi.ListType | mi.VarTupleType):
        return [filled(kind.item_type)]
    if isinstance(kind, mi.TupleType):
        return [filled(one) for one in kind.item_types]
    if isinstance(kind, mi.DictType):
        return {HOSTILE: filled(kind.value_type)}
    if isinstance(kind, mi.UnionType):
        return filled(max(kind.types, key=lambda one: isinstance(one, mi.StructType | mi.StrType | mi.ListType)))
    return plain(kind)


def plain(kind: mi.Type) -> object:
    """Of a type with nothing inside."""
    if isinstance(kind, mi.EnumType):
        return next(iter(kind.cls)).value
    if isinstance(kind, mi.LiteralType):
        return kind.values[0]
    return 1 if isinstance(kind, mi.IntType | mi.FloatType) else isinstance(kind, mi.BoolType) or HOSTILE


def texts(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield key
            yield from texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from texts(value)
    elif isinstance(node, str):
        yield node


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type.rsplit(":", 1)[1])
def test_every_text_of_every_type_stays_text(kind: Kind) -> None:
    wanted = content_type(kind)
    content = msgspec.convert(filled(mi.type_info(wanted)), wanted)
    encoded = msgspec.json.encode(content)
    request = Request("GET", "/", "", [], None, lambda: None)  # type: ignore[arg-type,return-value] # it has no body
    response = answer(request, Body.of(encoded, "application/json"))
    assert response.headers["Content-Type"] == "application/json"
    assert not any(HOSTILE in text or "\n" in text for pair in response.headers.items() for text in pair)
    assert b"\n" not in encoded
    assert HOSTILE in set(texts(json.loads(response.body))) or kind.type in WITHOUT_TEXT


def test_the_page_of_attacks_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "security.md").read_text("utf-8")
    names = re.findall(r"`(unit/web/\w+\.py)::(\w+)`(?:, `::(\w+)`)?", text)
    assert len(names) > 15
    for file, *functions in names:
        source = (Path(ROOT) / "tests" / file).read_text("utf-8")
        for function in filter(None, functions):
            assert f"def {function}(" in source, f"{file}::{function}"
