"""``deploy install``: directories with their owners, and the adapter with its manifests in the plugin's root (stress.md 8.1).

It edits no configuration and starts nothing. Below a directory that belongs to a container's user every name may be a trap, so
nothing is followed there: each directory is opened from the one above it, and a link is refused.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

import msgspec

from nodeproof.errors import NodeproofError
from nodeproof.host.atomic import store_file, write_error
from nodeproof.operate.deploy.manifest import NAME, Deployment, DeploymentManifest, sha256
from nodeproof.operate.deploy.problems import DeployError
from nodeproof.operate.deploy.services import DAEMON_UID, RUNNER_GID, WEB_UID

__all__ = ["TMPFILES", "Change", "Folder", "Installation", "folders", "install", "make_folders", "tmpfiles"]

TMPFILES = "/etc/tmpfiles.d/nodeproof-deploy.conf"
_ADAPTER = "benchmark_check.sh"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_FILE_BYTES = 1 << 30


class Folder(msgspec.Struct, frozen=True):
    """A directory below ``base``, which is the administrator's."""

    base: str
    below: str
    uid: int
    gid: int
    mode: int
    why: str
    keep: bool = False
    """The administrator's, or another service's, once it is there: owner and mode stay as they are."""

    @property
    def path(self) -> str:
        """The whole."""
        return os.path.join(self.base, self.below)


class Change(msgspec.Struct, frozen=True):
    """One line of a plan."""

    action: str
    """``create``, ``replace``, ``own`` or ``keep``."""
    what: str
    why: str


class _Copy(msgspec.Struct, frozen=True):
    target: str
    data: bytes
    mode: int
    why: str


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be installed, and how."""

    deployment: Deployment
    runtime_source: str = ""
    """Directory of built assets to be copied below the plugin's root; empty = they lie where they run."""
    root: str = ""
    """A staging directory in place of /; nobody's owner is changed then."""
    force: bool = False


def folders(manifest: DeploymentManifest) -> list[Folder]:
    """Directories of a deployment, parents first."""
    settings = manifest.settings
    state, run = settings.state_dir.rstrip("/"), settings.run_dir.rstrip("/")
    found = [_top(state, "state of this node")]
    if not settings.in_containers:
        return [*found, *_of_host(state, manifest), *_npu_folder(manifest)]
    found += [
        _below(state, "daemon", DAEMON_UID, DAEMON_UID, 0o750, "the daemon's data"),
        _below(state, "web", WEB_UID, DAEMON_UID, 0o750, "the page's audit log"),
        _top(run, "what containers of this node share; gone at each boot"),
        _below(run, "snapshot", DAEMON_UID, DAEMON_UID, 0o750, "the daemon writes, the page reads"),
    ]
    if "runner" in manifest.images:
        found += [
            _below(state, "runner", RUNNER_GID, RUNNER_GID, 0o750, "reports and records of the runner"),
            _below(run, "runner", RUNNER_GID, RUNNER_GID, 0o750, "the runner's socket"),
        ]
    if "npu_burn" in manifest.items:
        found += [
            _below(state, "owner", 0, RUNNER_GID, 0o750, "reports and records of the owner of stress jobs"),
            _below(run, "owner", 0, RUNNER_GID, 0o750, "the owner's socket"),
        ]
        if "runner" in manifest.images:
            found += [
                _below(state, "runner/work", RUNNER_GID, RUNNER_GID, 0o750, "where programs leave files"),
                _below(state, "runner/work/hpcg", RUNNER_GID, RUNNER_GID, 0o750, "HPCG leaves its result here"),
            ]
    return [*found, *_npu_folder(manifest)]


def tmpfiles(manifest: DeploymentManifest) -> str:
    """Directories that a boot takes away, for systemd-tmpfiles; empty = there are none."""
    run = manifest.settings.run_dir.rstrip("/")
    rows = [one for one in folders(manifest) if one.base == run or one.path.rstrip("/") == run]
    lines = [f"d {one.path.rstrip('/')} {one.mode:04o} {one.uid} {one.gid} -\n" for one in rows]
    return "# Directories of the containers of nodeproof, which each boot takes away.\n" + "".join(lines) if lines else ""


def install(wanted: Installation, *, only_plan: bool = False) -> list[Change]:
    """Make it so; what was changed. Raises DeployError or WriteError, and then files are as they were."""
    copies = list(_copies(wanted))
    changes = [*_folder_changes(wanted), *(change for copy in copies if (change := _change(copy, wanted)) is not None)]
    if only_plan:
        return changes
    make_folders(wanted.deployment.manifest, wanted.root)
    undo: list[tuple[str, bytes | None, int]] = []
    try:
        for copy in copies:
            _put(copy, wanted.root, undo)
    except NodeproofError:
        _take_back(undo)
        raise
    return changes


def make_folders(manifest: DeploymentManifest, root: str = "") -> None:
    """Directories with owner and mode. Raises DeployError for a link in the way, WriteError for what cannot be made."""
    for folder in folders(manifest):
        _make(folder, root)


# Directories


def _top(path: str, why: str) -> Folder:
    return Folder(path, "", 0, 0, 0o755, why, keep=True)


def _of_host(state: str, manifest: DeploymentManifest) -> list[Folder]:
    """Below the state directory, and its owner's, who is the user that runs the jobs."""
    try:
        facts = os.stat(state)
        uid, gid = facts.st_uid, facts.st_gid
    except OSError:
        uid, gid = 0, 0
    rows = [("stress", "reports, history and locks of stress jobs")]
    if "hpcg" in manifest.items:
        rows += [("stress/work", "where programs leave files"), ("stress/work/hpcg", "HPCG leaves its result here")]
    return [Folder(state, below, uid, gid, 0o750, why, keep=True) for below, why in rows]


def _below(base: str, below: str, uid: int, gid: int, mode: int, why: str) -> Folder:
    return Folder(base, below, uid, gid, mode, why)


def _npu_folder(manifest: DeploymentManifest) -> list[Folder]:
    if "npu_burn" not in manifest.items:
        return []
    return [Folder(manifest.settings.npu.output_dir, "", 0, 0, 0o755, "NPU Burn leaves its results here", keep=True)]


def _make(folder: Folder, root: str) -> None:
    base = f"{root}{folder.base}"
    try:
        if not folder.below:
            os.makedirs(os.path.dirname(base), mode=0o755, exist_ok=True)
        fd = os.open(os.path.dirname(base) if not folder.below else base, _DIRECTORY & ~os.O_NOFOLLOW)
        made = False
        for part in folder.below.split("/") if folder.below else [os.path.basename(base)]:
            fd, made = _step(fd, part)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise DeployError(f"{root}{folder.path}: a link or a file is in its way; move it away") from None
        raise write_error(f"{root}{folder.path}", error) from None
    try:
        if folder.keep and not made:
            return
        if not root:
            os.fchown(fd, folder.uid, folder.gid)
        os.fchmod(fd, folder.mode)
    except OSError as error:
        raise write_error(folder.path, error) from None
    finally:
        os.close(fd)


def _step(fd: int, name: str) -> tuple[int, bool]:
    """Into the directory ``name`` of ``fd``, and whether it had to be made; ``fd`` is closed. Raises OSError."""
    made = False
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=fd)
            made = True
        return os.open(name, _DIRECTORY, dir_fd=fd), made
    finally:
        os.close(fd)


def _folder_changes(wanted: Installation) -> Iterator[Change]:
    for folder in folders(wanted.deployment.manifest):
        path = f"{wanted.root}{folder.path}".rstrip("/")
        try:
            facts = os.lstat(path)
        except OSError:
            yield Change("create", path, folder.why)
            continue
        if not stat.S_ISDIR(facts.st_mode):
            raise DeployError(f"{path}: a link or a file is in its way; move it away")
        mine = folder.keep or wanted.root or (facts.st_uid, facts.st_gid) == (folder.uid, folder.gid)
        if not mine or (stat.S_IMODE(facts.st_mode) != folder.mode and not folder.keep):
            yield Change("own", path, f"{folder.uid}:{folder.gid} {folder.mode:04o}: {folder.why}")


# Files


def _copies(wanted: Installation) -> Iterator[_Copy]:
    deployment = wanted.deployment
    settings = deployment.manifest.settings
    plugin = settings.plugin_root
    if not settings.in_containers and _ADAPTER in deployment.files:
        yield _Copy(f"{plugin}/{_ADAPTER}", deployment.files[_ADAPTER], 0o755, "the adapter")
        yield _Copy(f"{plugin}/manifests/{NAME}", _bytes(os.path.join(deployment.directory, NAME)), 0o644, "what was generated")
        build = settings.cpu.manifest
        if build:
            yield _Copy(f"{plugin}/manifests/{os.path.basename(build)}", _bytes(build), 0o644, "what was built")
        if wanted.runtime_source:
            yield from _runtime(wanted.runtime_source, f"{plugin}/runtime")
    text = tmpfiles(deployment.manifest)
    if text:
        yield _Copy(TMPFILES, text.encode(), 0o644, "directories that each boot takes away")


def _runtime(source: str, target: str) -> Iterator[_Copy]:
    """Regular files of a runtime directory. Raises DeployError for links and devices."""
    if not os.path.isdir(source) or os.path.islink(source):
        raise DeployError(f"--runtime-source {source}: expected a directory")
    for place, names, files in os.walk(source):
        for name in sorted((*names, *files)):
            path = os.path.join(place, name)
            facts = os.lstat(path)
            if stat.S_ISDIR(facts.st_mode):
                continue
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MAX_FILE_BYTES:
                raise DeployError(
                    f"--runtime-source: {path} is a link, a device or larger than 1 GiB; nothing is installed of it"
                )
            mode = 0o755 if facts.st_mode & stat.S_IXUSR else 0o644
            yield _Copy(os.path.join(target, os.path.relpath(path, source)), _bytes(path), mode, "a built asset")


def _change(copy: _Copy, wanted: Installation) -> Change | None:
    """What happens to the target; None = it is there already. Raises DeployError for what is somebody else's."""
    path = f"{wanted.root}{copy.target}"
    _refuse_links(path, wanted.root)
    there = _content(path)
    if there is None:
        return Change("create", path, copy.why)
    if sha256(there) == sha256(copy.data):
        return None
    if wanted.force:
        return Change("replace", path, copy.why)
    raise DeployError(f"{path} is there and is another; replace it with --force")


def _refuse_links(path: str, root: str) -> None:
    place = path
    while place not in {root, "/", ""}:
        if os.path.islink(place) and os.stat(os.path.dirname(place)).st_uid != 0:
            raise DeployError(f"{place} is a link in a directory that is not root's; nothing is installed through it")
        if place == path and os.path.islink(place):
            raise DeployError(f"{place} is a link; nothing is installed through one")
        place = os.path.dirname(place)


def _put(copy: _Copy, root: str, undo: list[tuple[str, bytes | None, int]]) -> None:
    path = f"{root}{copy.target}"
    there = _content(path)
    if there is not None and sha256(there) == sha256(copy.data):
        return
    mode = stat.S_IMODE(os.stat(path).st_mode) if there is not None else 0
    undo.append((path, there, mode))
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from None
    store_file(path, copy.data, mode=copy.mode)


def _take_back(undo: list[tuple[str, bytes | None, int]]) -> None:
    for path, before, mode in reversed(undo):
        with contextlib.suppress(OSError, NodeproofError):
            if before is None:
                os.unlink(path)
            else:
                store_file(path, before, mode=mode)


def _content(path: str) -> bytes | None:
    """Of a regular file; None = nothing is there. Raises DeployError."""
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DeployError(f"{path}: {os.strerror(error.errno or 0)}") from None
    if not stat.S_ISREG(facts.st_mode):
        raise DeployError(f"{path} is no regular file; move it away")
    return _bytes(path)


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_FILE_BYTES)
    except OSError as error:
        raise DeployError(f"{path}: {os.strerror(error.errno or 0)}") from None
