"""Building: check everything, take sources over, make, prove, and only then install, all or nothing.

What was made is kept in the build directory under the digest of all that decided it, so a build that was stopped goes on where it
was, and the same build twice is made once.
"""

import contextlib
import hashlib
import os
import shutil
import stat

import msgspec

from nodeproof.clock import Clock, rfc3339
from nodeproof.errors import CommandError, NodeproofError, WriteError
from nodeproof.host.atomic import make_directory, store_file
from nodeproof.host.file_mutex import file_mutex
from nodeproof.host.machine import Machine
from nodeproof.model.job import CheckStatus
from nodeproof.operate.assets import manifest as manifests
from nodeproof.operate.assets.manifest import BuiltFile, BuiltItem, Manifest, Toolchain, sha256_of
from nodeproof.operate.assets.problems import AssetError
from nodeproof.operate.assets.recipes import RECIPES, BuildOptions, Made, Shop
from nodeproof.operate.assets.sources import take_over
from nodeproof.stress.adapters.mpi import check_mpi

__all__ = ["TARGETS", "Builder", "selection"]

TARGETS = {
    "stream": ("stream/stream_omp", ""),
    "hpl": ("hpl/xhpl", "hpl/HPL.dat"),
    "hpcg": ("hpcg/xhpcg", "hpcg/hpcg.dat"),
}
"""Binary and configuration of each below the runtime directory."""
_MPI = {"hpl", "hpcg"}
_VERSION_S = 20.0
_LOCK_S = 2.0
_STAMP = "made.json"
_PUBLIC = 0o755


class _Stamp(msgspec.Struct, kw_only=True):
    """That an item was made, and all that is to be said of it."""

    binary: str
    config: str
    """Where they lie in the build directory, or with the administrator; empty = there is none."""
    item: BuiltItem


def selection(options: BuildOptions) -> list[str]:
    """What is to be built, in order. Raises AssetError."""
    for name in (*options.only, *options.skip):
        if name not in RECIPES:
            raise AssetError(f"{name!r}: expected one of {', '.join(RECIPES)}")
    wanted = [name for name in RECIPES if (not options.only or name in options.only) and name not in options.skip]
    if not wanted:
        raise AssetError("nothing is left to build: --skip takes away all that --only names")
    missing = [name for name in wanted if not options.sources.get(name)]
    if missing:
        raise AssetError(
            f"no source of {', '.join(missing)}: give {', '.join(f'--{name}-src' for name in missing)}, or --skip them"
        )
    return wanted


class Builder:
    """One build."""

    def __init__(self, options: BuildOptions, machine: Machine, clock: Clock) -> None:
        self._options = options
        self._machine = machine
        self._clock = clock
        self._shop = Shop(machine.commands, options)
        self.said: list[str] = []
        """What was done, a line a step."""

    def build(self) -> Manifest:
        """Build and install. Raises AssetError, and then nothing is installed that was not before."""
        options = self._options
        wanted = selection(options)
        self._check(wanted)
        with file_mutex(os.path.join(options.build_root, "lock"), timeout_s=_LOCK_S):
            before = manifests.load(manifests.manifest_path(options.output_root))
            stamps = {name: self._make(name) for name in wanted}
            self._install(stamps)
            built = Manifest(
                generated_at=rfc3339(self._clock.now().wall_s),
                architecture=os.uname().machine,
                output_root=options.output_root,
                build_root=options.build_root,
                last_selection=wanted,
                toolchain=self._toolchain(),
                benchmarks={**(before.benchmarks if before else {}), **{name: stamp.item for name, stamp in stamps.items()}},
            )
            manifests.save(manifests.manifest_path(options.output_root), built)
        return built

    # Before

    def _check(self, wanted: list[str]) -> None:
        options = self._options
        for flag, path in (("--output-root", options.output_root), ("--build-root", options.build_root)):
            if not path.startswith("/") or any(char.isspace() for char in path):
                raise AssetError(f"{flag} {path!r}: expected an absolute path without blanks: make knows none")
        tools = {"--cc": options.cc} if "stream" in wanted else {}
        if "hpl" in wanted:
            tools["--mpicc"] = options.mpicc
        if "hpcg" in wanted:
            tools["--mpicxx"] = options.mpicxx
        if _MPI & set(wanted):
            tools["--mpirun"] = options.mpirun
        for flag, path in tools.items():
            if not path.startswith("/"):
                raise AssetError(f"{flag} {path}: expected an absolute path, so that it is known which one was used")
            if not os.access(path, os.X_OK):
                raise AssetError(f"{flag} {path}: it is not there or cannot be run; install it, or name another")
        for name in wanted:
            self._check_targets(name)

    def _check_targets(self, name: str) -> None:
        for target in TARGETS[name]:
            if not target:
                continue
            path = self._options.output_root
            for part in ("", *target.split("/")):
                path = os.path.join(path, part) if part else path
                if os.path.islink(path):
                    raise AssetError(f"{path} is a symbolic link; nothing is installed through one")
            if os.path.exists(path) and not self._options.force:
                raise AssetError(f"{path} is there already; replace it with --force")
            if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
                raise AssetError(f"{path} is no regular file; move it away")

    # One item

    def _make(self, name: str) -> _Stamp:
        """Make an item, or take the one that was made before out of the same. Raises AssetError."""
        fresh = os.path.join(self._options.build_root, f"{name}.unpacked")
        shutil.rmtree(fresh, ignore_errors=True)
        top = take_over(name, self._options.sources[name], fresh)
        source = _digest_of_tree(top)
        folder = os.path.join(self._options.build_root, f"{name}-{self._digest(name, source)[:16]}")
        stamp = _stamp_of(folder)
        if stamp is not None:
            shutil.rmtree(fresh, ignore_errors=True)
            self.said.append(f"{name}: as it was made before in {folder}")
            return stamp
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(fresh, folder)
        top = os.path.join(folder, os.path.relpath(top, fresh))
        made = RECIPES[name](self._shop, top)
        stamp = _Stamp(binary=made.binary, config=made.config, item=self._prove(name, made, source))
        store_file(os.path.join(folder, _STAMP), msgspec.json.encode(stamp))
        self.said.append(f"{name}: made in {folder}")
        return stamp

    def _digest(self, name: str, source: str) -> str:
        options = self._options
        config = options.configs.get(name, "")
        deciding = [
            name,
            source,
            options.cc,
            options.mpicc,
            options.mpicxx,
            options.mpirun,
            options.openblas_include,
            options.openblas_lib,
            str(options.stream_array_size),
            str(options.stream_ntimes),
            sha256_of(config) if config and os.path.isfile(config) else config,
        ]
        return hashlib.sha256("\0".join(deciding).encode()).hexdigest()

    def _prove(self, name: str, made: Made, source: str) -> BuiltItem:
        """What is to be known of a binary before it is installed. Raises AssetError."""
        if not os.path.isfile(made.binary):
            raise AssetError(f"{name}: make ended well and left no {made.binary}")
        ldd = self._said("ldd", made.binary)
        lost = [line.split("=>")[0].strip() for line in ldd.splitlines() if "not found" in line]
        if lost:
            raise AssetError(
                f"{name}: {', '.join(lost)} would not be found at run time; name the library's directory (--openblas-lib)"
            )
        if name in _MPI:
            check = check_mpi(self._machine, self._options.mpirun, made.binary, 1)
            if check.status is CheckStatus.FAIL:
                raise AssetError(f"{name}: {check.message}")
        if made.config and not os.path.isfile(made.config):
            raise AssetError(f"{name}: {made.config}: there is no such file; give --{name}-dat")
        binary, config = TARGETS[name]
        root = self._options.output_root
        return BuiltItem(
            binary=BuiltFile(path=os.path.join(root, binary), sha256=sha256_of(made.binary)),
            config=BuiltFile(path=os.path.join(root, config), sha256=sha256_of(made.config)) if config else None,
            source=self._options.sources[name],
            source_sha256=source,
            patch=made.patch,
            flags=made.flags,
            file=self._said("file", "-b", made.binary),
            ldd=ldd,
            smoke=made.smoke,
        )

    def _said(self, *argv: str) -> str:
        """Of a program that need not be there."""
        try:
            return self._machine.commands.run(argv, deadline_s=_VERSION_S).stdout.decode("utf-8", "replace").strip()
        except CommandError:
            return ""

    # After

    def _install(self, stamps: dict[str, _Stamp]) -> None:
        """Put all in their places; when one cannot be, those before it are put back. Raises AssetError."""
        undo: list[tuple[str, bytes | None]] = []
        try:
            for stamp in stamps.values():
                for file, source in ((stamp.item.binary, stamp.binary), (stamp.item.config, stamp.config)):
                    if file is None:
                        continue
                    old = _content(file.path)
                    undo.append((file.path, old))
                    make_directory(os.path.dirname(file.path), _PUBLIC)  # whoever runs them is seldom root
                    data = _content(source)
                    if data is None or hashlib.sha256(data).hexdigest() != file.sha256:
                        raise AssetError(f"{source} changed since it was made; build anew in another --build-root")
                    store_file(file.path, data, mode=0o755 if file is stamp.item.binary else 0o644)
        except NodeproofError:
            for path, old in reversed(undo):
                with contextlib.suppress(OSError, WriteError):
                    if old is None:
                        os.unlink(path)
                    else:
                        store_file(path, old, mode=0o755)
            raise

    def _toolchain(self) -> Toolchain:
        options = self._options

        def version(path: str) -> str:
            return f"{path}: {(self._said(path, '--version').splitlines() or ['?'])[0]}" if os.access(path, os.X_OK) else ""

        library = os.path.join(options.openblas_lib, "libopenblas.so") if options.openblas_lib else ""
        return Toolchain(
            cc=version(options.cc),
            cxx=version(options.cxx),
            mpicc=version(options.mpicc),
            mpicxx=version(options.mpicxx),
            mpirun=version(options.mpirun),
            openblas=f"{library} sha256 {sha256_of(library)}" if library and os.path.isfile(library) else "the linker's own",
        )


def _stamp_of(folder: str) -> _Stamp | None:
    try:
        with open(os.path.join(folder, _STAMP), "rb") as file:
            return msgspec.json.decode(file.read(), type=_Stamp)
    except (OSError, msgspec.DecodeError):
        return None


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _digest_of_tree(top: str) -> str:
    """Of names and contents of all files, in order."""
    digest = hashlib.sha256()
    for place, names, files in os.walk(top):
        names.sort()
        for name in sorted(files):
            path = os.path.join(place, name)
            digest.update(f"{os.path.relpath(path, top)}\0{sha256_of(path)}\n".encode())
    return digest.hexdigest()
