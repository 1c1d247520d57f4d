"""Where serial numbers, names and keys stand: by the name of a file, and by what stands before them in a text."""

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Place", "names_of_users", "places_of", "smbios_serials"]

_SHORTEST_SERIAL = 4
_EVERYBODYS = re.compile(
    rb"(?i)(?:not |to be |default|unknown|none|null|n/a|\[n/a\]|true|false|yes|no\b|0+$|0x0+$|f+$|na$|string$|system serial"
    rb"|chassis serial|redacted|auto$|root$|nobody$|system$|\*+$|/|[{(\[])"
)


class Place(NamedTuple):
    """One of them."""

    kind: str
    pattern: re.Pattern[bytes]
    group: int = 1
    least: int = _SHORTEST_SERIAL
    learned: bool = True
    """What stands there is replaced wherever else it stands, too."""

    def meant(self, value: bytes) -> bool:
        """Whether what stands there is a value, and not the word for none."""
        return len(value) >= self.least and _EVERYBODYS.match(value) is None


_WHOLE = re.compile(rb"\A\s*([^\0\n]+?)\s*\Z")
_SERIAL_FILE = re.compile(
    r"/(?:[a-z]+_)*(?:serial|serial_number|uuid|wwid|wwn|eui|nguid|unique_id|serial_num|asset_tag|node_name|port_name"
    r"|port_guid|node_guid|sys_image_guid|fru_id|machine-id|board_id|subsysnqn|hostnqn|hostid)$"
)
_HOST_FILE = re.compile(r"/(?:proc/sys/kernel/hostname|etc/hostname|proc/sys/kernel/domainname)$")
_LABELLED = Place(
    "serial",
    re.compile(
        rb"(?i)(?<![a-z])(?:serial(?:[ _-]?(?:number|num|no|nr|id))?|asset[ _-]?tag|service[ _-]?tag|uuid|guid|wwn|wwid|eui64"
        rb"|nguid|vdie[ _-]?id|die[ _-]?id|unit[ _-]?id|lu wwn device id|logical unit id)"
        rb"[\"']?\s{0,40}[:=]\s{0,10}[\"']?([^\s\"',;}\]][^\"',;}\]\r\n]{0,127})"
    ),
)
_WWN_JSON = Place("serial", re.compile(rb"\"wwn\"\s*:\s*\{[^}]{0,200}\"id\"\s*:\s*([0-9]+)"))
_NAA = Place("serial", re.compile(rb"\b(?:naa|eui|t10|uuid)\.([0-9A-Za-z_.-]{8,64})"))
_TOKEN = Place(
    "token",
    re.compile(
        rb"(?i)(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|cookie|session[_-]?key"
        rb"|authorization|encryption[_-]?key)[\w-]{0,20}[\"']?\s{0,20}[:=]\s{0,10}[\"']?(?:(?:bearer|basic)\s+)?([^\s\"',;}\]]{4,4096})"
    ),
)
_BEARER = Place("token", re.compile(rb"(?i)\bbearer\s+([\w.~+/=-]{8,4096})"))
_MOUNT_HOST = Place("host", re.compile(rb"(?m)(?:^|\s)(?://)?([A-Za-z][\w.-]{2,252})(?=:/[^/\s])"), least=3)
_CIFS_HOST = Place("host", re.compile(rb"(?m)(?<=\s)//([\w.-]{3,253})/"), least=3)
_NQN = Place("serial", re.compile(rb"\bnqn\.[0-9]{4}-[0-9]{2}\.[\w.-]{1,100}:([^\s\"',]{4,200})"))
_USER = Place(
    "user",
    re.compile(rb"(?i)\b(?:user(?:name)?|logname|login|owner)[\"']?\s{0,10}[:=]\s{0,10}[\"']?([A-Za-z_][\w.-]{2,63})"),
    least=3,
)
_PEOPLE = tuple(
    Place("user", re.compile(before + rb"([A-Za-z_][\w.-]{2,63})"), least=3, learned=False)
    for before in (rb"\b(?:acct|user(?:name)?|logname)[\"']?[:=] ?[\"']?", rb"\bfor user ")
)
"""Logs tell of people whom no file of this host knows."""
_ALWAYS = (_LABELLED, _WWN_JSON, _NAA, _TOKEN, _BEARER, _NQN, *_PEOPLE)


def places_of(name: str) -> list[Place]:
    """Places to look at in the file or output called ``name``."""
    found: list[Place] = list(_ALWAYS)
    if _SERIAL_FILE.search(name):
        found.append(Place("serial", _WHOLE))
    elif _HOST_FILE.search(name):
        found.append(Place("host", _WHOLE, least=1))
    elif name.endswith("/node_desc"):
        found.append(Place("host", re.compile(rb"\A\s*([\w.-]+)"), least=3))
    elif name.endswith(("/mountinfo", "/mounts", "/fstab")):
        found += (_MOUNT_HOST, _CIFS_HOST, _USER)
    return found


def names_of_users(passwd: bytes) -> Iterator[bytes]:
    """Names, and full names, of the people in a passwd(5) file: numbers from 1000 on."""
    for line in passwd.splitlines():
        fields = line.split(b":")
        if len(fields) >= 5 and fields[2].isdigit() and 1000 <= int(fields[2]) < 65534:
            yield fields[0]
            yield fields[4].partition(b",")[0]


_SMBIOS = {
    1: ((7,), 8),
    2: ((7, 8), None),
    3: ((7, 8), None),
    4: ((0x20, 0x21), None),
    17: ((0x18, 0x19), None),
    22: ((8,), None),
    39: ((9, 0xB), None),
}
"""By kind of structure: where the numbers of its serial number and asset tag stand, and where its UUID is (SMBIOS 3.7)."""


def smbios_serials(name: str, data: bytes, *, raw_ids: bool = False) -> Iterator[bytes]:
    """Serial numbers and asset tags in a table of SMBIOS; with ``raw_ids``, its UUID instead."""
    if not name.endswith("/DMI") and "/dmi/entries/" not in name:
        return
    place = 0
    while place + 4 <= len(data):
        kind, length = data[place], data[place + 1]
        end = data.find(b"\0\0", place + length)
        if length < 4 or end < 0:
            return
        strings = data[place + length : end].split(b"\0")
        offsets, uuid_at = _SMBIOS.get(kind, ((), None))
        if raw_ids:
            if uuid_at is not None and length >= uuid_at + 16:
                yield data[place + uuid_at : place + uuid_at + 16]
        else:
            numbers = [data[place + offset] for offset in offsets if offset < length]
            values = (strings[number - 1].strip() for number in numbers if 0 < number <= len(strings))
            yield from (value for value in values if len(value) >= _SHORTEST_SERIAL and _EVERYBODYS.match(value) is None)
        place = end + 2
