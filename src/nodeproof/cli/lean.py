"""msgspec, loaded without what it does not need; imported before anything that imports msgspec itself."""

import sys

__all__ = ["msgspec"]

if "msgspec" not in sys.modules and "typing_extensions" not in sys.modules:
    # Where typing_extensions is installed, msgspec takes it, and with it inspect, ast and tokenize: 1.5 MiB of memory, 15 ms of
    # each command. Where it is not, msgspec takes typing, which from Python 3.11 on has all that our structs need.
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # how one says that a module is not there
    try:
        import msgspec
    finally:
        del sys.modules["typing_extensions"]
else:
    import msgspec
