"""``/sys/devices/system/edac/mc/mc0``: memory controllers and the errors they counted (kernel: admin-guide/RAS/main.rst).

A controller's folder holds files of one value each: ``ce_count`` ``3``, ``mc_name`` ``Skylake Socket#0 IMC#0``. Its modules are
folders ``dimm0`` or ``rank0`` (drivers/edac/edac_mc_sysfs.c) with ``dimm_label`` ``CPU_SrcID#0_MC#0_Chan#1_DIMM#0``,
``dimm_location`` ``channel 1 slot 0`` and counters; kernels before 3.6, and later ones with CONFIG_EDAC_LEGACY_SYSFS, have
``csrow0`` with ``ch0_ce_count`` and ``ch0_dimm_label`` instead or beside them. Counters run since the driver was loaded.
"""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "CONTROLLER_FILES",
    "CSROW_FILES",
    "DIMM_FILES",
    "Controller",
    "Dimm",
    "is_csrow",
    "is_dimm",
    "parse_controller",
    "parse_count",
    "parse_csrow",
    "parse_dimm",
]

CONTROLLER_FILES = ("mc_name", "size_mb", "ce_noinfo_count", "ue_noinfo_count")
"""Files of a controller besides its two hot counters ``ce_count`` and ``ue_count``."""
DIMM_FILES = ("dimm_label", "dimm_location", "size", "dimm_mem_type", "dimm_edac_mode", "dimm_ce_count", "dimm_ue_count")
"""Files of a ``dimmN`` or ``rankN``."""
_CHANNELS = 8
CSROW_FILES = (
    "size_mb",
    "mem_type",
    "edac_mode",
    "ue_count",
    *(f"ch{channel}_{item}" for channel in range(_CHANNELS) for item in ("ce_count", "dimm_label")),
)
"""Files of a ``csrowN``; one has as many channels as the controller."""

_MAX_MIB = 1 << 30
"""A PiB behind one controller: more is a misread register."""
_MAX_DIGITS = 10
"""Counters are 32 bits wide."""


class Controller(NamedTuple):
    """One memory controller."""

    model: str
    """Driver and controller: ``Skylake Socket#0 IMC#0``."""
    size_mib: int | None
    ce_noinfo: int | None
    """Corrected errors that no module could be named for."""
    ue_noinfo: int | None


class Dimm(NamedTuple):
    """One module, rank, or channel of a chip-select row: the finest thing the driver can name."""

    name: str
    """``dimm3``, ``rank0``, ``csrow0ch1``."""
    label: str
    """What the board's maker or the administrator calls its slot; may be empty."""
    location: str
    """``channel 1 slot 0``; may be empty."""
    size_mib: int | None
    """0 = empty slot."""
    memory_type: str
    edac_mode: str
    """``S4ECD4ED``, ``SECDED``, ``None``."""
    corrected: int | None
    uncorrected: int | None
    """None: the kernel counts them for the controller or the row only."""


def is_dimm(name: str) -> bool:
    """Whether a name in a controller's folder is a module's folder."""
    return name.startswith(("dimm", "rank")) and name[4:].isdecimal()


def is_csrow(name: str) -> bool:
    """Whether a name in a controller's folder is a chip-select row's folder."""
    return name.startswith("csrow") and name[5:].isdecimal()


def parse_count(raw: bytes | None, /) -> int | None:
    """A counter; None when it is not there or is no number."""
    text = (raw or b"").strip()
    return int(text) if text.isdigit() and len(text) <= _MAX_DIGITS else None


def parse_controller(files: Mapping[str, bytes], /) -> Controller:
    """A controller from what its files (:data:`CONTROLLER_FILES`) hold."""
    return Controller(
        _text(files.get("mc_name")),
        _size(files.get("size_mb")),
        parse_count(files.get("ce_noinfo_count")),
        parse_count(files.get("ue_noinfo_count")),
    )


def parse_dimm(name: str, files: Mapping[str, bytes], /) -> Dimm:
    """A module from what its files (:data:`DIMM_FILES`) hold."""
    return Dimm(
        name,
        _text(files.get("dimm_label")),
        _text(files.get("dimm_location")),
        _size(files.get("size")),
        _text(files.get("dimm_mem_type")),
        _text(files.get("dimm_edac_mode")),
        parse_count(files.get("dimm_ce_count")),
        parse_count(files.get("dimm_ue_count")),
    )


def parse_csrow(name: str, files: Mapping[str, bytes], /) -> list[Dimm]:
    """The channels of one row from what its files (:data:`CSROW_FILES`) hold.

    A row counts uncorrected errors as a whole, as they span its channels: only a row of one channel can name its module.
    """
    channels = [channel for channel in range(_CHANNELS) if f"ch{channel}_ce_count" in files]
    alone = len(channels) == 1
    return [
        Dimm(
            f"{name}ch{channel}",
            _text(files.get(f"ch{channel}_dimm_label")),
            f"csrow {name[5:]} channel {channel}",
            _size(files.get("size_mb")) if alone else None,
            _text(files.get("mem_type")),
            _text(files.get("edac_mode")),
            parse_count(files.get(f"ch{channel}_ce_count")),
            parse_count(files.get("ue_count")) if alone else None,
        )
        for channel in channels
    ]


def _text(raw: bytes | None) -> str:
    return " ".join((raw or b"").decode("utf-8", "replace").split())


def _size(raw: bytes | None) -> int | None:
    size_mib = parse_count(raw)
    return size_mib if size_mib is not None and size_mib < _MAX_MIB else None
