"""A stored run is signed as a whole: no value in it, in its manifest or in the signature can change unseen."""

import base64
import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import RecordError
from nodeproof.host.signing_key import PublicKey, SigningKey
from nodeproof.runs.manifest import read_manifest, write_manifest
from nodeproof.runs.run_directory import read_record
from nodeproof.runs.signature import PAYLOAD_TYPE, Signature, check_signature
from nodeproof.runs.store import RunStore
from support.gate import Site, leaves, record, rewrite


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "node")


def checked(site: Site, place: Path, trusted: dict[str, PublicKey] | None = None) -> Signature:
    own = {site.key.public.key_id: site.key.public}
    return check_signature(str(place), read_record(str(place)), own if trusted is None else trusted)


def test_what_is_stored_is_signed(site: Site) -> None:
    run_id = site.put(record())
    stored = site.store.load(run_id)
    assert stored.problems == ()
    assert checked(site, Path(stored.path)) == Signature(site.key.public.key_id, "")
    envelope = json.loads((Path(stored.path) / "signature.json").read_bytes())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    manifest, sha256 = read_manifest(stored.path)
    assert envelope["payloadType"] == PAYLOAD_TYPE
    assert statement == {
        "schema": 1,
        "run_id": run_id,
        "benchmark_id": "toy",
        "recorded_at": stored.record.recorded_at,
        "fingerprint": stored.record.fingerprint,
        "record_sha256": manifest.files["record.json"].sha256,
        "manifest_sha256": sha256,
    }
    assert "signature.json" not in manifest.files


def test_another_key_is_not_trusted_and_named(site: Site, tmp_path: Path) -> None:
    place = site.place(site.put(record()))
    other = SigningKey(str(tmp_path / "other")).public
    own = site.key.public.key_id
    assert checked(site, place, {other.key_id: other}) == Signature(
        own, f"it is signed with key {own}, which is not trusted here"
    )
    # A key that goes by the id of a trusted one is caught by the bytes.
    assert "was changed: what it says is not what key" in checked(site, place, {own: other}).problem


def test_a_run_without_signature_says_so(site: Site, tmp_path: Path) -> None:
    store = RunStore(str(tmp_path / "node"))
    place = site.place(site.put(record(), store=store))
    assert checked(site, place) == Signature("", "it is not signed")


def test_every_value_of_record_and_manifest_is_covered(site: Site) -> None:
    """By who makes new hashes for what was changed, too: they are not those that were signed."""
    place = site.place(site.put(record(kind="pass", metrics={"rate": 25.0, "other": 1.0}, serve_overrides={"quant": "fp8"})))
    before = {name: (place / name).read_bytes() for name in ("record.json", "manifest.json")}
    paths = list(leaves(json.loads(before["record.json"])))
    assert len(paths) > 25
    for path in paths:
        rewrite(place / "record.json", path)
        try:
            manifest, _ = read_manifest(str(place))
            entry = manifest.files["record.json"]
            forged = (place / "record.json").read_bytes()
            rewritten = msgspec.structs.replace(entry, sha256=hashlib.sha256(forged).hexdigest(), bytes=len(forged))
            write_manifest(str(place), msgspec.structs.replace(manifest, files=manifest.files | {"record.json": rewritten}))
            problem = checked(site, place).problem
        except RecordError as error:
            problem = str(error)  # it is no record any more
        assert "was changed or replaced after it was signed" in problem or "cannot be understood" in problem, path
        for name, data in before.items():
            rewrite(place / name, data=data)
    assert checked(site, place).problem == ""
    for path in leaves(json.loads(before["manifest.json"])):
        rewrite(place / "manifest.json", path)
        assert "manifest_sha256 is" in checked(site, place).problem or "record_sha256 is" in checked(site, place).problem, path
        rewrite(place / "manifest.json", data=before["manifest.json"])


def test_every_value_of_the_signature_is_covered(site: Site) -> None:
    place = site.place(site.put(record()))
    path = place / "signature.json"
    before = path.read_bytes()
    for leaf in leaves(json.loads(before)):
        rewrite(path, leaf)
        assert checked(site, place).problem, leaf
        rewrite(path, data=before)
    for data in (b"", b"{}", b"null", b"[]", b"\xff", before[:-20], b'{"payloadType":1}', b"[" * 100_000):
        rewrite(path, data=data)
        assert checked(site, place).problem, data[:20]
    assert checked(site, place).key_id == ""


def test_every_value_of_the_statement_is_checked(site: Site) -> None:
    """Signed by the right key, and about something else."""
    place = site.place(site.put(record()))
    envelope = json.loads((place / "signature.json").read_bytes())
    statement = json.loads(base64.b64decode(envelope["payload"]))

    def signed(told: object, kind: str = PAYLOAD_TYPE) -> str:
        payload = msgspec.json.encode(told)
        again = {
            "payloadType": kind,
            "payload": base64.b64encode(payload).decode(),
            "signatures": [{"keyid": site.key.public.key_id, "sig": base64.b64encode(site.key.sign(kind, payload)).decode()}],
        }
        rewrite(place / "signature.json", data=msgspec.json.encode(again))
        return checked(site, place).problem

    assert signed(statement) == ""
    for name, value in statement.items():
        other = value + 1 if isinstance(value, (int, float)) else "x"
        assert f"{name} is {value}, signed was {other}" in signed(statement | {name: other})
    assert "cannot be understood" in signed(statement | {"more": 1})
    assert "cannot be understood" in signed({})
    assert "is signed as a document of another kind: text/plain" in signed(statement, "text/plain")


def test_the_signature_of_one_run_is_none_of_another(site: Site) -> None:
    first, second = (site.place(site.put(record())) for _ in range(2))
    rewrite(second / "signature.json", data=(first / "signature.json").read_bytes())
    assert "run_id is run-" in checked(site, second).problem


def test_a_store_that_cannot_sign_stores_all_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "identity").write_text("in the way")
    site = Site.__new__(Site)
    site.store = RunStore(str(tmp_path), signer=SigningKey(str(tmp_path)))
    run_id = site.put(record())
    assert site.store.load(run_id).problems == ()
    assert "is stored without a signature" in caplog.text
