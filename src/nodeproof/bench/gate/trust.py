"""Whose records count: the keys that ``bench.toml`` lists, or, where it lists none, this node's own."""

import os

from nodeproof.bench.gate.schema import Thresholds
from nodeproof.host.signing_key import PublicKey, SigningKey

__all__ = ["trusted_keys"]


def trusted_keys(thresholds: Thresholds | None, own: SigningKey) -> dict[str, PublicKey]:
    """By id; of a node that has never signed anything none. Raises RecordError when its own key is of no use."""
    if thresholds is not None and thresholds.signers:
        return {signer.key.key_id: signer.key for signer in thresholds.signers}
    return {own.public.key_id: own.public} if os.path.lexists(own.path) else {}
