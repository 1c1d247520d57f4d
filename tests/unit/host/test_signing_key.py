"""The key pair of a node: made once, framed as DSSE has it, and checked by OpenSSL's own reading of the same bytes."""

import base64
import hashlib
import stat
import sys
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import RecordError
from nodeproof.host.signing_key import PublicKey, SigningKey, framed

# RFC 8032, 7.1, test 2
RFC_SECRET = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
RFC_PUBLIC = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")


def test_it_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    key = SigningKey(str(tmp_path))
    signature = key.sign("kind", b"text")
    path = tmp_path / "identity" / "ed25519.pem"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert isinstance(load_pem_private_key(path.read_bytes(), None), Ed25519PrivateKey)
    again = SigningKey(str(tmp_path))
    assert again.public == key.public
    assert again.sign("kind", b"text") == signature
    assert len(signature) == 64


def test_the_frame_is_that_of_dsse() -> None:
    # protocol.md of DSSE 1.0: PAE(type, body) of "http://example.com/HelloWorld" and "hello world"
    assert framed("http://example.com/HelloWorld", b"hello world") == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert framed("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "


def test_the_signature_is_ed25519_over_the_frame(tmp_path: Path) -> None:
    pem = Ed25519PrivateKey.from_private_bytes(RFC_SECRET).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = tmp_path / "identity" / "ed25519.pem"
    path.parent.mkdir()
    path.write_bytes(pem)
    path.chmod(0o600)
    key = SigningKey(str(tmp_path))
    assert key.public.raw == RFC_PUBLIC
    assert key.public.key_id == hashlib.sha256(RFC_PUBLIC).hexdigest()[:16]
    assert str(key.public) == f"ed25519:{base64.b64encode(RFC_PUBLIC).decode()}"
    assert key.sign("k", b"m") == Ed25519PrivateKey.from_private_bytes(RFC_SECRET).sign(b"DSSEv1 1 k 1 m")


def test_it_verifies_its_own_kind_and_message_alone(tmp_path: Path) -> None:
    key, other = SigningKey(str(tmp_path / "a")), SigningKey(str(tmp_path / "b"))
    signature = key.sign("kind", b"text")
    assert key.public.verifies("kind", b"text", signature)
    assert not key.public.verifies("kine", b"text", signature)
    assert not key.public.verifies("kind", b"texu", signature)
    assert not key.public.verifies("kind", b"text", signature[:-1])
    assert not key.public.verifies("kind", b"text", b"")
    assert not other.public.verifies("kind", b"text", signature)


def test_a_public_key_is_read_back_as_it_was_written() -> None:
    key = PublicKey(RFC_PUBLIC)
    assert PublicKey.parse(f"  {key}\n") == key


@given(st.text() | st.binary().map(lambda raw: "ed25519:" + base64.b64encode(raw).decode()))
def test_what_is_no_public_key_is_refused_with_what_was_expected(text: str) -> None:
    try:
        key = PublicKey.parse(text)
    except ValueError as error:
        assert "expected ed25519: and 32 bytes in base64" in str(error)
    else:
        assert len(key.raw) == 32


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"])
def test_a_key_of_no_use_is_named_and_never_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "identity" / "ed25519.pem"
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(RecordError, match=r"ed25519.pem holds no Ed25519 private key in PEM: remove it and begin anew"):
        SigningKey(str(tmp_path)).sign("kind", b"")
    assert path.read_bytes() == content


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "identity" / "ed25519.pem"
    path.parent.mkdir()
    path.write_bytes(generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    with pytest.raises(RecordError, match="holds no Ed25519 private key"):
        SigningKey(str(tmp_path)).sign("kind", b"")


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    key = SigningKey(str(tmp_path))
    key.sign("kind", b"")
    Path(key.path).chmod(0o644)
    with pytest.raises(RecordError, match="may be read or changed by others"):
        SigningKey(str(tmp_path)).sign("kind", b"")


def test_threads_that_make_it_at_once_get_the_same(tmp_path: Path) -> None:
    start, made = threading.Barrier(4), []

    def one() -> None:
        start.wait()
        made.append(SigningKey(str(tmp_path)).public)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert len(set(made)) == 1


def test_without_the_library_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(RecordError, match=r"pip install 'nodeproof\[bench\]'"):
        SigningKey(str(tmp_path)).sign("kind", b"")
    with pytest.raises(RecordError, match=r"pip install 'nodeproof\[bench\]'"):
        PublicKey(RFC_PUBLIC).verifies("kind", b"", b"")
    assert not (tmp_path / "identity").exists()
