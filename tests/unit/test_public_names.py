"""What is public says so, exists, and is explained."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import nodeproof

SOURCE = Path(nodeproof.__file__).parent
MODULES = sorted(
    module.name for module in pkgutil.walk_packages([str(SOURCE)], prefix="nodeproof.") if not module.name.endswith("__main__")
)

OF_LIBRARIES = {"nodeproof.stress.workloads.burn_torch": "torch"}
"""Modules that need a library which is no dependency of the tests."""


def _tree(name: str) -> ast.Module:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text("utf-8"))


def _defined(tree: ast.Module) -> Iterator[str]:
    """Names that a module defines itself, in its body."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _docstring_follows(tree: ast.Module, name: str) -> bool:
    for node, after in zip(tree.body, tree.body[1:], strict=False):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
    return False


@pytest.mark.parametrize("name", MODULES)
def test_all_is_sorted_complete_and_importable(name: str, absent_here: list[str]) -> None:
    library = OF_LIBRARIES.get(name)
    if library is not None and importlib.util.find_spec(library) is None:
        absent_here.append(f"{library}: {name} was not imported to see what it makes public")
        return
    tree = _tree(name)
    assert ast.get_docstring(tree), "a module says what it is"
    defined = [one for one in dict.fromkeys(_defined(tree)) if not one.startswith("_")]
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", None)
    if exported is None:
        assert defined == [], f"{name} defines public names and no __all__"
        return
    assert exported == sorted(exported, key=_as_ruff_sorts)
    assert len(exported) == len(set(exported))
    assert [one for one in exported if not hasattr(module, one)] == []
    assert [one for one in defined if one not in exported] == []


def _as_ruff_sorts(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest."""
    kind = 0 if name.isupper() else 1 if name[:1].isupper() else 2
    return kind, name


@pytest.mark.parametrize("name", MODULES)
def test_public_functions_classes_and_methods_have_docstrings(name: str) -> None:
    silent = []
    for node in _tree(name).body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node):
            silent.append(node.name)
        if isinstance(node, ast.ClassDef):
            silent += [
                f"{node.name}.{inner.name}"
                for inner in node.body
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef))
                and not inner.name.startswith("_")
                and not ast.get_docstring(inner)
                and not any(isinstance(how, ast.Attribute) and how.attr == "setter" for how in inner.decorator_list)
            ]
    assert silent == []
