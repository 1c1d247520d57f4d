"""Runs inside the environment of ``bfcl-eval``: has the published runner itself judge answers, as the leaderboard does.

``published_scores.py ANSWERS`` prints hits and answers of each subset. What the runner imports and does not call here
(tables, progress bars, client libraries of vendors) is stood in for; runner, checker and data are the published ones.
"""

import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any


class _Anything(types.ModuleType):
    """A module with every name in it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *values, **_: values[0] if values else None


class _Handler:
    """Decodes as the published handler of chat completions does."""

    def decode_ast(self, result: Any, language: Any, has_tool_call_tag: Any) -> list[dict[str, Any]]:
        del language, has_tool_call_tag
        decoded = []
        for call in result:
            ((name, arguments),) = call.items()
            decoded.append({name: json.loads(arguments)})
        return decoded


def main(answers_path: str) -> None:
    for name in ("numpy", "pandas", "tqdm", "dotenv", "overrides", "tree_sitter", "tree_sitter_java", "tree_sitter_javascript"):
        sys.modules[name] = _Anything(name)
    config = types.ModuleType("bfcl_eval.constants.model_config")
    config.MODEL_CONFIG_MAPPING = {"m": types.SimpleNamespace(underscore_to_dot=True)}  # type: ignore[attr-defined]
    sys.modules[config.__name__] = config
    for name in ("java_parser", "js_parser"):
        sys.modules[f"bfcl_eval.model_handler.parser.{name}"] = _Anything(name)
    runner: Any = importlib.import_module("bfcl_eval.eval_checker.eval_runner")
    runner.record_cost_latency = lambda *_: None
    by_subset: dict[str, list[dict[str, Any]]] = {}
    for line in Path(answers_path).read_text(encoding="utf-8").splitlines():
        answer = json.loads(line)
        # A chat answer without calls is its text, which the handler cannot decode.
        result = [{name: arguments} for name, arguments in answer["calls"]] or answer.get("text", "")
        by_subset.setdefault(answer["subset"], []).append({"id": answer["sample_id"], "result": result})
    found: dict[str, list[int]] = {}
    for subset, results in sorted(by_subset.items()):
        kept: dict[str, list[int]] = found

        def record(_: Any, __: Any, category: str, accuracy: float, total: int, kept: dict[str, list[int]] = kept) -> None:
            kept[category] = [round(accuracy * total), total]

        runner.record_result = record
        results.sort(key=runner.sort_key)
        folder = Path(answers_path).parent
        runner.evaluate_task(subset, folder, folder / "score", results, "m", _Handler(), {}, allow_missing=True)
    print(json.dumps(found))  # noqa: T201 - a program


if __name__ == "__main__":
    main(sys.argv[1])
