"""Taking out of a bundle what tells whose node it is, or opens a door: serial numbers, addresses, names, tokens.

First everything is learned, from all parts: by *place* (a file called ``serial``, a line ``Serial Number: ...``, the name in
``/proc/sys/kernel/hostname``). Then all of it is replaced in all parts, wherever it stands, together with whatever has the *form*
of an address, a UUID or a key. At the end each part is searched once more; one in which anything is left is not written at all.
"""

import re
from collections.abc import Callable, Iterable

from nodeproof.operate.bundle.places import Place, places_of, smbios_serials
from nodeproof.operate.bundle.stand_ins import StandIns, is_kept_ip, is_kept_mac, is_kept_uuid

__all__ = ["Redactor"]

_ANYWHERE_CHARS = 6
"""A value so long is replaced inside other words, too; a shorter one only as a word of its own."""
_SHORTEST_CHARS = 3
_PLAIN_DIGITS = 9
"""Digits alone are a serial number anywhere from so many on: fewer are counters and sizes."""
_COMMON = frozenset(
    b"localhost localdomain none null unknown default string system server node host linux root admin user nobody daemon kernel "
    b"true false yes not specified n/a [n/a] na disk memory network chassis cpu gpu npu virtual qemu kvm tobefilledbyoem nvidia "
    b"intel amd ubuntu debian centos test cloud example".split()
)
_UUID = re.compile(rb"(?<![0-9a-fA-F-])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9a-fA-F-])")
_MAC = re.compile(rb"(?<![0-9a-fA-F:-])[0-9a-fA-F]{2}(?:(?::[0-9a-fA-F]{2}){5,19}|(?:-[0-9a-fA-F]{2}){5,19})(?![0-9a-fA-F:-])")
_IPV4 = re.compile(rb"(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?!\.?\w)")
_IPV6 = re.compile(rb"(?<![\w:.])(?=[0-9a-fA-F]*:[0-9a-fA-F]*:)[0-9a-fA-F:]{2,39}(?![\w:])")
_HOME = re.compile(rb"(?<=/home/)[A-Za-z0-9_][\w.-]*")
_MAIL = re.compile(rb"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}")
_URL = re.compile(
    rb"\b(https?|nats|redis|amqps?|postgres(?:ql)?|mysql|ldaps?)://(?!(?:127\.0\.0\.1|localhost|\[::1\])[:/\s\"'])[^\s\"'<>\\,]+"
)
_KEYS = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    rb"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    rb"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    rb"|\b(?:ghp|gho|ghs|github_pat|hf|sk|pk|xox[abp]|glpat|npm|pypi)[_-][\w-]{16,}"
    rb"|(?<![\w/+=-])(?=[\w+=-]*[a-z])(?=[\w+=-]*[A-Z])(?=[\w+=-]*[0-9])[\w+=-]{32,}",
    re.DOTALL,
)
_ESCAPED = re.compile(rb"\\[nrt]")
"""Ends of lines in a JSON text: the letter belongs to no word."""
_OWN_URL = b"https://redacted.invalid"


class Redactor:
    """What was learned of one node."""

    def __init__(self) -> None:
        self.stand_ins = StandIns(self._holds_a_value)
        self._known: dict[bytes, str] = {}
        """Kind by value, lower case; longest first once learning is over."""
        self._sorted: list[tuple[bytes, str]] = []
        self._domains: set[bytes] = set()

    def learn(self, kind: str, value: bytes) -> None:
        """A value of ``kind`` (serial, host, user, token, domain) that must not be told, unless it is a word of everybody's."""
        value = value.strip().lower()
        if kind == "domain":
            if b"." in value and len(value) > _SHORTEST_CHARS:
                self._domains.add(value)
            return
        digits = value.isdigit() and len(value) < _PLAIN_DIGITS
        if len(value) < _SHORTEST_CHARS or digits or value in _COMMON or not value.strip(b"0f:x.- "):
            return
        if len(set(value)) > 1:
            self._known.setdefault(value, kind)
            self._sorted.clear()

    def _holds_a_value(self, text: bytes) -> bool:
        return any(value in text for value in self._known)

    def learn_all(self, values: Iterable[tuple[str, bytes]]) -> None:
        """:meth:`learn` of each kind and value."""
        for kind, value in values:
            self.learn(kind, value)

    def learn_from(self, name: str, data: bytes) -> None:
        """Whatever ``data`` tells by its place, ``name`` among others: a path or a command line."""
        for place in places_of(name):
            for match in place.pattern.finditer(data) if place.learned else ():
                value = match[place.group].strip()
                if place.meant(value):
                    self.learn(place.kind, value)
        for value in smbios_serials(name, data):
            self.learn("serial", value)

    def redact(self, name: str, data: bytes) -> bytes:
        """``data`` without it. Bytes that are no text keep their length."""
        if b"\0" in data:
            return self._binary(name, data)
        for place in places_of(name):
            data = place.pattern.sub(self._placed(place), data)
        for value, kind in self._in(data):
            data = self._of_value(value).sub(lambda match, kind=kind: self.stand_ins.of(kind, match[0]), data)  # type: ignore[misc]
        for domain in self._domains:
            if domain in data.lower():
                data = _of_domain(domain).sub(lambda match: self.stand_ins.of("host", match[0]) + b".example", data)
        return self._forms(data)

    def text(self, text: str) -> str:
        """A name or message without it."""
        return self.redact("", text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def leaks(self, data: bytes) -> list[str]:
        """Kinds of what is left in ``data``; empty when nothing is."""
        data = _ESCAPED.sub(b"  ", data)
        left = {kind for value, kind in self._in(data) if self._of_value(value).search(data)}
        lower = data.lower()
        left |= {"domain" for domain in self._domains if _of_domain(domain).search(lower)}
        if b"\0" not in data:
            left |= {"mac" for match in _MAC.finditer(data) if not is_kept_mac(match[0])}
            left |= {"uuid" for match in _UUID.finditer(data) if not is_kept_uuid(match[0])}
            left |= {"address" for form in (_IPV4, _IPV6) for match in form.finditer(data) if not _kept_ip(match[0])}
            left |= {"token" for _ in _KEYS.finditer(data)}
        return sorted(left)

    def _placed(self, place: Place) -> Callable[[re.Match[bytes]], bytes]:
        def put(match: re.Match[bytes]) -> bytes:
            value = match[place.group]
            if not place.meant(value.strip()):
                return match[0]
            start, end = (at - match.start() for at in match.span(place.group))
            bare = value.strip()
            stand_in = value.replace(bare, self.stand_ins.of(place.kind, bare)) if bare else value
            return match[0][:start] + stand_in + match[0][end:]

        return put

    def _in(self, data: bytes) -> list[tuple[bytes, str]]:
        """What is known and stands in ``data``, longest first."""
        if not self._sorted:
            self._sorted = sorted(self._known.items(), key=lambda one: (-len(one[0]), one[0]))
        lower = data.lower()
        return [(value, kind) for value, kind in self._sorted if value in lower]

    @staticmethod
    def _of_value(value: bytes) -> re.Pattern[bytes]:
        bare = re.escape(value)
        long = len(value) >= _ANYWHERE_CHARS and not value.isdigit()
        return re.compile(bare if long else rb"(?<![A-Za-z0-9])" + bare + rb"(?![A-Za-z0-9])", re.IGNORECASE)

    def _binary(self, name: str, data: bytes) -> bytes:
        """With every byte where it was: stand-ins are cut, or filled up."""
        values = [(value, kind) for value, kind in self._in(data)]
        for value, kind in values:
            data = self._of_value(value).sub(lambda match, kind=kind: _fit(self.stand_ins.of(kind, match[0]), match[0]), data)  # type: ignore[misc]
        for value in smbios_serials(name, data, raw_ids=True):
            data = data.replace(value, bytes(len(value)))
        for form in (_UUID, _MAC, _IPV4, _MAIL, _KEYS):
            data = form.sub(lambda match: b"x" * len(match[0]), data)
        return data

    def _forms(self, data: bytes) -> bytes:
        stand_ins = self.stand_ins
        data = _URL.sub(lambda match: match[1] + b"://" + _OWN_URL.partition(b"://")[2], data)
        data = _UUID.sub(lambda match: match[0] if is_kept_uuid(match[0]) else stand_ins.uuid(match[0]), data)
        data = _KEYS.sub(lambda match: stand_ins.of("token", match[0]), data)
        data = _MAC.sub(lambda match: match[0] if is_kept_mac(match[0]) else stand_ins.mac(match[0]), data)
        data = _IPV4.sub(lambda match: match[0] if _kept_ip(match[0]) else stand_ins.ipv4(match[0]), data)
        data = _IPV6.sub(lambda match: match[0] if _kept_ip(match[0]) else stand_ins.ipv6(match[0]), data)
        data = _HOME.sub(lambda match: match[0] if _STAND_IN_USER.fullmatch(match[0]) else stand_ins.of("user", match[0]), data)
        return _MAIL.sub(lambda match: stand_ins.of("user", match[0]) + b"@mail.invalid", data)


_STAND_IN_USER = re.compile(rb"user[0-9]+")


def _of_domain(domain: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![\w.-])(?:[\w-]{1,63}\.){0,8}" + re.escape(domain) + rb"(?![\w-])", re.IGNORECASE)


def _kept_ip(value: bytes) -> bool:
    try:
        return is_kept_ip(value.decode("ascii"))
    except ValueError:
        return True


def _fit(stand_in: bytes, value: bytes) -> bytes:
    return stand_in[: len(value)].ljust(len(value), b"x")
