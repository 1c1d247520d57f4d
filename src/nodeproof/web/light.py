"""asyncio without OpenSSL where nothing is encrypted: megabytes of a daemon's process that a page on loopback never uses."""

import sys

__all__ = ["load_asyncio"]


def load_asyncio(*, with_tls: bool) -> None:
    """Import asyncio; without TLS as on a Python that was built without ssl. ``ssl`` itself can still be imported after it."""
    if not with_tls and "asyncio" not in sys.modules and "ssl" not in sys.modules:
        sys.modules["ssl"] = None  # type: ignore[assignment] # an import of it fails (importlib's documented way)
        try:
            import asyncio  # noqa: F401, PLC0415 - loaded here so that it finds no ssl
        finally:
            del sys.modules["ssl"]
