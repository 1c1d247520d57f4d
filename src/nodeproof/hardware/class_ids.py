"""Names of hardware classes: boxes whose speed numbers may be held against each other. Pure."""

__all__ = ["KNOWN", "class_id", "cpu_class", "perf_class"]

KNOWN = ("gb10", "hopper", "h100", "h200", "gh200", "b200", "gb200", "b300", "metal", "strix", "strix-hip", "mi300x")
"""Ids in use; case counts."""

_UNKNOWN = "unknown"
_MAKERS = ("nvidia", "amd")
_CPU_NOISE = {"r", "tm", "c", "cpu", "processor", "core", "with", "radeon", "graphics"}


def class_id(name: str | None) -> str:
    """Id of an accelerator by what its maker calls it: a known id that is a word of the name, else the name itself, shortened.

    ``gh200`` is not ``h200``, and ``NVIDIA A100-SXM4-80GB`` is ``a100sxm480gb``. Nothing to go by: ``unknown``.
    """
    low = (name or "").lower()
    words = _words(low)
    for known in KNOWN:
        if known in words or ("-" in known and _follows(words, known.split("-"))):
            # The longer of two ids that both fit stands for itself: strix-hip is not strix.
            longer = next((other for other in KNOWN if other.startswith(f"{known}-") and _follows(words, other.split("-"))), None)
            return longer or known
    for maker in _MAKERS:
        low = low.replace(maker, "")
    return "".join(letter for letter in low if letter.isascii() and letter.isalnum()) or _UNKNOWN


def cpu_class(model: str | None) -> str:
    """Class of a box without accelerators: ``cpu-xeongold5122`` for ``Intel(R) Xeon(R) Gold 5122 CPU @ 3.60GHz``."""
    head = (model or "").lower().partition("@")[0]
    words = [word for word in _words(head) if word not in _CPU_NOISE and not word.endswith("ghz") and word not in _VENDORS]
    return "cpu-" + "".join(words) if words else _UNKNOWN


_VENDORS = {"intel", "amd", "hisilicon"}


def perf_class(box_class: str, hostname: str | None) -> str:
    """``<class>@<hostname>``; a half that is not known says so, for two unknown boxes are not one."""
    return f"{box_class or _UNKNOWN}@{hostname or _UNKNOWN}"


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in text).split()


def _follows(words: list[str], parts: list[str]) -> bool:
    return any(words[at : at + len(parts)] == parts for at in range(len(words)))
