"""The exporter: the Prometheus page, and whether the daemon is well, over HTTP."""

from collections.abc import Collection, Mapping

from nodeproof.host.http_request import Request, quality
from nodeproof.host.http_server import Handler, HttpServer, Response
from nodeproof.sinks.prometheus import Format, Renderer

__all__ = ["Exporter", "exporter_routes", "negotiated"]

_NOT_READY = b"# nothing has been read yet\n"
_REMEDY = "stop that process, or set exporter.address to another one"


def negotiated(accept: str) -> Format:
    """OpenMetrics when the client prefers it to, or likes it as well as, plain text; else text."""
    weights = quality(accept)
    open_metrics = max((weight for name, weight in weights.items() if _is_open_metrics(name)), default=0.0)
    text = max((weight for name, weight in weights.items() if name.split(";")[0] in {"text/plain", "text/*", "*/*"}), default=0.0)
    return Format.OPENMETRICS if open_metrics > 0 and open_metrics >= text else Format.TEXT


def _is_open_metrics(name: str) -> bool:
    kind, *parameters = name.split(";")
    versions = [parameter.removeprefix("version=") for parameter in parameters if parameter.startswith("version=")]
    return kind == "application/openmetrics-text" and versions in ([], ["1.0.0"])


def exporter_routes(renderer: Renderer, more: Mapping[str, Handler] | None = None) -> dict[str, Handler]:
    """Every route of the exporter, ``more`` among them."""

    def metrics(request: Request) -> Response:
        if not renderer.ready:
            return Response(503, _NOT_READY, headers=(("Retry-After", "1"),))
        form = negotiated(request.headers.get("accept", ""))
        vary = ("Vary", "Accept, Accept-Encoding")
        if request.accepts_gzip():
            return Response(200, renderer.render_gzip(form), str(form), (vary, ("Content-Encoding", "gzip")))
        return Response(200, renderer.parts(form), str(form), (vary,))

    def healthy(_request: Request) -> Response:
        return Response(200, b"ok\n")

    def ready(_request: Request) -> Response:
        if not renderer.ready:
            return Response(503, b"nothing has been read yet\n", headers=(("Retry-After", "1"),))
        if not renderer.fresh():
            return Response(503, b"no component has been read lately; every reading is stale\n")
        return Response(200, b"ok\n")

    def index(_request: Request) -> Response:
        lines = ["nodeproof exporter", "", *[f"  {path}" for path in sorted(routes) if path != "/"]]
        return Response(200, ("\n".join(lines) + "\n").encode())

    routes: dict[str, Handler] = {"/": index, "/metrics": metrics, "/-/healthy": healthy, "/-/ready": ready}
    routes.update(more or {})
    return routes


class Exporter:
    """Serves ``renderer`` at ``address`` between :meth:`start` and :meth:`stop`."""

    def __init__(
        self,
        renderer: Renderer,
        address: str,
        *,
        allowed_hosts: Collection[str] = (),
        more: Mapping[str, Handler] | None = None,
    ) -> None:
        """``more``: further routes, path to handler. Raises UsageError for an address that is none."""
        routes = exporter_routes(renderer, more)
        self.server = HttpServer([address], routes, allowed_hosts=allowed_hosts, remedy=_REMEDY)

    def start(self) -> None:
        """Bind and begin. Raises AddressInUseError, naming the holder."""
        self.server.start()

    def stop(self) -> None:
        """End."""
        self.server.stop()
