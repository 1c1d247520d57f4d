"""Paths and methods: a table in, endpoints out; what is not in the table is 404 or 405 with ``Allow``."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from nodeproof.web.answers import problem
from nodeproof.web.http_messages import Endpoint, Request, Response
from nodeproof.web.requests import Refused

__all__ = ["Router"]

_PARAMETER = re.compile(r"\{([a-z]+)(:path)?\}")


class _Place(NamedTuple):
    """One path."""

    methods: dict[str, Endpoint]
    allow: str


class Router:
    """Endpoints by path (``/api/runs/{id}``, ``/static/{name:path}``) and method."""

    def __init__(self, table: Mapping[str, Mapping[str, Endpoint]]) -> None:
        self._plain: dict[str, _Place] = {}
        self._patterns: list[tuple[re.Pattern[str], _Place]] = []
        for path, endpoints in table.items():
            methods = dict(endpoints)
            if "GET" in methods:
                methods["HEAD"] = methods["GET"]
            place = _Place(methods, ", ".join([*methods, "OPTIONS"]))
            if "{" in path:
                self._patterns.append((_compiled(path), place))
            else:
                self._plain[path] = place

    async def __call__(self, request: Request) -> Response:
        """The answer to ``request``."""
        place = self._find(request)
        if place is None:
            return problem(404, "not found")
        endpoint = place.methods.get(request.method)
        if endpoint is not None:
            try:
                return await endpoint(request)
            except Refused as refused:
                return problem(refused.status, refused.error, refused.detail, refused.headers)
        headers = {"Allow": place.allow}
        if request.method == "OPTIONS":
            return Response(status=204, headers=headers)
        return problem(405, "method not allowed", f"allowed: {place.allow}", headers)

    def _find(self, request: Request) -> _Place | None:
        place = self._plain.get(request.path)
        if place is not None:
            return place
        for pattern, candidate in self._patterns:
            found = pattern.fullmatch(request.path)
            if found is not None:
                request.path_parameters = found.groupdict()
                return candidate
        return None


def _compiled(path: str) -> re.Pattern[str]:
    pattern, end = "", 0
    for found in _PARAMETER.finditer(path):
        pattern += re.escape(path[end : found.start()]) + f"(?P<{found[1]}>{'.*' if found[2] else '[^/]+'})"
        end = found.end()
    return re.compile(pattern + re.escape(path[end:]), re.DOTALL)
