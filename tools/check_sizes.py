"""Hold the size limits: a module at most 600 lines (aim 400), a function at most 80 lines and 30 at the ninetieth percentile."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULE_SOFT = 400
MODULE_HARD = 600
FUNCTION_HARD = 80
FUNCTION_P90 = 30


def functions(tree: ast.AST) -> list[tuple[str, int, int]]:
    """Name, first line and length of each function."""
    return [
        (node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def main() -> int:
    """Print what is over a limit; 0 when nothing is over a hard one."""
    failures = 0
    lengths = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        shown = path.relative_to(ROOT)
        if lines > MODULE_HARD:
            print(f"{shown}: {lines} lines, more than {MODULE_HARD}")
            failures += 1
        elif lines > MODULE_SOFT:
            print(f"{shown}: {lines} lines, over the aim of {MODULE_SOFT}")
        for name, line, length in functions(ast.parse(text)):
            lengths.append(length)
            if length > FUNCTION_HARD:
                print(f"{shown}:{line}: {name} has {length} lines, more than {FUNCTION_HARD}")
                failures += 1
    lengths.sort()
    p90 = lengths[int(len(lengths) * 0.9)]
    if p90 > FUNCTION_P90:
        print(f"the ninetieth percentile of function lengths is {p90}, more than {FUNCTION_P90}")
        failures += 1
    print(f"{len(lengths)} functions, median {lengths[len(lengths) // 2]} lines, p90 {p90}, longest {lengths[-1]}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
