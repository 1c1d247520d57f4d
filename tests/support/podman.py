"""A real engine for tests: rootful Podman with a store of its own, and images made from a file root of our own.

Podman keeps to ``runc``, the ``vfs`` driver and control groups without systemd, which works in any virtual machine; every
container has explicit limits, for the defaults may be more than this machine allows.
"""

import contextlib
import os
import shutil
import stat
import subprocess
import tempfile
import zlib
from pathlib import Path

__all__ = ["PodmanEngine", "copy_programs", "lacking"]

OPTIONS = ("--runtime=runc", "--storage-driver=vfs", "--cgroup-manager=cgroupfs")


def lacking() -> str:
    """Why there is no real engine here; empty = there is one."""
    missing = [name for name in ("podman", "runc", "gcc") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    return "" if os.geteuid() == 0 else "only root may start containers here"


class PodmanEngine:
    """Its client with a store below ``folder``, as one program: what takes a single path gets this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = folder / "podman"
        # Podman takes no path for it that is longer than 50 characters, and another one for a store only with a new store.
        self._running = f"{tempfile.gettempdir()}/np-{zlib.crc32(str(folder).encode()):08x}"
        words = " ".join((*OPTIONS, f"--root={folder}/store", f"--runroot={self._running}"))
        # Podman complains of healthchecks that it cannot have without systemd; that is no answer to anybody.
        self.client.write_text(f'#!/bin/sh\nexec podman {words} --log-level=fatal "$@"\n')
        self.client.chmod(self.client.stat().st_mode | stat.S_IXUSR)

    def run(self, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """One command of the client."""
        done = subprocess.run([str(self.client), *words], capture_output=True, text=True, check=False, timeout=60)
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done

    def build(self, tag: str, root: Path, *lines: str) -> str:
        """An image of a file root; its id."""
        containerfile = root.parent / f"{root.name}.Containerfile"
        containerfile.write_text("\n".join(["FROM scratch", "COPY . /", *lines]) + "\n")
        self.run("build", "--quiet", "--pull=never", "--network=none", "--tag", tag, "--file", str(containerfile), str(root))
        return self.run("image", "inspect", "--format", "{{.Id}}", tag).stdout.strip()

    def pids(self, name: str) -> dict[int, str]:
        """Processes of a container, those that ``exec`` started among them, by their numbers on the host."""
        first = self.run("inspect", "--format", "{{.State.Pid}}", name).stdout.strip()
        place = Path(f"/proc/{first}/ns/pid").readlink()
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it may have ended meanwhile
                text = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                if text and (process / "ns" / "pid").readlink() == place:  # a dead one that nobody has buried has no words
                    found[int(process.name)] = text
        return found

    def close(self) -> None:
        """End and remove everything."""
        self.run("rm", "--all", "--force", "--time", "0", check=False)
        self.run("rmi", "--all", "--force", check=False)
        for place in (str(self.folder / "store"), self._running):
            shutil.rmtree(place, ignore_errors=True)


def copy_programs(root: Path, *names: str) -> None:
    """Programs of this machine with the libraries that they link, below ``root``."""
    for name in names:
        path = shutil.which(name)
        assert path is not None, f"{name} is not installed"
        real = Path(path).resolve()
        target = root / "bin" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(real, target)
        said = subprocess.run(["/usr/bin/ldd", str(real)], capture_output=True, text=True, check=False).stdout
        for line in said.splitlines():
            library = next((word for word in line.split() if word.startswith("/")), "")
            if library:
                place = root / library.lstrip("/")
                place.parent.mkdir(parents=True, exist_ok=True)
                if not place.exists():
                    shutil.copy(Path(library).resolve(), place)
