"""Where the server may listen: on loopback for everybody on this machine, beyond it only with tokens and encrypted."""

from nodeproof.config.schema import WebConfig
from nodeproof.errors import UsageError

__all__ = ["tls_files"]


def tls_files(web: WebConfig, *, loopback: bool) -> bool:
    """Whether connections are to be encrypted. Raises UsageError where others could come in without being asked who they are."""
    if not loopback and not (web.token_file and web.tls_cert and web.tls_key):
        raise UsageError(
            f"will not listen on {web.address}: others can reach it. Set web.token_file, web.tls_cert and web.tls_key, "
            "or listen on 127.0.0.1 and come through ssh -L"
        )
    if bool(web.tls_cert) != bool(web.tls_key):
        raise UsageError("web.tls_cert and web.tls_key belong together: set both, or none")
    return bool(web.tls_cert)
