"""Makes SMBIOS tables, field by field as DSP0134 3.7 lays them down, for fixtures without anybody's serial numbers."""

import struct

__all__ = ["baseboard", "bios", "chassis", "end", "memory_array", "memory_device", "processor", "structure", "system", "table"]

_MIB_PER_GIB = 1024


def structure(kind: int, handle: int, body: bytes, strings: tuple[str, ...] = ()) -> bytes:
    """One structure: header, formatted part, strings and the bytes that end it."""
    head = struct.pack("<BBH", kind, 4 + len(body), handle)
    texts = b"".join(text.encode() + b"\0" for text in strings)
    return head + body + (texts + b"\0" if strings else b"\0\0")


def table(*structures: bytes) -> bytes:
    """Structures one after the other, and the one that ends the table."""
    return b"".join((*structures, end()))


def end() -> bytes:
    """Type 127."""
    return structure(127, 0xFEFF, b"")


def bios(vendor: str, version: str, date: str) -> bytes:
    """Type 0 of version 2.4: strings, start segment, ROM size, two blocks of characteristics, releases."""
    body = struct.pack("<BBHBBQHBBBB", 1, 2, 0xF000, 3, 0xFF, 0x0B, 0x0F03, 5, 17, 0xFF, 0xFF)
    return structure(0, 0x0000, body, (vendor, version, date))


def system(maker: str, product: str, version: str, serial: str) -> bytes:
    """Type 1 of version 2.4: strings, UUID, wake-up type, SKU number, family."""
    body = struct.pack("<BBBB16sBBB", 1, 2, 3, 4, bytes(16), 6, 0, 0)
    return structure(1, 0x0001, body, (maker, product, version, serial))


def baseboard(maker: str, product: str, version: str) -> bytes:
    """Type 2: strings, features, location, chassis handle, type, no contained objects."""
    body = struct.pack("<BBBBBBBHBB", 1, 2, 3, 0, 0, 0x09, 0, 0x0003, 0x0A, 0)
    return structure(2, 0x0002, body, (maker, product, version))


def chassis(maker: str, kind: int) -> bytes:
    """Type 3 of version 2.3: maker, type, strings, states, OEM word, height, cords, contained elements."""
    body = struct.pack("<BBBBBBBBBIBBBB", 1, kind, 0, 0, 0, 3, 3, 3, 3, 0, 2, 2, 0, 0)
    return structure(3, 0x0003, body, (maker,))


def processor(
    handle: int,
    socket: str,
    maker: str,
    model: str,
    *,
    cores: int,
    enabled_cores: int,
    threads: int,
    mhz: int,
) -> bytes:
    """Type 4 of version 3.0; counts above 255 go to the wide fields."""

    def narrow(count: int) -> int:
        return min(count, 0xFF)

    body = struct.pack(
        "<BBBBQBBHHHBBHHHBBBBBBHHHHH",
        1,  # socket
        3,  # central processor
        0xFE,  # family in the wide field
        2,  # maker
        0,  # identification
        3,  # model
        0x8A,  # voltage
        100,
        mhz,
        mhz,
        0x41,  # populated, enabled
        6,
        0xFFFF,
        0xFFFF,
        0xFFFF,
        0,
        0,
        0,
        narrow(cores),
        narrow(enabled_cores),
        narrow(threads),
        0x00FC,
        0x6B,
        cores,
        enabled_cores,
        threads,
    )
    return structure(4, handle, body, (socket, maker, model))


def memory_array(handle: int, *, use: int = 3, correction: int = 6, capacity_gib: int, slots: int) -> bytes:
    """Type 16 of version 2.7: location, use, correction, capacity, error handle, slots, wide capacity."""
    kib = capacity_gib << 20
    narrow, wide = (0x8000_0000, kib << 10) if kib >= 0x8000_0000 else (kib, 0)
    return structure(16, handle, struct.pack("<BBBIHHQ", 3, use, correction, narrow, 0xFFFE, slots, wide))


def memory_device(
    handle: int,
    locator: str,
    bank: str,
    *,
    size_mib: int | None,
    kind: int = 0x1A,
    rated_mts: int = 0,
    configured_mts: int = 0,
    maker: str = "",
    part: str = "",
    rank: int = 0,
    total_width: int = 72,
    data_width: int = 64,
    form_factor: int = 9,
) -> bytes:
    """Type 17 of version 3.3 (92 bytes). ``size_mib`` 0 = empty slot, None = unknown to the firmware."""
    size, extended = 0xFFFF, 0
    if size_mib is not None:
        size, extended = (0x7FFF, size_mib) if size_mib >= 32 * _MIB_PER_GIB - 1 else (size_mib, 0)
    texts = (locator, bank, maker, part)
    numbers = iter(range(1, 5))
    at_locator, at_bank, at_maker, at_part = (next(numbers) if text else 0 for text in texts)
    body = struct.pack(
        "<HHHHHBBBBBHHBBBBBIHHHHBHBHHHHQQQQII",
        0x1000,
        0xFFFE,
        total_width,
        data_width,
        size,
        form_factor,
        0,
        at_locator,
        at_bank,
        kind,
        0x2080,
        min(rated_mts, 0xFFFF),
        at_maker,
        0,
        0,
        at_part,
        rank,
        extended,
        min(configured_mts, 0xFFFF),
        1200,
        1200,
        1200,
        3,
        0x0008,
        0,
        0,
        0,
        0,
        0,
        0xFFFF_FFFF_FFFF_FFFF,
        0,
        0,
        0,
        rated_mts if rated_mts >= 0xFFFF else 0,
        configured_mts if configured_mts >= 0xFFFF else 0,
    )
    return structure(17, handle, body, tuple(text for text in texts if text))
