import errno
import gc
import os
from pathlib import Path

import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.host.files import FileTree, absence_of, legible


@pytest.fixture
def tree(tmp_path: Path) -> FileTree:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "stat").write_bytes(b"cpu 1\n")
    return FileTree(f"{tmp_path}/")


def test_the_root_can_be_moved_and_messages_show_the_machines_own_paths(tree: FileTree) -> None:
    assert tree.read("/proc/stat") == b"cpu 1\n"
    with pytest.raises(NoData) as caught:
        tree.read("/proc/nothing")
    assert caught.value.reason == "/proc/nothing: No such file or directory"
    assert caught.value.state is Absence.UNSUPPORTED


@pytest.mark.parametrize(
    ("number", "state"),
    [
        (errno.ENOENT, Absence.UNSUPPORTED),
        (errno.ENODEV, Absence.UNSUPPORTED),
        (errno.EINVAL, Absence.UNSUPPORTED),
        (errno.EOPNOTSUPP, Absence.UNSUPPORTED),
        (errno.EACCES, Absence.NO_PERMISSION),
        (errno.EPERM, Absence.NO_PERMISSION),
        (errno.EIO, Absence.READ_ERROR),
        (errno.ESTALE, Absence.READ_ERROR),
        (None, Absence.READ_ERROR),
    ],
)
def test_error_numbers_and_what_they_mean(number: int | None, state: Absence) -> None:
    error = OSError("no number") if number is None else OSError(number, os.strerror(number))
    absence = absence_of(error, "/x")
    assert absence.state is state
    assert (absence.remedy != "") == (state is Absence.NO_PERMISSION)


def test_a_kept_file_is_read_anew_each_time_through_one_descriptor(tree: FileTree) -> None:
    assert tree.read_kept("/proc/stat") == b"cpu 1\n"
    descriptors = len(os.listdir("/proc/self/fd"))
    with open(tree.real("/proc/stat"), "r+b") as file:
        file.write(b"cpu 2\n")
    assert tree.read_kept("/proc/stat") == b"cpu 2\n"
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_kept_file_of_the_kernel_is_made_anew() -> None:
    tree = FileTree("/")
    assert tree.read_kept("/proc/uptime") != b""
    assert len(tree.read_kept("/proc/self/mountinfo").splitlines()) > 1
    tree.close()


def test_a_file_longer_than_one_read_comes_whole(tree: FileTree) -> None:
    content = os.urandom(200_000)
    Path(tree.real("/proc/big")).write_bytes(content)
    assert tree.read("/proc/big") == content
    assert tree.read_kept("/proc/big") == content


def test_a_kept_file_that_went_away_is_absent_and_comes_back(tree: FileTree) -> None:
    with pytest.raises(NoData):
        tree.read_kept("/proc/later")
    Path(tree.real("/proc/later")).write_bytes(b"now")
    assert tree.read_kept("/proc/later") == b"now"


def test_descriptors_are_given_back(tree: FileTree) -> None:
    before = len(os.listdir("/proc/self/fd"))
    tree.read_kept("/proc/stat")
    tree.forget("/proc/stat")
    tree.forget("/proc/never-kept")
    assert len(os.listdir("/proc/self/fd")) == before
    tree.read_kept("/proc/stat")
    tree.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("kept", [False, True])
def test_an_endless_file_is_given_up(tree: FileTree, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    monkeypatch.setattr("nodeproof.host.files._MAX_BYTES", 100_000)
    os.symlink("/dev/zero", tree.real("/proc/zero"))
    with pytest.raises(NoData, match="/proc/zero: File too large") as caught:
        (tree.read_kept if kept else tree.read)("/proc/zero")
    assert caught.value.state is Absence.READ_ERROR


def test_a_pipe_that_nobody_writes_to_does_not_block(tree: FileTree) -> None:
    os.mkfifo(tree.real("/proc/pipe"))
    assert tree.read("/proc/pipe") == b""


def test_a_directory_is_no_file(tree: FileTree) -> None:
    with pytest.raises(NoData) as caught:
        tree.read("/proc")
    assert caught.value.state is Absence.READ_ERROR


def test_text_and_numbers(tree: FileTree) -> None:
    Path(tree.real("/proc/text")).write_bytes(b" a\xffb \n")
    Path(tree.real("/proc/number")).write_bytes(b"-12\n")
    assert tree.read_text("/proc/text") == "a\ufffdb"
    assert tree.read_int("/proc/number") == -12
    with pytest.raises(NoData, match="/proc/text: 'a\ufffdb' is no integer"):
        tree.read_int("/proc/text")


def test_names_links_and_rights(tree: FileTree) -> None:
    os.symlink("../bus/sda", tree.real("/proc/link"))
    assert tree.names("/proc") == ["link", "stat"]
    assert tree.link_target("/proc/link") == "../bus/sda"
    assert tree.exists("/proc/stat")
    assert not tree.exists("/proc/link")
    assert tree.can_read("/proc/stat")
    assert not tree.can_read("/proc/nothing")
    with pytest.raises(NoData):
        tree.names("/proc/stat")
    with pytest.raises(NoData):
        tree.link_target("/proc/stat")


def test_space_agrees_with_the_system_call(tree: FileTree) -> None:
    found, raw = tree.statvfs("/proc"), os.statvfs(tree.real("/proc"))
    assert (found.block_bytes, found.blocks, found.inodes) == (raw.f_frsize, raw.f_blocks, raw.f_files)
    assert found.blocks_free >= found.blocks_available > 0


def test_space_of_a_mount_point_that_is_no_utf8(tree: FileTree) -> None:
    os.mkdir(os.fsencode(tree.real("/proc/")) + b"\xff")
    assert tree.statvfs("/proc/\udcff").blocks > 0
    with pytest.raises(NoData, match="/proc/gone: No such file"):
        tree.statvfs("/proc/gone")


def test_names_that_are_no_utf_8_are_legible_in_messages(tree: FileTree) -> None:
    odd = os.fsdecode(b"/proc/\xff")
    with pytest.raises(NoData) as caught:
        tree.read(odd)
    assert caught.value.reason == "/proc/\ufffd: No such file or directory"
    assert (legible("eth0"), legible("\u00e9"), legible(os.fsdecode(b"\xff0"))) == ("eth0", "\u00e9", "\ufffd0")


def test_a_tree_that_is_dropped_unclosed_holds_no_descriptor(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "stat").write_bytes(b"cpu 1\n")

    def held() -> list[str]:
        links = (
            os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")
        )
        return [link for link in links if link.startswith(str(tmp_path))]

    tree = FileTree(str(tmp_path))
    assert tree.read_kept("/proc/stat") == b"cpu 1\n"
    assert held() == [str(tmp_path / "proc" / "stat")]
    del tree
    gc.collect()
    assert held() == []
