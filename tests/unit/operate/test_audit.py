"""Each check of an audit passes on a sound tree, and fails on one with its fault."""

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import msgspec
import pytest

from nodeproof.cli.main import main
from nodeproof.operate.audit.checks import Result, Vendored, audit_tree, vendored
from nodeproof.operate.audit.environment import Installed, audit_environment, installed
from nodeproof.operate.audit.manifests import audit_manifest
from nodeproof.operate.audit.sbom import sbom

ROOT = Path(__file__).parents[3]
VENDOR = "src/nodeproof/web/static/vendor"
FILES = (
    "LICENSE",
    "THIRD_PARTY.md",
    "CHANGELOG.md",
    "README.md",
    "pyproject.toml",
    "requirements/dev.lock",
    "src/nodeproof/__init__.py",
)
DOCUMENTS = ("release-audit.md", "security.md", "verification.md")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What an audit looks at, as it is here."""
    root = tmp_path / "tree"
    for name in (*FILES, *(f"docs/{page}" for page in DOCUMENTS)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)
    shutil.copytree(ROOT / VENDOR, root / VENDOR)
    return root


def _failed(root: Path) -> list[str]:
    return [check.name for check in audit_tree(str(root)) if check.result is not Result.OK]


def test_this_tree_passes(tree: Path) -> None:
    assert _failed(tree) == []
    assert [check.name for check in audit_tree(str(ROOT)) if check.result is not Result.OK] == []


def _replace(name: str, old: str, new: str) -> Callable[[Path], object]:
    def spoil(root: Path) -> None:
        text = (root / name).read_text("utf-8")
        assert old in text
        (root / name).write_text(text.replace(old, new), "utf-8")

    return spoil


def _write(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda root: (root / name).write_bytes(content)


FAULTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "no licence": ("licence", lambda root: (root / "LICENSE").unlink()),
    "another licence": ("licence", _write("LICENSE", b"All rights reserved.\n")),
    "another licence declared": ("licence", _replace("pyproject.toml", 'license = "Apache-2.0"', 'license = "MIT"')),
    "no notice": ("notices", _replace("THIRD_PARTY.md", "| uPlot | 1.6.32 |", "| some plots | 1 |")),
    "old notice": ("notices", _replace("THIRD_PARTY.md", "| 3.1.1 |", "| 3.1.0 |")),
    "notice with another licence": ("notices", _replace("THIRD_PARTY.md", "| Apache-2.0 |", "| MIT |")),
    "changed library": ("vendored files", _write(f"{VENDOR}/htm.js", b"//\n")),
    "unlisted library": ("vendored files", _write(f"{VENDOR}/more.js", b"//\n")),
    "lost library": ("vendored files", lambda root: (root / VENDOR / "uplot.js").unlink()),
    "lost licence text": ("vendored licences", lambda root: (root / VENDOR / "LICENSE.preact").unlink()),
    "no hash": ("lock", _write("requirements/dev.lock", b"anyio==4.16.0\n")),
    "address in the lock": (
        "lock",
        _replace("requirements/dev.lock", "anyio==", "--index-url https://packages.invalid/simple\nanyio=="),
    ),
    "empty lock": ("lock", _write("requirements/dev.lock", b"")),
    "version behind": ("version", _replace("src/nodeproof/__init__.py", '__version__ = "', '__version__ = "9')),
    "no audit document": ("documents", lambda root: (root / "docs/release-audit.md").unlink()),
    "private key": ("no keys", _write("src/nodeproof/key.pem", b"-----BEGIN EC PRIVATE" + b" KEY-----\nx\n")),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_check_fails_on_a_tree_with_its_fault(name: str, tree: Path) -> None:
    check, spoil = FAULTS[name]
    spoil(tree)

    assert check in _failed(tree)


def test_what_is_installed_here_is_whole_and_licensed() -> None:
    parts = {one.name: one for one in installed()}

    assert {"nodeproof", "msgspec", "pyyaml", "rich", "h11"} <= parts.keys()
    assert {"pytest", "mypy", "ruff"}.isdisjoint(parts), "tools of development do not ship"
    assert parts["msgspec"].licence == "BSD-3-Clause"
    assert parts["msgspec"].hashed > 10
    assert [check.name for check in audit_environment(list(parts.values())) if check.result is Result.FAILED] == []


class _Distribution(metadata.Distribution):
    """One that was put together by hand."""

    def __init__(self, folder: Path, headers: str, files: dict[str, bytes]) -> None:
        self._folder = folder
        self._headers = headers
        lines = []
        for name, content in files.items():
            (folder / name).write_bytes(content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}")
        self._record = "\n".join(lines)

    def read_text(self, filename: str) -> str | None:
        return {"METADATA": self._headers, "RECORD": self._record}.get(filename)

    def locate_file(self, path: object) -> Path:
        return self._folder / str(path)


def _put(monkeypatch: pytest.MonkeyPatch, distribution: metadata.Distribution) -> None:
    def find(name: str) -> metadata.Distribution:
        if name != "nodeproof":
            raise metadata.PackageNotFoundError(name)
        return distribution

    monkeypatch.setattr("nodeproof.operate.audit.environment.metadata.distribution", find)


HEADERS = "Metadata-Version: 2.4\nName: nodeproof\nVersion: 1\n"


def test_a_file_that_was_changed_after_it_was_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _put(monkeypatch, _Distribution(tmp_path, f"{HEADERS}License-Expression: MIT\n", {"a.py": b"a", "b.py": b"b"}))
    assert installed()[0].changed == ()

    (tmp_path / "a.py").write_bytes(b"A")
    (tmp_path / "b.py").unlink()

    failed = [check for check in audit_environment(installed()) if check.result is Result.FAILED]
    assert [(check.name, check.detail) for check in failed] == [
        ("files of what is installed", "nodeproof: a.py, b.py (FileNotFoundError)")
    ]


@pytest.mark.parametrize(
    ("headers", "licence"),
    [
        ("License-Expression: MIT OR Apache-2.0\n", "MIT OR Apache-2.0"),
        ("Classifier: License :: OSI Approved :: BSD License\n", "BSD-3-Clause"),
        ("License: Mozilla Public License 2.0\n", "MPL-2.0"),
        ("License: All mine\nClassifier: License :: Other/Proprietary License\n", "Other/Proprietary License"),
        ("License: UNKNOWN\n", ""),
    ],
)
def test_licences_are_read_wherever_they_stand(
    headers: str, licence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(monkeypatch, _Distribution(tmp_path, HEADERS + headers, {}))

    assert installed()[0].licence == licence


def _part(name: str, licence: str) -> Installed:
    return Installed(name=name, version="1", licence=licence, requires=(), changed=(), hashed=1, record_sha256="00")


@pytest.mark.parametrize(
    ("licence", "fails"),
    [
        ("MIT", False),
        ("BSD-3-Clause AND (MIT OR Apache-2.0)", False),
        ("GPL-3.0-only OR MIT", False),
        ("GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", True),
        ("Other/Proprietary License", True),
        ("", True),
    ],
)
def test_a_licence_that_may_not_lie_beside_ours_fails(licence: str, *, fails: bool) -> None:
    checks = {check.name: check.result for check in audit_environment([_part("one", licence)])}

    assert (checks["licences of what is installed"] is Result.FAILED) == fails


def test_an_editable_install_is_not_checked_rather_than_sound() -> None:
    part = msgspec.structs.replace(_part("nodeproof", "MIT"), hashed=0)

    results = {check.result for check in audit_environment([part])}

    assert Result.NOT_CHECKED in results


def _manifest(folder: Path, **fields: object) -> str:
    binary = folder / "stream_omp"
    binary.write_bytes(b"ELF")
    tree = {
        "schema_version": 1,
        "benchmarks": {"stream": {"binary": {"path": str(binary), "sha256": hashlib.sha256(b"ELF").hexdigest()}}},
    }
    path = folder / "manifest.json"
    path.write_text(json.dumps({**tree, **fields}))
    return str(path)


def test_a_manifest_vouches_for_its_files(tmp_path: Path) -> None:
    path = _manifest(tmp_path)
    assert audit_manifest("build", path, required=True).result is Result.OK
    assert audit_manifest("build", _manifest(tmp_path, schema_version="6"), required=True).result is Result.OK

    (tmp_path / "stream_omp").write_bytes(b"elf")
    changed = audit_manifest("build", path, required=False)
    assert changed.result is Result.FAILED
    assert "stream_omp: it is" in changed.detail


def test_a_manifest_of_a_deployment_vouches_for_what_was_written_and_read(tmp_path: Path) -> None:
    read = tmp_path / "stream.json"
    compose = tmp_path / "deployment" / "compose.yaml"
    compose.parent.mkdir()
    for file in (read, compose):
        file.write_bytes(b"as generated")
    sha256 = hashlib.sha256(b"as generated").hexdigest()
    tree = {"schema_version": 1, "files": {"compose.yaml": sha256}, "inputs": {str(read): sha256}}
    path = compose.parent / "manifest.json"
    path.write_text(json.dumps(tree))
    assert audit_manifest("deployment", str(path), required=True).detail == "2 files as it says"

    for file in (read, compose):
        file.write_bytes(b"changed")
        changed = audit_manifest("deployment", str(path), required=False)
        assert (changed.result, f"{file}: it is" in changed.detail) == (Result.FAILED, True)
        file.write_bytes(b"as generated")


def test_a_manifest_that_names_no_file_is_not_passed(tmp_path: Path) -> None:
    path = _manifest(tmp_path, benchmarks={})

    assert audit_manifest("build", path, required=False).result is Result.NOT_CHECKED
    assert audit_manifest("build", path, required=True).result is Result.FAILED


def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = _manifest(tmp_path, more={"path": str(tmp_path / "pipe"), "sha256": "0" * 64})

    assert "is no plain file" in audit_manifest("build", path, required=True).detail


@pytest.mark.parametrize("version", [0, -1, "x", True, None, 1.5])
def test_a_manifest_without_a_positive_schema_version_fails(version: object, tmp_path: Path) -> None:
    found = audit_manifest("build", _manifest(tmp_path, schema_version=version), required=False)

    assert (found.result, "schema_version" in found.detail) == (Result.FAILED, True)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff"])
def test_what_is_no_manifest_fails(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_bytes(content)

    assert audit_manifest("build", str(tmp_path / "m.json"), required=False).result is Result.FAILED


def test_a_manifest_that_is_not_given_fails_only_when_it_is_asked_for(tmp_path: Path) -> None:
    assert audit_manifest("build", "", required=False).result is Result.NOT_CHECKED
    assert audit_manifest("build", "", required=True).result is Result.FAILED
    assert audit_manifest("build", str(tmp_path / "none"), required=False).result is Result.FAILED
    names = {"path": "relative", "sha256": "0" * 64}
    assert "no absolute path" in audit_manifest("build", _manifest(tmp_path, more=[names]), required=False).detail
    assert (
        "no SHA-256" in audit_manifest("build", _manifest(tmp_path, more={"path": "/x", "sha256": "00"}), required=False).detail
    )


def test_the_list_of_parts_is_the_same_each_time_and_joins_up() -> None:
    parts = installed()
    ours = vendored(str(ROOT / VENDOR))

    document = sbom(parts, ours)

    assert document == sbom(installed(), ours)
    tree = json.loads(document)
    assert (tree["bomFormat"], tree["specVersion"], tree["metadata"]["component"]["name"]) == ("CycloneDX", "1.6", "nodeproof")
    refs = [one["bom-ref"] for one in tree["components"]] + [tree["metadata"]["component"]["bom-ref"]]
    assert len(refs) == len(set(refs))
    depends = {one["ref"]: one["dependsOn"] for one in tree["dependencies"]}
    assert set(depends) == set(refs)
    assert {other for others in depends.values() for other in others} <= set(refs)
    msgspec_version = metadata.version("msgspec")
    assert f"pkg:pypi/msgspec@{msgspec_version}" in depends[f"pkg:pypi/nodeproof@{metadata.version('nodeproof')}"]
    assert "pkg:npm/uplot@1.6.32" in refs
    file = next(one for one in tree["components"] if one["name"] == "htm")["components"][0]
    assert file["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256((ROOT / VENDOR / "htm.js").read_bytes()).hexdigest()}]


def test_another_part_makes_another_serial_number() -> None:
    one, two = (
        json.loads(sbom([_part("nodeproof", "MIT")], files)) for files in ([], [Vendored("f", "p", "1", "MIT", "0" * 64)])
    )

    assert one["serialNumber"] != two["serialNumber"]
    assert json.loads(sbom([], [], "2026-01-01T00:00:00Z"))["metadata"]["timestamp"] == "2026-01-01T00:00:00Z"


def test_the_command_tells_what_was_not_checked_and_fails_with_a_fault(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = str(tmp_path / "parts.json")
    assert main(["audit", "--source", str(tree), "--sbom", parts], {}) == 0
    assert "not_checked" in capsys.readouterr().out
    assert json.loads(Path(parts).read_text())["bomFormat"] == "CycloneDX"
    (tree / "LICENSE").unlink()
    assert main(["audit", "--source", str(tree), "-o", "json"], {}) == 1
    assert main(["audit", "--require-runtime-manifests"], {}) == 1
    assert main(["audit", "--source", str(tmp_path)], {}) == 2
