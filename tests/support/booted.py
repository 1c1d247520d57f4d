"""A real systemd in a container over this machine's own files, for tests that run as root where ``systemd-nspawn`` can."""

import contextlib
import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

__all__ = ["PROGRAM", "Booted", "cannot_boot"]

PROGRAM = "/opt/nodeproof/bin/nodeproof"
ROOT = Path(__file__).resolve().parents[2]
_BOOT_S = 150.0
_UNIT = """\
[Unit]
Description=what the test does
After=multi-user.target
[Service]
Type=oneshot
TimeoutStartSec=130
ExecStart=/bin/bash /probe/probe.sh
ExecStopPost=/bin/systemctl --no-block poweroff
StandardOutput=file:/probe/log
StandardError=file:/probe/log
[Install]
WantedBy=default.target
"""
_NOISE = (
    "networking",
    "systemd-networkd",
    "systemd-timesyncd",
    "systemd-resolved",
    "apt-daily",
    "cron",
    "exim4",
    "ssh",
    "getty@tty1",
)


def cannot_boot() -> str:
    """Why no systemd can be booted here; empty when one can."""
    if os.geteuid() != 0:
        return "it takes root"
    if shutil.which("systemd-nspawn") is None:
        return "systemd-nspawn is not installed"
    return ""


class Booted:
    """One boot: ``script`` runs once the system is up, then it powers off. Files that it leaves in ``/probe`` can be read."""

    def __init__(self, folder: Path, script: str) -> None:
        self._folder = folder
        self._merged = folder / "merged"
        for name in ("upper", "work", "merged"):
            (folder / name).mkdir()
        options = f"lowerdir=/,upperdir={folder}/upper,workdir={folder}/work"
        subprocess.run(["/bin/mount", "-t", "overlay", "overlay", "-o", options, str(self._merged)], check=True)
        try:
            self._prepare(script)
            self.console = self._boot()
        finally:
            subprocess.run(["/bin/umount", str(self._merged)], check=True)

    def read(self, name: str) -> str:
        """A file that the script left."""
        return (self._folder / "upper" / "probe" / name).read_text(encoding="utf-8")

    def exists(self, path: str) -> bool:
        """Whether the system's own file at ``path`` was there at the end."""
        return (self._folder / "upper" / path.lstrip("/")).exists()

    def _prepare(self, script: str) -> None:
        probe = self._merged / "probe"
        probe.mkdir()
        (probe / "probe.sh").write_text(script)
        units = self._merged / "etc" / "systemd" / "system"
        (units / "probe.service").write_text(_UNIT)
        wants = units / "default.target.wants"
        wants.mkdir(exist_ok=True)
        (wants / "probe.service").symlink_to("/etc/systemd/system/probe.service")
        for name in _NOISE:
            with contextlib.suppress(FileExistsError):
                (units / f"{name}.service").symlink_to("/dev/null")
        with contextlib.suppress(FileNotFoundError):
            (self._merged / "etc" / "machine-id").unlink()
        # A Python that was moved finds its own library by this, and not another one of the system's.
        settings = self._merged / "etc" / "systemd" / "system.conf.d"
        settings.mkdir(exist_ok=True)
        (settings / "python.conf").write_text("[Manager]\nDefaultEnvironment=LD_LIBRARY_PATH=/opt/python/lib\n")
        environment = self._merged / "opt" / "nodeproof"
        packages = environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        packages.mkdir(parents=True)
        (environment / "bin").mkdir()
        (environment / "bin" / "python").symlink_to(f"/opt/python/bin/python{sys.version_info[0]}.{sys.version_info[1]}")
        (environment / "pyvenv.cfg").write_text("home = /opt/python/bin\ninclude-system-site-packages = false\n")
        (packages / "nodeproof-here.pth").write_text("/opt/nodeproof-src\n/opt/nodeproof-packages\n")
        program = environment / "bin" / "nodeproof"
        program.write_text("#!/opt/nodeproof/bin/python\nimport sys\nfrom nodeproof.cli.main import main\nsys.exit(main())\n")
        program.chmod(0o755)

    def _boot(self) -> str:
        argv = [
            "/usr/bin/systemd-nspawn",
            "--register=no",
            "--keep-unit",
            "--quiet",
            "--boot",
            "--private-network",
            f"--directory={self._merged}",
            f"--machine=nodeproof-{os.getpid()}",
            "--bind=/dev/kmsg",
            "--capability=CAP_SYSLOG",
            f"--bind-ro={sys.base_prefix}:/opt/python",
            f"--bind-ro={ROOT / 'src'}:/opt/nodeproof-src",
            f"--bind-ro={site.getsitepackages()[0]}:/opt/nodeproof-packages",
        ]
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
            timeout=_BOOT_S,
            check=False,
        )
        return done.stdout.decode("utf-8", "replace")
