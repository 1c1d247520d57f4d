"""The key of a node: made once, read by nobody else, and good for one domain at a time."""

import hashlib
import hmac
import os
import stat
import threading
from pathlib import Path

import pytest

from nodeproof.errors import RecordError, WriteError
from nodeproof.host.node_key import NodeKey


def test_it_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    first = NodeKey(str(tmp_path / "state"))
    signature = first.sign("baseline", b"text")
    path = Path(first.path)
    assert path == tmp_path / "state" / "identity" / "node.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_bytes()) == 32
    assert [entry.name for entry in path.parent.iterdir()] == ["node.key"]
    assert NodeKey(str(tmp_path / "state")).vouches("baseline", b"text", signature)


def test_the_signature_is_the_documented_one(tmp_path: Path) -> None:
    key = NodeKey(str(tmp_path))
    made = key.sign("baseline", b"text")
    raw = Path(key.path).read_bytes()
    assert made == hmac.new(raw, b"nodeproof/baseline\0text", hashlib.sha256).hexdigest()
    assert key.key_id == hmac.new(raw, b"nodeproof/key id\0", hashlib.sha256).hexdigest()[:16]


def test_it_vouches_for_nothing_else(tmp_path: Path) -> None:
    key = NodeKey(str(tmp_path))
    signature = key.sign("baseline", b"text")
    assert not key.vouches("record", b"text", signature)
    assert not key.vouches("baseline", b"texu", signature)
    assert not key.vouches("baseline", b"text", signature[:-1] + ("0" if signature[-1] != "0" else "1"))
    assert not key.vouches("baseline", b"text", "")
    assert not key.vouches("baseline", b"text", "é")
    assert not NodeKey(str(tmp_path / "other")).vouches("baseline", b"text", signature)


@pytest.mark.parametrize(
    ("mode", "content", "complaint"),
    [
        (0o640, b"k" * 32, "may be read or changed by others"),
        (0o602, b"k" * 32, "may be read or changed by others"),
        (0o600, b"k" * 31, "holds 31 bytes where 32 belong"),
        (0o600, b"k" * 40, "holds 33 bytes where 32 belong"),
    ],
)
def test_a_key_of_no_use_is_named_and_never_replaced(tmp_path: Path, mode: int, content: bytes, complaint: str) -> None:
    path = tmp_path / "identity" / "node.key"
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(RecordError, match=complaint) as caught:
        NodeKey(str(tmp_path)).sign("baseline", b"")
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "identity").mkdir()
    (tmp_path / "elsewhere").write_bytes(b"k" * 32)
    (tmp_path / "identity" / "node.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RecordError, match="symbolic links"):
        NodeKey(str(tmp_path)).sign("baseline", b"")


def test_a_place_that_cannot_be_written_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "identity").write_text("in the way")
    with pytest.raises(RecordError, match="Not a directory"):
        NodeKey(str(tmp_path)).sign("baseline", b"")


def test_a_full_disk_is_an_error_and_leaves_no_half_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(WriteError, match="No space left on device; free some space"):
        NodeKey(str(tmp_path)).sign("baseline", b"")
    assert list((tmp_path / "identity").iterdir()) == []


def test_processes_that_make_it_at_once_get_the_same(tmp_path: Path) -> None:
    start, made = threading.Barrier(8), []

    def one() -> None:
        start.wait()
        made.append(NodeKey(str(tmp_path)).sign("baseline", b""))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 1
    assert len(made) == 8
