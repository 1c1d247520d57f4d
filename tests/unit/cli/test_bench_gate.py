"""``nodeproof bench`` where it judges, compares and hands on: exit codes, output for programs and for people."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeproof.cli.main import main
from nodeproof.host.signing_key import PublicKey, SigningKey
from nodeproof.model.hardware import Sensitivity, Validity
from nodeproof.runs.store import RunStore
from support.gate import NOW, Site, record, rewrite, tallied

Told = pytest.CaptureFixture[str]
TALLIES = {"multiple": (8, 10)}


class Node:
    """A node with stored runs, and its command line."""

    def __init__(self, home: Path, told: Told) -> None:
        self.home = home
        self.site = Site(home / ".local" / "state" / "nodeproof")
        self._told = told

    def put(self, **changes: Any) -> str:
        made = record("load", **{"benchmark_updated": "2099-01-01", **changes})
        return self.site.put(made)

    def toml(self, text: str) -> str:
        path = self.home / "bench.toml"
        path.write_text(f"schema = 1\n{text}", encoding="utf-8")
        return str(path)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        code = main(["bench", *arguments], {"HOME": str(self.home)})
        told = self._told.readouterr()
        return code, told.out, told.err

    def json(self, *arguments: str) -> tuple[int, Any]:
        code, out, _ = self.run(*arguments, "-o", "json")
        return code, json.loads(out)


@pytest.fixture
def node(tmp_path: Path, capsys: Told) -> Node:
    return Node(tmp_path, capsys)


LOAD = '[[benchmarks]]\nid = "load"\nmodel = "m"\n[benchmarks.metrics.rate]\nmin = 20\n'


def test_a_gate_is_proven_failed_or_not_proven(node: Node) -> None:
    file = node.toml(LOAD)
    code, out, _ = node.run("gate", "--file", file, "-o", "table")
    assert (code, "missing" in out, out.splitlines()[-1]) == (3, True, f"{file}: not proven")
    run_id = node.put(kind="pass", recorded_at=NOW)
    code, found = node.json("gate", "--file", file)
    assert (code, found["passed"], found["judgements"][0]["runs"]) == (0, True, [run_id])
    assert found["trusted"] == [node.site.key.public.key_id]
    node.put(metrics={"rate": 10.0}, recorded_at=NOW + 1)
    code, out, _ = node.run("gate", "--file", file, "-o", "table")
    assert (code, "FAIL" in out, "rate is 10, at least 20" in out) == (2, True, True)


def test_an_explanation_names_bounds_signature_and_what_was_passed_over(node: Node) -> None:
    run_id = node.put(recorded_at=NOW)
    passed_over = node.put(recorded_at=NOW + 1, status="cancelled")
    code, out, _ = node.run("gate", "--file", node.toml(LOAD), "--explain", "-o", "table")
    assert code == 0
    for text in (
        "benchmarks[0] load m: pass",
        "rate is 25, at least 20",
        f"decided by {run_id}",
        f"signed with {node.site.key.public.key_id}",
        f"passed over {passed_over}: it was cancelled",
    ):
        assert text in out, out


def test_a_gate_says_what_is_wrong_with_its_file(node: Node) -> None:
    code, out, err = node.run("gate", "--file", node.toml("[[benchmarks]]\n"))
    assert (code, out) == (1, "")
    assert "benchmarks[0].id: is missing" in err
    code, _, err = node.run("gate", "--file", str(node.home / "none.toml"))
    assert (code, "none.toml: No such file or directory" in err) == (1, True)
    code, _, err = node.run("gate", "--file", node.toml(LOAD), "--only", "stream")
    assert (code, "says nothing of it" in err) == (1, True)
    code, _, err = node.run("gate", "--file", node.toml(LOAD), "--records", "/nowhere")
    assert (code, "/nowhere is no folder of runs" in err) == (1, True)


def test_a_gate_judges_copies_by_the_keys_that_its_file_lists(node: Node, tmp_path: Path) -> None:
    run_id = node.put()
    elsewhere = {"HOME": str(tmp_path / "elsewhere")}
    records = str(node.site.store.place(run_id))
    _, key = node.json("key")
    assert PublicKey.parse(key["key"]).key_id == key["key_id"] == node.site.key.public.key_id
    trusting = node.toml(f'[[signers]]\nkey = "{key["key"]}"\n{LOAD}')
    assert main(["bench", "gate", "--file", trusting, "--records", records, "-o", "json"], elsewhere) == 0
    other = node.toml(LOAD)
    assert main(["bench", "gate", "--file", other, "--records", records, "-o", "json"], elsewhere) == 3
    assert not (tmp_path / "elsewhere").exists()


def test_a_gate_leaves_a_report_for_ci(node: Node) -> None:
    node.put()
    report = node.home / "junit.xml"
    code, _, _ = node.run("gate", "--file", node.toml(LOAD), "--junit", str(report), "-o", "json")
    assert (code, 'tests="1" failures="0" errors="0"' in report.read_text("utf-8")) == (0, True)


def test_only_what_is_named_is_judged(node: Node) -> None:
    node.put()
    file = node.toml(LOAD + '[[benchmarks]]\nid = "stream"\n[benchmarks.metrics.triad_mb_s]\nmin = 1\n')
    assert node.run("gate", "--file", file, "-o", "json")[0] == 3
    assert node.run("gate", "--file", file, "--only", "load", "-o", "json")[0] == 0


def test_a_plan_says_what_would_be_run_and_why(node: Node) -> None:
    file = node.toml(LOAD.replace('model = "m"', 'model = "m"\nparam_overrides = {concurrency = 4}'))
    code, out, _ = node.run("certify", "--file", file, "--plan", "-o", "table")
    assert (code, "load m" in out, "concurrency=4" in out, "no record of load" in out) == (0, True, True, True)
    assert "1 run, about 40 s" in out
    node.put(recorded_at=NOW, metrics={"rate": 1.0})
    code, out, _ = node.run("certify", "--file", file, "--plan", "-o", "table")
    assert (code, "not run: load m: fail: rate is 1, at least 20" in out) == (0, True)
    code, found = node.json("certify", "--file", file, "--plan", "--again")
    assert (code, [unit["id"] for unit in found["plan"]], found["gate"]["exit_code"]) == (0, ["load"], 2)


def test_what_cannot_be_certified_is_said_before_anything_runs(node: Node) -> None:
    file = node.toml(LOAD)
    code, _, err = node.run("certify", "--file", file)
    assert (code, "load m measures an endpoint: give --url" in err) == (1, True)
    code, _, err = node.run("certify", "--file", file, "--timeout-factor", "0.5")
    assert (code, "--timeout-factor 0.5: expected 1 or more" in err) == (1, True)
    code, _, err = node.run("certify", "--file", file, "--timeout-factor", "nan")
    assert (code, "expected 1 or more" in err) == (1, True)
    wrong = node.toml(LOAD.replace('model = "m"', 'model = "m"\nparam_overrides = {concurrency = -4}'))
    code, _, err = node.run("certify", "--file", wrong, "--url", "http://127.0.0.1:9")
    assert (code, "Concurrency" in err) == (1, True)
    bare = node.toml(LOAD.replace('model = "m"\n', ""))
    code, _, err = node.run("certify", "--file", bare, "--url", "http://127.0.0.1:9")
    assert (code, "a model for benchmarks[0] (model, or --model)" in err) == (1, True)


def test_a_node_whose_records_would_not_count_runs_nothing(node: Node, tmp_path: Path) -> None:
    stranger = SigningKey(str(tmp_path / "stranger")).public
    file = node.toml(f'[[signers]]\nkey = "{stranger}"\n{LOAD}')
    code, _, err = node.run("certify", "--file", file, "--url", "http://127.0.0.1:9")
    assert (code, "does not list the key of this node" in err, str(node.site.key.public) in err) == (1, True, True)


def test_nothing_is_run_where_all_is_proven(node: Node) -> None:
    run_id = node.put()
    code, found = node.json("certify", "--file", node.toml(LOAD))
    assert (code, found["plan"], found["ran"], found["gate"]["judgements"][0]["runs"]) == (0, [], [], [run_id])


def test_two_runs_compared(node: Node) -> None:
    first, second = node.put(recorded_at=NOW), node.put(recorded_at=NOW + 1)
    code, found = node.json("compare", first, second)
    # Nothing is known of either box, so it is not proven that they are one.
    assert (code, found["comparable"], found["refused"]) == (3, False, False)
    for number in range(3):
        node.put(sensitivity=Sensitivity.CORRECTNESS, metrics={"rate": 25.0 + number}, recorded_at=NOW + 10 + number)
    base = node.put(sensitivity=Sensitivity.CORRECTNESS, recorded_at=NOW + 20)
    other = node.put(sensitivity=Sensitivity.CORRECTNESS, params={"concurrency": "64"}, recorded_at=NOW + 21)
    code, out, _ = node.run("compare", base, other, "-o", "table")
    assert (code, f"{base} and {other}: refused" in out, "parameter concurrency" in out) == (3, True, True)
    assert "Change" not in out
    code, out, _ = node.run("compare", first, second, "-o", "table")
    assert (code, "not proven to be comparable" in out, out.rstrip().endswith("unknown")) == (3, True, True)


def test_a_changed_run_is_not_compared(node: Node) -> None:
    first, second = node.put(recorded_at=NOW), node.put(recorded_at=NOW + 1)
    rewrite(node.site.place(second) / "record.json", ("frame", "metrics", "rate"))
    code, found = node.json("compare", first, second)
    assert (code, found["refused"], "record.json was changed" in found["reasons"][0]) == (3, True, True)
    code, _, err = node.run("compare", second)
    assert (code, "record.json was changed" in err) == (1, True)
    third = node.put(recorded_at=NOW + 2)
    rewrite(node.site.place(third) / "signature.json", data=b"{}")
    code, found = node.json("compare", first, third)
    assert (found["refused"], "signature.json cannot be understood" in found["reasons"][0]) == (True, True)


def test_a_reference_is_pinned_and_held_against(node: Node) -> None:
    first = node.put(recorded_at=NOW, kind="pass")
    code, _, err = node.run("compare", first)
    assert (code, "no reference is pinned" in err) == (1, True)
    code, out, _ = node.run("pin", first, "--note", "as delivered", "-o", "table")
    assert (code, out) == (0, f"{first} is the reference of load for m on h200\n")
    code, found = node.json("compare", first)
    assert (code, found["metrics"][0]["word"], found["reference"]["note"]) == (0, "same", "as delivered")
    second = node.put(recorded_at=NOW + 1)
    code, out, _ = node.run("pin", second, "-o", "table")
    assert f"in the place of {first}" in out
    code, found = node.json("pin")
    assert (code, [one["run_id"] for one in found], found[0]["before"][0]["run_id"]) == (0, [second], first)
    assert second in node.run("pin", "-o", "table")[1]
    code, out, _ = node.run("compare", first, "-o", "table")
    assert (code, f"{first} against {second}, pinned" in out, "same" in out) == (0, True, True)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"status": "failed"}, "did not come to its end"),
        ({"kind": "fail"}, "is fail: fail, for a test"),
        ({"kind": "inconclusive"}, "is inconclusive"),
        ({"metrics": {}}, "has no numbers"),
        ({"validity": Validity.INVALID}, "the box was not fit"),
        ({"validity": Validity.UNKNOWN}, "(--unproven-box accepts that)"),
    ],
)
def test_what_is_no_reference(node: Node, changes: dict[str, Any], problem: str) -> None:
    run_id = node.put(**changes)
    code, out, err = node.run("pin", run_id, "-o", "json")
    assert (code, out, problem in err) == (1, "", True), err
    if changes.get("validity") is Validity.UNKNOWN:
        assert node.run("pin", run_id, "--unproven-box", "-o", "json")[0] == 0


def test_a_damaged_reference_is_named(node: Node) -> None:
    node.run("pin", node.put(), "-o", "json")
    (path,) = (node.site.folder / "references").iterdir()
    path.write_bytes(b"{}")
    code, _, err = node.run("pin", "-o", "json")
    assert (code, "is not to be believed" in err) == (1, True)


def bfcl(node: Node, shard: str, **changes: Any) -> str:
    made = msgspec.structs.replace(tallied(shard, TALLIES, **changes), benchmark_id="load", benchmark_updated="2099-01-01")
    return node.site.put(made)


def test_shards_are_added_by_name_or_by_id(node: Node) -> None:
    code, found = node.json("aggregate", "load")
    assert (code, found["complete"], found["overall_accuracy"], found["fault"]) == (
        3, False, None, "there is no record of a shard",
    )  # fmt: skip
    first = bfcl(node, "0/2")
    code, found = node.json("aggregate", "load")
    assert (code, found["fault"], found["shard_count"]) == (3, "no record of shard 1 of 2", 2)
    second = bfcl(node, "1/2")
    code, found = node.json("aggregate", second, first)
    assert (code, found["overall_accuracy"], found["samples"]) == (0, 80.0, 20.0)
    shards = [(one["index"], one["record"], one["hits"], one["n"]) for one in found["shards"]]
    assert shards == [(0, first, 8, 10), (1, second, 8, 10)]
    code, out, _ = node.run("aggregate", "load", "-o", "table")
    assert (code, "overall_accuracy" in out) == (0, True)
    lost = bfcl(node, "1/2", metrics={"transport_errors": 3.0}, recorded_at=NOW)
    code, out, _ = node.run("aggregate", "load", "-o", "table")
    assert (code, f"3 samples of {lost} were lost" in out) == (3, True)


def test_what_cannot_be_added(node: Node) -> None:
    first = bfcl(node, "0/2")
    other = node.site.put(tallied("1/2", TALLIES))
    assert "shards of different works" in node.run("aggregate", first, other)[2]
    assert "name one benchmark" in node.run("aggregate", "load", "stream")[2]
    assert "there is no benchmark" in node.run("aggregate", "nothing")[2]


def test_runs_are_exported(node: Node) -> None:
    run_id = node.put(kind="pass")
    code, out, err = node.run("export", run_id, "--format", "csv")
    assert (code, err) == (0, "")
    (row,) = csv.DictReader(io.StringIO(out))
    assert (row["run_id"], row["metric"], row["value"], row["signed_by"]) == (run_id, "rate", "25.0", node.site.key.public.key_id)
    page = node.home / "page.html"
    assert node.run("export", "--format", "html", "--file", str(page))[:2] == (0, "")
    assert run_id in page.read_text("utf-8")
    for name in ("json", "junit", "openmetrics", "md"):
        code, out, _ = node.run("export", "--id", "load", "--limit", "1", "--format", name)
        assert (code, "rate" in out) == (0, True), name


def test_what_cannot_be_exported(node: Node) -> None:
    assert node.run("export", "--format", "csv")[0] == 1
    run_id = node.put()
    assert "expected 1 or more" in node.run("export", "--limit", "0", "--format", "csv")[2]
    assert "not both" in node.run("export", run_id, "--id", "load", "--format", "csv")[2]
    assert node.run("export", run_id, "--format", "html", "--file", "/proc/none/page.html")[0] == 1
    rewrite(node.site.place(run_id) / "record.json", ("frame", "metrics", "rate"))
    code, out, err = node.run("export", run_id, "--format", "junit")
    assert (code, 'type="changed"' in out, "record.json was changed" in err) == (1, True, True)
    rewrite(node.site.place(run_id) / "record.json", data=b"{")
    code, _, err = node.run("export", "--format", "csv")
    assert (code, "cannot be understood" in err) == (1, True)
    other = node.put()
    code, out, err = node.run("export", "--format", "csv")
    assert (code, other in out, "cannot be understood" in err) == (1, True, True)


def test_an_unsigned_run_is_shown_as_one(node: Node) -> None:
    made = record("load", benchmark_updated="2099-01-01")
    run_id = node.site.put(made, store=RunStore(str(node.site.folder)))
    _, out, _ = node.run("export", run_id, "--format", "json")
    assert json.loads(out)["runs"][0]["signed_by"] is None
    assert "not signed" in node.run("show", run_id, "-o", "table")[1]
    signed = node.put()
    assert f"signed with {node.site.key.public.key_id}" in node.run("show", signed, "-o", "table")[1]
