"""The files of the page, read once at start. A request names one of them or gets nothing: no path is ever made of a request."""

import os

from nodeproof.web.answers import Body

__all__ = ["STATIC_DIRECTORY", "load_static"]

STATIC_DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_GZIP_LEVEL = 9


def load_static(directory: str = STATIC_DIRECTORY) -> dict[str, Body]:
    """Every servable file below ``directory`` by its path there; other kinds (licences, notes) are not served."""
    found = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            media_type = _TYPES.get(os.path.splitext(name)[1])
            if media_type is None:
                continue
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, directory)] = Body.of(file.read(), media_type, level=_GZIP_LEVEL)
    return found
