"""Runs inside the environment of ``bfcl-eval``, by its path, where nothing of nodeproof can be imported.

``selftest``: import what the others need. ``materialise OUT``: write the data, one sample a line. ``score DATASET ANSWERS
OUT``: check answers, one line for each. The checker wants a table of models that imports the client libraries of a dozen
vendors, to learn from it one thing: that a dot in the name of a function went to the server as an underscore. A stand-in
answers that here; parsers of source text, which nothing here calls, are left out in the same way.
"""

import hashlib
import importlib
import json
import sys
import types
from typing import Any

__all__ = ["main"]

_MODEL = "nodeproof"
_HALLUCINATION = ("irrelevance", "live_irrelevance")
_RELEVANCE = ("live_relevance",)
_AST = (
    "live_multiple", "live_parallel", "live_parallel_multiple", "live_simple", "multiple", "parallel", "parallel_multiple",
    "simple_java", "simple_javascript", "simple_python",
)  # fmt: skip
_SUBSETS = sorted((*_HALLUCINATION, *_RELEVANCE, *_AST))
_PARSERS = {"java_parser": "parse_java_function_call", "js_parser": "parse_javascript_function_call"}


class _Model:
    """What the checker asks of a model."""

    underscore_to_dot = True


class _Models(dict[str, type[_Model]]):
    """Any name is one of a model."""

    def __missing__(self, name: str) -> type[_Model]:
        return _Model


class _Package:
    """The parts of ``bfcl_eval`` that are used."""

    def __init__(self) -> None:
        config = types.ModuleType("bfcl_eval.constants.model_config")
        config.MODEL_CONFIG_MAPPING = _Models()  # type: ignore[attr-defined]  # a module made here
        sys.modules[config.__name__] = config
        for name, function in _PARSERS.items():
            parser = types.ModuleType(f"bfcl_eval.model_handler.parser.{name}")
            setattr(parser, function, None)
            sys.modules[parser.__name__] = parser
        utils: Any = importlib.import_module("bfcl_eval.utils")
        self.entries = utils.load_dataset_entry
        self.truths = utils.load_ground_truth_entry
        enums: Any = importlib.import_module("bfcl_eval.constants.enums")
        self.style = enums.ModelStyle.OPENAI_COMPLETIONS
        self.languages = enums.Language
        self.types = importlib.import_module("bfcl_eval.constants.type_mappings").GORILLA_TO_OPENAPI
        self.to_tool = importlib.import_module("bfcl_eval.model_handler.utils").convert_to_tool
        self.checker = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker

    def language(self, subset: str) -> Any:  # noqa: ANN401 - a member of the package's own enumeration
        """In which the arguments of a subset are written."""
        found = {"simple_java": self.languages.JAVA, "simple_javascript": self.languages.JAVASCRIPT}
        return found.get(subset, self.languages.PYTHON)


def _rows(package: _Package) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for subset in _SUBSETS:
        truths = {} if subset not in _AST else {entry["id"]: entry["ground_truth"] for entry in package.truths(subset)}
        plain = {entry["id"]: entry["function"] for entry in package.entries(subset, include_language_specific_hint=False)}
        for entry in package.entries(subset):
            name = entry["id"]
            if len(entry["question"]) != 1:
                raise ValueError(f"{name} has {len(entry['question'])} turns, expected one")
            rows.append(
                {
                    "subset": subset,
                    "sample_id": name,
                    "messages": entry["question"][0],
                    "tools": package.to_tool(entry["function"], package.types, package.style),
                    "tool_choice": "auto",
                    "ground_truth": json.dumps(truths[name] if subset in _AST else [], ensure_ascii=False),
                    "func_description": json.dumps(plain[name], ensure_ascii=False),
                }
            )
    return rows


def _materialise(package: _Package, out: str) -> None:
    digest, counts = hashlib.sha256(), dict.fromkeys(_SUBSETS, 0)
    with open(out, "wb") as file:
        for row in _rows(package):
            line = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            counts[str(row["subset"])] += 1
            digest.update(line)
            file.write(line)
    print(json.dumps({"total": sum(counts.values()), "sha256": digest.hexdigest(), "subsets": counts}))  # noqa: T201 - read by nodeproof


def _decoded(calls: list[list[str]]) -> list[dict[str, object]]:
    """Calls as the checker takes them. Raises ValueError for arguments that are no JSON object."""
    decoded: list[dict[str, object]] = []
    for name, arguments in calls:
        found = json.loads(arguments)
        if not isinstance(found, dict):
            raise ValueError("arguments that are no object")
        decoded.append({name: found})
    return decoded


def _verdict(package: _Package, row: dict[str, Any], calls: list[list[str]]) -> tuple[bool, str]:
    """Whether an answer is right, and if not why."""
    subset, truth = row["subset"], json.loads(row["ground_truth"])
    if subset in _RELEVANCE:
        return bool(calls), "" if calls else "no_call"
    if subset in _HALLUCINATION or not truth:
        return not calls, "called" if calls else ""
    if not calls:
        return False, "no_call"
    try:
        decoded = _decoded(calls)
    except (ValueError, RecursionError):
        return False, "arguments_unreadable"
    try:
        found = package.checker(json.loads(row["func_description"]), decoded, truth, package.language(subset), subset, _MODEL)
    except Exception as error:  # noqa: BLE001 - what the checker cannot judge is not right
        return False, f"checker_{type(error).__name__}"
    return bool(found["valid"]), "" if found["valid"] else str(found.get("error_type", "wrong"))


def _score(package: _Package, dataset: str, answers: str, out: str) -> None:
    wanted: dict[str, list[list[str]]] = {}
    with open(answers, encoding="utf-8") as file:
        for line in file:
            answer = json.loads(line)
            wanted[answer["sample_id"]] = answer["calls"]
    with open(dataset, encoding="utf-8") as file, open(out, "w", encoding="utf-8") as scores:
        for line in file:
            row = json.loads(line)
            calls = wanted.pop(row["sample_id"], None)
            if calls is not None:
                hit, why = _verdict(package, row, calls)
                scores.write(json.dumps({"sample_id": row["sample_id"], "subset": row["subset"], "hit": hit, "why": why}) + "\n")
    print(json.dumps({"unmatched_responses": len(wanted)}))  # noqa: T201 - read by nodeproof


def main(arguments: list[str]) -> int:
    """Do as told; 0 when it was done."""
    package = _Package()
    if arguments[:1] == ["materialise"]:
        _materialise(package, arguments[1])
    elif arguments[:1] == ["score"]:
        _score(package, *arguments[1:4])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
