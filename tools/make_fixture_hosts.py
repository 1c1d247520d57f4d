"""Write fixture hosts as folders of /proc and /sys, to look at or to run the program on.

Use: make_fixture_hosts.py FOLDER [HOST ...]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.hosts import GENERATED, write_host


def main(arguments: list[str]) -> int:
    """Write the hosts named, or all generated ones, each below a folder of its name; 2 when no folder is given."""
    if not arguments:
        print(__doc__)
        return 2
    for name in arguments[1:] or sorted(GENERATED):
        print(write_host(name, f"{arguments[0]}/{name}"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
