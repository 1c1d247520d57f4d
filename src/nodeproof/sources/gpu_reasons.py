"""Why a card does not tell something: better reasons than "not supported", drawn from what else it tells.

What a card has no part for is not applicable, and no blind spot; what it has and does not show is one.
"""

from collections.abc import Mapping

from nodeproof.errors import Absence
from nodeproof.model.gpu import Key, Untold

__all__ = ["better_reason", "with_usage"]

_NOT = Absence.NOT_APPLICABLE
_ECC_NAMES = frozenset({"ecc_errors", "ecc_volatile_errors", "ecc_aggregate_errors"})
_LOAD_NAMES = frozenset({"utilization", "memory_utilization", "encoder_utilization", "decoder_utilization"})
_MEMORY_NAMES = frozenset({"memory_usage", "memory_detail"})
_NO_ECC = Untold(_NOT, "this card has no error correction")
_ECC_OFF = Untold(Absence.UNSUPPORTED, "error correction is switched off on this card: its errors are not seen (nvidia-smi -e 1)")
_MIG = Untold(_NOT, "the card is cut into MIG instances, and has no load of its own")
_UNIFIED = Untold(_NOT, "the card has no memory of its own: it uses the host's (component memory)")
_NO_RETIREMENT = Untold(_NOT, "this card does not take pages out of use")
_NO_REMAPPING = Untold(_NOT, "this card does not replace rows of memory")
_OF_ITSELF: Mapping[str, Untold] = {
    "fabric_state": Untold(_NOT, "this card belongs to no NVLink fabric"),
    "fan_speed": Untold(_NOT, "this card has no fan of its own"),
    "retired_pages": _NO_RETIREMENT,
    "retired_pages_pending": _NO_RETIREMENT,
    "remapped_rows": _NO_REMAPPING,
    "row_remap_pending": _NO_REMAPPING,
    "row_remap_failure": _NO_REMAPPING,
    "row_remap_banks": _NO_REMAPPING,
    "ecc_mode": _NO_ECC,
    "sram_threshold_exceeded": Untold(_NOT, "this card keeps no such threshold"),
    "mig_mode": Untold(_NOT, "this card cannot be cut into MIG instances"),
    "memory_temperature": Untold(Absence.UNSUPPORTED, "this card has no sensor in its memory, or its driver does not show it"),
}


def better_reason(key: Key, absence: Untold, values: Mapping[Key, float]) -> Untold:
    """``absence`` itself, or what the card's other readings say it means."""
    if absence.state is not Absence.UNSUPPORTED:
        return absence
    name = key[0]
    if name in _ECC_NAMES:
        mode = values.get(("ecc_mode",))
        return _NO_ECC if mode is None else absence if mode else _ECC_OFF
    if name in _LOAD_NAMES:
        return _MIG if values.get(("mig_mode",)) else absence
    if name in _MEMORY_NAMES:
        return _UNIFIED if ("temperature",) in values and ("utilization",) in values else absence
    return _OF_ITSELF.get(name, absence)


def with_usage(values: dict[Key, float], untold: dict[Key, Untold]) -> None:
    """Add ``memory_usage``, or why it cannot be reckoned."""
    used, total = values.get(("memory_detail", "used")), values.get(("memory_detail", "total"))
    if used is not None and total:
        values["memory_usage",] = round(100.0 * used / total, 2)
    else:
        untold["memory_usage",] = untold.get(("memory_detail", "total")) or Untold(
            Absence.UNKNOWN, "size or use of the card's memory is not told"
        )
