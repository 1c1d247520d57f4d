"""A gate judges stored, signed records; each way in which one proves nothing has its own reason."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from nodeproof.bench.gate.archive import CopiedRuns
from nodeproof.bench.gate.judgement import GateReport, Judgement, Standing, gate_exit_code
from nodeproof.errors import RecordError
from nodeproof.host.signing_key import SigningKey
from nodeproof.model.hardware import Sensitivity, Validity
from nodeproof.runs.store import RunStore
from support.gate import DAY_S, NOW, Site, entry, leaves, record, rewrite


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "node")


def judged(site: Site, text: str = "", **more: Any) -> Judgement:
    return site.judge().judge(entry(text, **more))


def test_a_record_that_keeps_its_bound_passes(site: Site) -> None:
    run_id = site.put(record(kind="pass"))
    found = judged(site)
    assert (found.standing, found.runs, found.signed_by) == (Standing.PASS, [run_id], [site.key.public.key_id])
    assert found.reasons == ["rate is 25, at least 20"]
    assert [(check.metric, check.value, check.met) for check in found.checks] == [("rate", 25.0, True)]


def test_an_alias_of_a_benchmark_is_the_benchmark(site: Site) -> None:
    site.put(record())
    assert judged(site, id="toy-gate").standing is Standing.PASS


@pytest.mark.parametrize(
    ("changes", "standing", "reason"),
    [
        ({"metrics": {"rate": 19.9}}, Standing.FAIL, "rate is 19.9, at least 20"),
        ({"kind": "fail"}, Standing.FAIL, "its verdict is fail: fail, for a test"),
        ({"kind": "inconclusive"}, Standing.REFUSED, "is inconclusive: inconclusive, for a test"),
        ({"metrics": {"other": 1.0}}, Standing.REFUSED, "rate was not measured (at least 20)"),
        ({"metrics": {}}, Standing.REFUSED, "rate was not measured"),
        ({"validity": Validity.INVALID}, Standing.REFUSED, "the box was not fit while run-"),
        ({"validity": Validity.UNKNOWN}, Standing.REFUSED, "it is not known whether the box was fit while run-"),
        ({"validity": "made up"}, Standing.REFUSED, "it is not known whether the box was fit while run-"),
        ({"status": "failed"}, Standing.REFUSED, "did not come to its end: failed"),
        ({"status": "crashed"}, Standing.REFUSED, "did not come to its end: crashed"),
        ({"status": "timed_out"}, Standing.REFUSED, "did not come to its end: timed_out"),
        ({"benchmark_updated": "2026-11-30"}, Standing.REFUSED, "the instrument is of 2026-12-01, that of run-"),
        ({"serve_overrides": {"quant": "fp8"}}, Standing.REFUSED, "server setting quant is fp8, demanded is (not stated)"),
        ({"status": "cancelled"}, Standing.MISSING, "there is no record of toy that counts"),
        ({"status": "refused"}, Standing.MISSING, "there is no record of toy that counts"),
    ],
)
def test_what_a_record_may_lack(site: Site, changes: dict[str, Any], standing: Standing, reason: str) -> None:
    site.put(record(**changes))
    found = judged(site)
    assert (found.standing, reason in found.reasons[0]) == (standing, True), found.reasons


@pytest.mark.parametrize(
    ("text", "standing", "reason"),
    [
        ('model = "m"\nbox = "h200"', Standing.PASS, "rate is 25"),
        ('model = "other"', Standing.MISSING, "there is no record of toy that counts"),
        ('box = "h100"', Standing.MISSING, "there is no record of toy that counts"),
        ("param_overrides = {concurrency = 4.0}", Standing.PASS, "rate is 25"),
        ("param_overrides = {concurrency = 16}", Standing.REFUSED, "parameter concurrency is 4, demanded is 16"),
        ("param_overrides = {rate = 1}", Standing.REFUSED, "parameter rate is not on the record, demanded is 1"),
        ('serve_overrides = {quant = "fp8"}', Standing.REFUSED, "server setting quant is (not stated), demanded is fp8"),
        (f'fingerprint = "{"0" * 64}"', Standing.REFUSED, "the fingerprint of the instrument is"),
        ("valid_from = 2099-01-01", Standing.MISSING, "there is no record of toy that counts"),
        ("max_age_days = 0.0001", Standing.MISSING, "there is no record of toy that counts"),
        ("param_overrides = {min_rate = 3}", Standing.REFUSED, "param_overrides.min_rate: follows from the bound"),
    ],
)
def test_what_an_entry_demands(site: Site, text: str, standing: Standing, reason: str) -> None:
    site.put(record())
    found = judged(site, text)
    assert (found.standing, reason in found.reasons[0]) == (standing, True), found


def test_what_is_not_there_or_not_known(site: Site) -> None:
    assert judged(site).reasons == ["no record of toy"]
    assert judged(site, id="nothing").reasons[0].startswith("there is no benchmark 'nothing'")
    found = judged(site, "status = 'unmeasured'\nnote = 'next week'", metrics="")
    assert (found.standing, found.reasons) == (
        Standing.UNMEASURED, ["nobody has said yet what would be good enough (next week)"],
    )  # fmt: skip


def test_an_unknown_box_counts_where_the_file_accepts_it_and_that_is_said(site: Site) -> None:
    run_id = site.put(record(validity=Validity.UNKNOWN))
    found = judged(site, 'box_validity = "unknown"')
    assert found.standing is Standing.PASS
    assert found.notes == [f"the state of the box during {run_id} is not known; benchmarks[0].box_validity accepts that"]
    site.put(record(validity=Validity.INVALID))
    assert judged(site, 'box_validity = "unknown"').standing is Standing.REFUSED


def test_correctness_does_not_depend_on_the_box(site: Site) -> None:
    site.put(record(validity=Validity.UNKNOWN, sensitivity=Sensitivity.CORRECTNESS))
    assert judged(site).standing is Standing.PASS


def test_a_bound_whose_time_is_yet_to_come_judges_nothing(site: Site) -> None:
    site.put(record())
    late = "[benchmarks.metrics.rate]\nmin = 30\nvalid_from = 2099-01-01"
    found = judged(site, metrics=late)
    assert (found.standing, found.reasons) == (Standing.UNMEASURED, ["no bound is in force yet"])
    assert found.checks[0].text == "rate: at least 30, in force from 2099-01-01 00:00 UTC on"
    also = "[benchmarks.metrics.other]\nmin = 1\n"
    site.put(record(metrics={"rate": 25.0, "other": 2.0}))
    assert judged(site, metrics=also + late).reasons == ["other is 2, at least 1"]


def test_the_newest_record_of_the_instrument_decides_and_a_failure_is_not_measured_away(site: Site) -> None:
    good = site.put(record(recorded_at=NOW - 300))
    bad = site.put(record(recorded_at=NOW - 200, metrics={"rate": 1.0}))
    assert judged(site).runs == [bad]
    assert judged(site).standing is Standing.FAIL
    other = site.put(record(recorded_at=NOW - 100, params={"concurrency": "64"}))
    found = judged(site, "param_overrides = {concurrency = 4}")
    assert (found.standing, found.runs) == (Standing.FAIL, [bad])
    again = site.put(record(recorded_at=NOW - 50))
    assert judged(site).runs == [again]
    assert {good, bad, other, again} == {run.run_id for run in site.store.history(limit=None)}


def test_records_passed_over_are_told_with_why(site: Site) -> None:
    site.put(record(recorded_at=NOW - 400))
    cancelled = site.put(record(recorded_at=NOW - 200, status="cancelled"))
    foreign = site.put(record(recorded_at=NOW - 100, target_model="other"))
    found = judged(site, 'model = "m"')
    assert [(one.run_id, one.why) for one in found.considered] == [
        (foreign, "it is of model other, not m"),
        (cancelled, "it was cancelled"),
    ]


def test_age_and_date_are_held_against_the_record(site: Site) -> None:
    site.put(record(recorded_at=NOW - 3 * DAY_S))
    found = judged(site, "max_age_days = 2")
    assert found.standing is Standing.MISSING
    assert found.considered[0].why == "it is of 2027-01-12 08:00 UTC; records count from 2027-01-13 08:00 UTC on"
    assert judged(site, "max_age_days = 4").standing is Standing.PASS


def test_an_unsigned_record_and_one_of_an_unknown_key_prove_nothing(site: Site, tmp_path: Path) -> None:
    site.put(record(), store=RunStore(str(site.folder)))
    assert judged(site).reasons[0].endswith(": it is not signed")
    assert judged(site).standing is Standing.REFUSED
    stranger = SigningKey(str(tmp_path / "stranger"))
    site.put(record(recorded_at=NOW - 1), store=RunStore(str(site.folder), signer=stranger))
    reason = judged(site).reasons[0]
    assert reason.endswith(f": it is signed with key {stranger.public.key_id}, which is not trusted here")
    trusted = {stranger.public.key_id: stranger.public}
    assert site.judge(trusted=trusted).judge(entry()).standing is Standing.PASS


def test_any_changed_value_of_a_stored_record_is_named(site: Site) -> None:
    place = site.place(site.put(record(kind="pass")))
    before = (place / "record.json").read_bytes()
    for path in leaves(json.loads(before)):
        rewrite(place / "record.json", path)
        found = judged(site)
        assert found.standing is Standing.REFUSED, path
        assert "record.json" in found.reasons[0], (path, found.reasons)
        rewrite(place / "record.json", data=before)
    assert judged(site).standing is Standing.PASS
    for name in ("log.jsonl", "files/raw.txt"):
        kept = (place / name).read_bytes()
        rewrite(place / name, data=kept + b"x")
        assert f"{name} was changed" in judged(site).reasons[0]
        rewrite(place / name, data=kept)
    rewrite(place / "record.json", data=b"{}")
    assert "record.json cannot be understood" in judged(site).reasons[0]


def test_copies_are_judged_without_the_store_they_came_from(site: Site, tmp_path: Path) -> None:
    run_id = site.put(record(recorded_at=NOW - 100))
    site.put(record("known", metrics={"rate": 1.0}))
    copies = tmp_path / "copies"
    shutil.copytree(site.folder / "runs" / "toy", copies / "toy")
    found = site.judge(CopiedRuns(str(copies))).judge(entry())
    assert (found.standing, found.runs) == (Standing.PASS, [run_id])
    rewrite(copies / "toy" / run_id / "record.json", ("frame", "metrics", "rate"))
    assert "record.json was changed" in site.judge(CopiedRuns(str(copies))).judge(entry()).reasons[0]
    rewrite(copies / "toy" / run_id / "record.json", data=b"no record")
    assert "record.json cannot be understood" in site.judge(CopiedRuns(str(copies))).judge(entry()).reasons[0]
    with pytest.raises(RecordError, match="is no folder of runs"):
        CopiedRuns(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("name", ["record.json", "manifest.json", "signature.json", "files/raw.txt"])
def test_a_copy_with_a_pipe_in_it_holds_nobody_up(site: Site, tmp_path: Path, name: str) -> None:
    run_id = site.put(record())
    copy = tmp_path / "copies" / "toy" / run_id
    shutil.copytree(site.place(run_id), copy)
    rewrite(copy / name, data=b"")
    (copy / name).unlink()
    os.mkfifo(copy / name)
    assert site.judge(CopiedRuns(str(tmp_path / "copies"))).judge(entry()).standing is not Standing.PASS


@pytest.mark.parametrize("name", ["../../../outside", "/etc/hostname", "link/outside"])
def test_a_manifest_that_leads_elsewhere_is_not_followed(site: Site, tmp_path: Path, name: str) -> None:
    run_id = site.put(record())
    copy = tmp_path / "copies" / "toy" / run_id
    shutil.copytree(site.place(run_id), copy)
    (tmp_path / "outside").write_text("x")
    copy.chmod(0o750)
    (copy / "link").symlink_to(tmp_path)
    tree = json.loads((copy / "manifest.json").read_bytes())
    tree["files"][name] = {"sha256": "0" * 64, "bytes": 1}
    rewrite(copy / "manifest.json", data=json.dumps(tree).encode())
    found = site.judge(CopiedRuns(str(tmp_path / "copies"))).judge(entry())
    assert (found.standing, any("which lies elsewhere" in reason for reason in found.reasons)) == (Standing.REFUSED, True)
    deep = b'{"x":' + b"[" * 100_000
    rewrite(copy / "manifest.json", data=deep)
    assert site.judge(CopiedRuns(str(tmp_path / "copies"))).judge(entry()).standing is Standing.REFUSED
    rewrite(copy / "record.json", data=deep)
    assert site.judge(CopiedRuns(str(tmp_path / "copies"))).judge(entry()).standing is Standing.REFUSED


def judgement(standing: Standing, *, required: bool = True) -> Judgement:
    return Judgement(place="", id="", title="", required=required, standing=standing, reasons=[])


@pytest.mark.parametrize(
    ("standings", "code"),
    [
        ([Standing.PASS, Standing.PASS], 0),
        ([Standing.PASS, Standing.MISSING], 3),
        ([Standing.PASS, Standing.REFUSED], 3),
        ([Standing.UNMEASURED], 3),
        ([Standing.FAIL, Standing.MISSING], 2),
        ([], 3),
    ],
)
def test_exit_codes(standings: list[Standing], code: int) -> None:
    assert gate_exit_code(judgement(one) for one in standings) == code
    if standings:
        extra = [judgement(Standing.FAIL, required=False)]
        assert gate_exit_code([*(judgement(one) for one in standings), *extra]) == code


def test_the_report_names_everything(site: Site) -> None:
    report = GateReport(source="f", sha256="0", judged_at="t", passed=True, exit_code=0, trusted=[], judgements=[judged(site)])
    assert report.judgements[0].standing is Standing.MISSING
