"""The stand-in for ``bfcl-eval`` as pip installs it, and a server that knows the right answers to it."""

import base64
import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from nodeproof.bench.bfcl.environment import Recipe
from support.answering import Said, last_text

__all__ = ["STANDIN", "VERSION", "right", "standin_recipe", "standin_wheel"]

STANDIN = Path(__file__).parents[1] / "fixtures" / "packages" / "bfcl_standin"
VERSION = "0.1"
_QUESTION = re.compile(r"([a-z_]+) (\d+): do the thing")


def standin_wheel(folder: Path) -> Path:
    """The package as a wheel; the same bytes every time."""
    path = folder / f"bfcl_eval-{VERSION}-py3-none-any.whl"
    info = f"bfcl_eval-{VERSION}.dist-info"
    members = {str(file.relative_to(STANDIN)): file.read_bytes() for file in sorted(STANDIN.rglob("*.py"))}
    members[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: bfcl-eval\nVersion: {VERSION}\n".encode()
    members[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in members.items())
    members[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in members.items():
            wheel.writestr(zipfile.ZipInfo(name), data)
    return path


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def standin_recipe(wheel: Path, *, dataset_sha256: str = "") -> Recipe:
    """What is installed in the place of the real one."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return Recipe((f"bfcl-eval=={VERSION} --hash=sha256:{digest}",), VERSION, dataset_sha256)


def right(wrong: Iterable[str] = (), silent: Iterable[str] = ()) -> Callable[[dict[str, Any]], Said]:
    """Answers every question of the stand-in rightly, but for samples in ``wrong``, and calls nothing for those in ``silent``."""
    wrong, silent = set(wrong), set(silent)

    def answer(body: dict[str, Any]) -> Said:
        found = _QUESTION.match(last_text(body))
        assert found is not None, body
        subset, number = found[1], int(found[2])
        name = body["tools"][0]["function"]["name"]
        assert name == "thing_do"
        times = 2 if "parallel" in subset else 1
        sample = f"{subset}_{number}"
        if sample in silent or (subset.endswith("irrelevance") != (sample in wrong)):
            return Said("Nothing here fits.")
        count = number + 1000 if sample in wrong else number
        return Said(calls=((name, json.dumps({"count": count})),) * times)

    return answer
