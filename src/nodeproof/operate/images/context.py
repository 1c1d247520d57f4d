"""A build context: a directory of copies, each with its digest, and nothing that was not asked for."""

import os
import shutil
import stat

from nodeproof.errors import WriteError
from nodeproof.host.atomic import store_file
from nodeproof.operate.assets.manifest import sha256_of
from nodeproof.operate.images.problems import ImageError

__all__ = ["Context", "check_wheels"]

_MAX_BYTES = 4 << 30


class Context:
    """One directory, filled step by step."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.digests: dict[str, str] = {}
        """SHA-256 of each file, by its name inside."""

    def write(self, name: str, text: str) -> None:
        """A file of ours. Raises WriteError."""
        path = os.path.join(self.folder, name)
        store_file(path, text.encode(), mode=0o644)
        self.digests[name] = sha256_of(path)

    def copy(self, source: str, name: str) -> None:
        """A regular file or a directory of such, as ``name``. Raises ImageError for links, devices, and the unreadable."""
        try:
            facts = os.stat(source) if not name.startswith("sources/") else os.lstat(source)
            if stat.S_ISDIR(facts.st_mode):
                self._tree(source, name)
            else:
                self._file(source, name)
        except OSError as error:
            raise ImageError(f"{source}: {os.strerror(error.errno or 0)}") from None
        except WriteError as error:
            raise ImageError(str(error)) from None

    def _tree(self, source: str, name: str) -> None:
        for place, folders, files in os.walk(source):
            folders[:] = sorted(one for one in folders if one != ".git")
            for file in sorted((*files, *(one for one in folders if os.path.islink(os.path.join(place, one))))):
                path = os.path.join(place, file)
                self._file(path, os.path.join(name, os.path.relpath(path, source)))

    def _file(self, source: str, name: str) -> None:
        facts = os.lstat(source)
        if not stat.S_ISREG(facts.st_mode):
            raise ImageError(f"{source} is a link or a device; a build context holds neither")
        if facts.st_size > _MAX_BYTES:
            raise ImageError(f"{source} has {facts.st_size} bytes; name what is needed of it alone")
        target = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
        os.chmod(target, 0o755 if facts.st_mode & stat.S_IXUSR else 0o644)
        self.digests[name] = sha256_of(target)


def check_wheels(folder: str) -> list[str]:
    """Wheels in ``folder``, one of them nodeproof's. Raises ImageError."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".whl"))
    except OSError as error:
        raise ImageError(f"--wheels {folder}: {os.strerror(error.errno or 0)}; pip wheel -w DIR nodeproof makes it") from None
    own = [name for name in names if name.startswith("nodeproof-")]
    if len(own) != 1:
        what = f"it holds {len(own)} wheels of nodeproof ({', '.join(own)})" if own else "it holds no wheel of nodeproof"
        raise ImageError(f"--wheels {folder}: {what}; pip wheel -w DIR nodeproof makes it")
    return names
