"""``/sys/fs/btrfs/UUID/devinfo/ID/error_stats``: ``write_errs 0`` (fs/btrfs/sysfs.c, since Linux 5.14)."""

from nodeproof.errors import ParseError

__all__ = ["parse_error_stats"]


def parse_error_stats(raw: bytes, /) -> dict[str, int]:
    """Errors by kind (``write``, ``read``, ``flush``, ``corruption``, ``generation``). Raises ParseError when there is none."""
    found: dict[str, int] = {}
    for line in raw.split(b"\n"):
        fields = line.split()
        if len(fields) == 2 and fields[0].endswith(b"_errs") and fields[1].isdigit() and len(fields[1]) <= 20:
            found[fields[0][: -len(b"_errs")].decode("utf-8", "replace")] = int(fields[1])
    if not found:
        raise ParseError("btrfs error_stats", 1, raw[:40].decode("utf-8", "replace"), "lines such as write_errs 0")
    return found
