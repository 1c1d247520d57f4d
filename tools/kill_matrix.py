"""Run the whole kill matrix of stress jobs and print its table: ``python tools/kill_matrix.py [WORD ...]``.

Phases x roads out x workloads, each a whole ``nodeproof stress`` (``tests/support/kill_rows.py``); with words, the rows that hold
all of them. Takes some minutes. Ends with 1 when a row left something behind or its record says another end.
"""

import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.kill_rows import WORKLOADS, Matrix, Row, Seen, all_rows, memory_groups

_SIDE_BY_SIDE = 4


def main() -> int:
    """Print a line for each phase and road, the programs side by side."""
    rows = [row for row in all_rows(with_memory=memory_groups()) if all(word in row for word in sys.argv[1:])]
    with tempfile.TemporaryDirectory(prefix="kill-matrix-") as folder, Matrix(Path(folder)) as matrix:

        def run(row: Row) -> Seen:
            try:
                seen = matrix.run(row)
            except AssertionError as error:
                seen = Seen(row, "?", -1, 0.0, (str(error),))
            sys.stderr.write(".F"[bool(seen.faults)])
            sys.stderr.flush()
            return seen

        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            found = list(pool.map(run, rows))
    print(f"\n| phase | road | {' | '.join(WORKLOADS)} |")
    print("| --- | --- |" + " --- |" * len(WORKLOADS))
    cells = {seen.row: f"{seen.execution}{' **left something**' if seen.faults else ''}" for seen in found}
    for phase, road in dict.fromkeys((row.phase, row.road) for row in rows):
        print(f"| {phase} | {road} | " + " | ".join(cells.get(Row(phase, road, one), "-") for one in WORKLOADS) + " |")
    faults = [f"{seen.row}: {fault}" for seen in found for fault in seen.faults]
    cancels = sorted(seen.ending_s for seen in found if seen.row.phase == "run" and seen.row.road == "cancel")
    print(f"\n{len(found)} rows, {len(faults)} faults" + (f"; cancel took {statistics.median(cancels):.2f} s" if cancels else ""))
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
