"""How commands ask the daemon's interface of faults, and its page: over loopback, and through no proxy."""

import json
import urllib.error
import urllib.request

from nodeproof.config.schema import Config
from nodeproof.errors import NodeproofError, UsageError
from nodeproof.host.listen import is_loopback, parse_address

__all__ = ["ask", "base_url", "get"]

_HTTP_S = 3.0
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def base_url(config: Config) -> str:
    """Where the interface of faults is."""
    address = config.faultsub.rest_addr
    parsed = parse_address(address)
    beyond = not isinstance(parsed, str) and not is_loopback(parsed[0])
    return f"http://127.0.0.1:{parsed[1]}/faultsub" if beyond else f"http://{address}/faultsub"


def get(url: str) -> object:
    """The JSON there; None when there is none to be had."""
    try:
        with _opener.open(url, timeout=_HTTP_S) as answer:
            return json.loads(answer.read())
    except (OSError, ValueError, urllib.error.URLError):
        return None


def ask(config: Config, path: str, body: object = None) -> object:
    """The answer to a GET of ``path`` below the interface, or to a POST of ``body``.

    Raises UsageError when nobody is served here or the interface refuses, NodeproofError when it does not answer.
    """
    if not config.faultsub.enabled:
        raise UsageError("nobody is served here: faultsub.enabled is false")
    url = f"{base_url(config)}/{path}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310 - made of our own address
    try:
        with _opener.open(request, timeout=_HTTP_S) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as refusal:
        raise UsageError(_words(refusal)) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", error)
        raise NodeproofError(f"{url} does not answer ({why}); start the daemon: nodeproof up") from None


def _words(refusal: urllib.error.HTTPError) -> str:
    try:
        told = json.loads(refusal.read())
        return str(told["error"])
    except (OSError, ValueError, LookupError, TypeError):
        return f"the interface answered {refusal.code}"
