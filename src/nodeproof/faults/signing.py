"""How a receiver knows that a delivery is this node's, whole, and of now. Pure."""

import hashlib
import hmac

__all__ = ["SCHEME", "signature", "verifies"]

SCHEME = "v1"


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """``v1=<hex>``: HMAC-SHA-256 over timestamp (seconds since the epoch), a dot and the body."""
    return f"{SCHEME}=" + hmac.new(secret, timestamp.encode("ascii") + b"." + body, hashlib.sha256).hexdigest()


def verifies(secret: bytes, timestamp: str, body: bytes, claimed: str, *, now_s: float, tolerance_s: float = 300.0) -> bool:
    """Whether ``claimed`` is the signature, and the timestamp within ``tolerance_s`` of now: what a receiver checks."""
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12) or abs(now_s - int(timestamp)) > tolerance_s:
        return False
    return hmac.compare_digest(signature(secret, timestamp, body), claimed)
