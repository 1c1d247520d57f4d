"""The environment of ``bfcl-eval``: made once, whole or not at all, and used by every benchmark that needs its data.

``<root>/artifacts/bfcl/env-<python>-<digest>/`` is a virtual environment with the package, what it imports, and the data taken
out of it. It is made under another name and renamed when all is there, so whoever finds it finds it whole; what a run that was
stopped left is removed by the next, under a lock. The digest is that of all that decides its content.
"""

import contextlib
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

import msgspec

from nodeproof.bench.bfcl.children import last_line, last_words, run_child
from nodeproof.errors import RunError
from nodeproof.host import atomic
from nodeproof.host.commands import HostCommands
from nodeproof.host.file_mutex import lock_whole_file
from nodeproof.model.process import EndKind
from nodeproof.runs.artifacts import ArtifactStore
from nodeproof.runs.handle import PluginHandle

__all__ = ["GOLDEN_ENVIRONMENT", "INSIDE", "Ready", "Recipe", "provide"]

INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside.py")
"""What runs in the environment."""
_SHARED = "bfcl"
_MAKING = ".making-"
_READY = "ready.json"
_LAYOUT = 1
_VENV_S, _INSTALL_S, _DATA_S = 120.0, 1800.0, 600.0
_LOOK_S = 0.2
_PIP_NAMES = (
    "PIP_CACHE_DIR", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_CONFIG_FILE", "PIP_DEFAULT_TIMEOUT", "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_KEYRING_PROVIDER", "PIP_NO_CACHE_DIR", "PIP_NO_INDEX", "PIP_PROXY", "PIP_RETRIES",
    "PIP_TIMEOUT", "PIP_TRUSTED_HOST", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE", "UV_DEFAULT_INDEX", "UV_INDEX_URL",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
"""Of our environment, what says where packages come from; nothing that would put them elsewhere."""


class Recipe(NamedTuple):
    """What is installed."""

    requirements: tuple[str, ...]
    """Exact versions with the digests of their files."""
    version: str
    """Of the package with data and checker."""
    dataset_sha256: str
    """Of the data as :data:`INSIDE` takes it out of that version; empty = not known."""


GOLDEN_ENVIRONMENT = Recipe(
    requirements=(
        "bfcl-eval==2026.3.23 --hash=sha256:3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
        "filelock==3.20.0 --hash=sha256:339b4732ffda5cd79b13f4e2711a31b0365ce445d95d243bb996273d072546a2",
        "tenacity==9.1.2 --hash=sha256:f77bf36710d8b73a50b2dd155c97b870017ad21afe6ab300326b0371b3b05138",
    ),
    version="2026.3.23",
    dataset_sha256="271af71d420f697e3a85dd0071fdbe29f553556886d071f7c5af53adfb878e08",
)
"""The package alone and the two libraries that its loader and its AST checker import: its other thirty are never needed."""


class Ready(msgspec.Struct, frozen=True):
    """An environment that is there."""

    path: str
    version: str
    dataset_sha256: str
    subsets: dict[str, int]
    """Rows of the data by subset."""

    @property
    def python(self) -> str:
        """Its interpreter."""
        return os.path.join(self.path, "bin", "python")

    @property
    def dataset_path(self) -> str:
        """The data."""
        return os.path.join(self.path, "dataset.jsonl")


def provide(handle: PluginHandle, recipe: Recipe) -> Ready:
    """The environment of ``recipe``, made if it is not there. Raises RunError that says what is missing, RunCancelled."""
    store = handle.artifacts.sibling(_SHARED)
    fault = store.fault()
    if fault is not None:
        raise RunError(f"the environment of bfcl-eval cannot be kept: {fault}")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    place = os.path.join(store.directory(), f"env-{python}-{_digest(recipe)[:16]}")
    ready = _found(place)
    if ready is None:
        with _alone(handle, store):
            ready = _found(place) or _make(handle, recipe, place)
    if recipe.dataset_sha256 and ready.dataset_sha256 != recipe.dataset_sha256:
        handle.warn(f"bfcl: the data taken out of bfcl-eval {ready.version} differ from what they were: scores do not compare")
    handle.ran("bfcl-eval", version=ready.version, sha256=_digest(recipe))
    handle.ran("bfcl-dataset", version=ready.version, sha256=ready.dataset_sha256)
    return ready


def _digest(recipe: Recipe) -> str:
    """Of what decides data and scores, whichever Python they are worked out with."""
    with open(INSIDE, "rb") as file:
        program = file.read()
    deciding = msgspec.json.encode([_LAYOUT, recipe.requirements, hashlib.sha256(program).hexdigest()])
    return hashlib.sha256(deciding).hexdigest()


def _found(place: str) -> Ready | None:
    """The environment at ``place`` when it is whole."""
    try:
        with open(os.path.join(place, _READY), "rb") as file:
            ready = msgspec.structs.replace(msgspec.json.decode(file.read(1 << 20), type=Ready), path=place)
    except (OSError, msgspec.MsgspecError):
        return None
    return ready if os.access(ready.python, os.X_OK) and os.path.isfile(ready.dataset_path) else None


@contextlib.contextmanager
def _alone(handle: PluginHandle, store: ArtifactStore) -> Iterator[None]:
    """While inside, nobody else makes an environment here; what a dead one left is removed first."""
    path = os.path.join(store.directory(), "lock")
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, atomic.FILE_MODE)
    except OSError as error:
        raise atomic.write_error(path, error) from None
    try:
        told = False
        while not lock_whole_file(fd):
            if not told:
                handle.status("bfcl: another run makes the environment; waiting for it")
                told = True
            handle.wait(_LOOK_S)
            handle.check_cancelled()
        for name in os.listdir(store.directory()):
            if name.startswith(_MAKING):
                shutil.rmtree(os.path.join(store.directory(), name), ignore_errors=True)
        yield
    finally:
        os.close(fd)


def _make(handle: PluginHandle, recipe: Recipe, place: str) -> Ready:
    making = os.path.join(os.path.dirname(place), f"{_MAKING}{os.urandom(6).hex()}")
    handle.info(f"bfcl: bfcl-eval {recipe.version} is installed into an environment of its own, once")
    try:
        shutil.rmtree(place, ignore_errors=True)  # one that lacks a part is no environment
        _install(handle, recipe, making)
        ready = _take_data_out(handle, recipe, making)
        atomic.store_file(os.path.join(making, _READY), msgspec.json.encode(ready))
        os.rename(making, place)
        atomic.sync_directory(os.path.dirname(place))
    except OSError as error:
        raise atomic.write_error(place, error) from None
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return msgspec.structs.replace(ready, path=place)


def _install(handle: PluginHandle, recipe: Recipe, making: str) -> None:
    handle.status("bfcl: making a virtual environment")
    venv = run_child(handle, [sys.executable, "-m", "venv", "--without-pip", making], "venv", limit_s=_VENV_S)
    if not venv.succeeded:
        raise RunError(
            f"python -m venv made no environment: {last_words(handle, 'venv')}; install Python's venv module "
            "(Debian: apt-get install python3-venv)"
        )
    wanted = os.path.join(making, "requirements.txt")
    atomic.store_file(wanted, "".join(f"{line}\n" for line in recipe.requirements).encode())
    handle.status(f"bfcl: installing bfcl-eval {recipe.version}")
    argv = [*_installer(os.path.join(making, "bin", "python")), "--no-deps", "--require-hashes", "-r", wanted]
    names = {name: os.environ[name] for name in _PIP_NAMES if name in os.environ}
    done = run_child(handle, argv, "install", limit_s=_INSTALL_S, more=names)
    if done.succeeded:
        return
    why = f"no end within {_INSTALL_S:g} s" if done.kind is EndKind.LIMIT else last_words(handle, "install")
    names_of = " ".join(line.partition(" ")[0] for line in recipe.requirements)
    raise RunError(
        f"bfcl-eval {recipe.version} could not be installed: {why}; without a package index fetch it elsewhere "
        f"(pip download --no-deps {names_of} -d DIR), bring DIR here, and set PIP_NO_INDEX=1 PIP_FIND_LINKS=DIR"
    )


def _installer(python: str) -> list[str]:
    """How packages get into an environment that has no pip of its own. Raises RunError."""
    options = ["--disable-pip-version-check", "--no-input", "--only-binary", ":all:"]
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--python", python, "install", *options]
    commands = HostCommands()
    uv = commands.find("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", python, "--only-binary", ":all:"]
    pip = commands.find("pip3") or commands.find("pip")
    if pip is not None:
        return [pip, "--python", python, "install", *options]
    raise RunError(
        "neither pip nor uv is here, which install bfcl-eval; install one of them (Debian: apt-get install python3-pip)"
    )


class _Told(msgspec.Struct):
    """What taking the data out says of itself."""

    total: int
    sha256: str
    subsets: dict[str, int]


def _take_data_out(handle: PluginHandle, recipe: Recipe, making: str) -> Ready:
    handle.status("bfcl: taking the data out of the package")
    python, data = os.path.join(making, "bin", "python"), os.path.join(making, "dataset.jsonl")
    root = {"BFCL_PROJECT_ROOT": making}
    done = run_child(handle, [python, "-I", INSIDE, "materialise", data], "data", limit_s=_DATA_S, more=root)
    try:
        told = msgspec.json.decode(last_line(handle, "data"), type=_Told)
        with open(data, "rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if not done.succeeded or sha256 != told.sha256:
            raise ValueError("the file is not what was written")  # noqa: TRY301 - told like the rest
    except (OSError, ValueError, msgspec.MsgspecError):
        words = last_words(handle, "data")
        raise RunError(f"bfcl-eval {recipe.version} gave no data: {words}; data.log of this run has more") from None
    return Ready(making, recipe.version, sha256, told.subsets)
