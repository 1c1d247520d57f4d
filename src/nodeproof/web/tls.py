"""What encrypts connections; brings OpenSSL along."""

import os
import ssl
import stat

from nodeproof.config.schema import WebConfig
from nodeproof.errors import UsageError

__all__ = ["tls_context"]


def tls_context(web: WebConfig) -> ssl.SSLContext:
    """By the files that ``web`` names. Raises UsageError, naming file and remedy."""
    _judge_key(web.tls_key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    try:
        # An empty password: a key that needs one must not make a daemon wait for somebody to type it.
        context.load_cert_chain(web.tls_cert, web.tls_key, password="")
    except ssl.SSLError as error:
        raise UsageError(
            f"web.tls_cert {web.tls_cert} and web.tls_key {web.tls_key}: {error.reason or error}; "
            "give a certificate (with its chain) and the unencrypted key that belongs to it, both PEM"
        ) from None
    except OSError as error:
        raise UsageError(f"web.tls_cert {web.tls_cert}: {error.strerror or error}; name a file that this user can read") from None
    return context


def _judge_key(path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise UsageError(f"web.tls_key {path}: {error.strerror or error}; name a file that this user can read") from None
    if mode & stat.S_IRWXO:
        raise UsageError(f"web.tls_key {path}: others may read or change it; chmod 600 {path}")
