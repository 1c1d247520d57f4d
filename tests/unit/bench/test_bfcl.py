"""Tool calls with known answers: draw, counts, environment, and whole runs with a stand-in for the published package."""

import contextlib
import importlib
import io
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.bench.bfcl.answers import Answer, AnswerBook
from nodeproof.bench.bfcl.dataset import read_draw
from nodeproof.bench.bfcl.environment import GOLDEN_ENVIRONMENT, INSIDE, Recipe
from nodeproof.bench.bfcl.scores import Tally, add, bounds, scores_of, tallies_in, tally_metrics
from nodeproof.bench.bfcl.subsets import (
    ECHOLP,
    FULL,
    GOLDEN,
    HALLUCINATION,
    LIVE,
    NON_LIVE,
    SUBSETS,
    WHOLE,
    Draw,
    Shard,
    drawn_counts,
)
from nodeproof.bench.testing import End, Script, ScriptServer, Step
from nodeproof.errors import ParamError, ParseError, RecordError, RunError, WriteError
from nodeproof.host.commands import HostCommands
from nodeproof.model.run import RunStatus
from nodeproof.runs.params import ParamValues
from support.answering import BY_ID, Answering, Ran, Said, last_text, run_benchmark, status
from support.bfcl import STANDIN, right, standin_recipe, standin_wheel

_PUBLISHED = {name: rows for name, (rows, _) in SUBSETS.items()}


# The draw


def test_draws_are_those_of_the_table() -> None:
    golden = drawn_counts(_PUBLISHED, GOLDEN)
    assert golden == {
        "irrelevance": 24, "live_irrelevance": 88, "live_multiple": 105, "live_parallel": 16, "live_parallel_multiple": 24,
        "live_simple": 25, "multiple": 124, "parallel": 124, "parallel_multiple": 124, "simple_java": 62,
        "simple_javascript": 31, "simple_python": 248,
    }  # fmt: skip
    assert sum(golden.values()) == 995
    echolp = drawn_counts(_PUBLISHED, ECHOLP)
    assert echolp == {
        "irrelevance": 28, "live_irrelevance": 106, "live_multiple": 242, "live_parallel": 16, "live_parallel_multiple": 24,
        "live_simple": 59, "multiple": 92, "parallel": 92, "parallel_multiple": 92, "simple_java": 46,
        "simple_javascript": 23, "simple_python": 184,
    }  # fmt: skip
    assert sum(echolp.values()) == 1004
    assert sum(drawn_counts(_PUBLISHED, FULL).values()) == 3625 == sum(_PUBLISHED.values()) - 16


@given(st.integers(1, 40), st.integers(0, 400))
def test_shards_are_a_partition(count: int, rows: int) -> None:
    shards = [Shard(index, count) for index in range(count)]
    for position in range(rows):
        assert sum(shard.has(position) for shard in shards) == 1
    sizes = [shard.size(rows) for shard in shards]
    assert sizes == [sum(shard.has(position) for position in range(rows)) for shard in shards]
    assert sum(sizes) == rows


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1", "is no shard; write i/n"),
        ("2/2", "shards of 2 are numbered 0 to 1"),
        ("0/0", "0 shards are none"),
        ("-1/2", "is no shard"),
        ("a/b", "is no shard"),
        ("1/٣" * 3, "is no shard"),
    ],
)
def test_what_is_no_shard_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ParamError, match=f"shard: .*{problem}"):
        _configured("bfcl-subset", shard=text)


def _configured(name: str, **params: Any) -> None:
    benchmark: Any = BY_ID[name].build()
    benchmark.check(ParamValues.from_overrides(benchmark.parameters(), [(key, str(value)) for key, value in params.items()]))


def _row(subset: str, number: int) -> str:
    message = {"role": "user", "content": "x"}
    return json.dumps({"subset": subset, "sample_id": f"{subset}_{number}", "messages": [message], "ground_truth": "[]"})


def test_the_first_rows_are_drawn_in_the_order_of_subset_names(tmp_path: Path) -> None:
    path = tmp_path / "data"
    rows = (
        [_row("simple_python", n) for n in range(10)] + [_row("live_simple", n) for n in range(3)] + [_row("live_relevance", 0)]
    )
    path.write_text("\n".join([*rows, ""]), encoding="utf-8")
    drawn = read_draw(str(path), Draw(50.0, 100.0, 100.0, 0), WHOLE)
    assert [row.sample_id for row in drawn.rows] == [
        "live_simple_0", "live_simple_1", "live_simple_2", *(f"simple_python_{n}" for n in range(5)),
    ]  # fmt: skip
    assert (drawn.whole, drawn.totals["live_relevance"]) == (8, 1)
    shards = [read_draw(str(path), Draw(50.0, 100.0, 100.0, 0), Shard(n, 3)) for n in range(3)]
    assert [[row.sample_id for row in shard.rows] for shard in shards][1] == [
        "live_simple_1",
        "simple_python_1",
        "simple_python_4",
    ]
    assert {shard.whole for shard in shards} == {8}
    names = Counter(row.sample_id for shard in shards for row in shard.rows)
    assert names == Counter(row.sample_id for row in drawn.rows)
    assert drawn.sha256 not in {shard.sha256 for shard in shards}


def test_data_that_are_none_are_named_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text(_row("live_simple", 0) + "\n{broken\n", encoding="utf-8")
    with pytest.raises(ParseError, match=r"data, line 2: found '\{broken', expected a sample"):
        read_draw(str(path), FULL, WHOLE)
    path.write_text(_row("live_simple", 0) + "\n" + _row("live_simple", 0), encoding="utf-8")
    with pytest.raises(RunError, match="live_simple_0 stands there twice"):
        read_draw(str(path), FULL, WHOLE)
    with pytest.raises(RunError, match="nothing is drawn in shard 1/2"):
        read_draw(_only_one(path), GOLDEN, Shard(1, 2))
    with pytest.raises(RunError, match="No such file"):
        read_draw(str(tmp_path / "none"), FULL, WHOLE)


def _only_one(path: Path) -> str:
    path.write_text(_row("live_simple", 0), encoding="utf-8")
    return str(path)


# Scores


def test_scores_of_twelve_samples() -> None:
    """Worked by hand: simple 1/2 and 0/2, multiple 1/2 (non-live 37.5), live 2/3 and 0/1 (pooled 50), irrelevance 1/2 (50)."""
    counts = {
        "simple_python": Tally(1, 2), "simple_java": Tally(0, 2), "multiple": Tally(1, 2),
        "live_simple": Tally(2, 3), "live_parallel": Tally(0, 1), "irrelevance": Tally(1, 2), "live_relevance": Tally(9, 9),
    }  # fmt: skip
    scores = scores_of(counts)
    assert scores.non_live == 37.5  # mean of simple (mean of 50 and 0) and multiple (50)
    assert scores.live == 50.0
    assert scores.hallucination == 50.0
    assert scores.normalized == 45.83
    assert scores.overall == 41.67  # 5 of 12


_TALLIES = st.dictionaries(
    st.sampled_from(sorted(SUBSETS)), st.integers(0, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
).map(lambda found: {name: Tally(*pair) for name, pair in found.items()})


@given(_TALLIES)
def test_scores_agree_with_a_second_way_to_compute_them(counts: dict[str, Tally]) -> None:
    """From single samples, as the reference's script does, not from counts."""
    samples = {name: [1.0] * tally.hits + [0.0] * (tally.n - tally.hits) for name, tally in counts.items() if tally.n}
    samples.pop("live_relevance", None)

    def mean(values: list[float]) -> float | None:
        return sum(values) / len(values) if values else None

    def of(category: str) -> dict[str, list[float]]:
        return {name: values for name, values in samples.items() if SUBSETS[name][1] == category}

    simple = [
        sum(v) / len(v) for name, v in of(NON_LIVE).items() if name in {"simple_python", "simple_java", "simple_javascript"}
    ]
    groups = [sum(v) / len(v) for name, v in of(NON_LIVE).items() if not name.startswith("simple")]
    if simple:
        groups.append(sum(simple) / len(simple))
    live = mean([one for values in of(LIVE).values() for one in values])
    none = mean([sum(v) / len(v) for v in of(HALLUCINATION).values()])
    present = [value for value in (mean(groups), live, none) if value is not None]
    scores = scores_of(counts)
    for found, wanted in (
        (scores.non_live, mean(groups)), (scores.live, live), (scores.hallucination, none), (scores.normalized, mean(present)),
        (scores.overall, mean([one for values in samples.values() for one in values])),
    ):  # fmt: skip
        assert (found is None) == (wanted is None)
        assert found is None or wanted is None or abs(found - wanted * 100) <= 0.005 + 1e-9


@given(_TALLIES, _TALLIES)
def test_counts_survive_a_record_and_add_up(one: dict[str, Tally], two: dict[str, Tally]) -> None:
    parts = [part for part in (one, two) if part]
    read = [tallies_in(tally_metrics(part)) for part in parts]
    assert read == parts
    for name, tally in add(read).items():
        assert tally.n == sum(part[name].n for part in parts if name in part)


def test_records_that_cannot_be_added_are_refused() -> None:
    with pytest.raises(RecordError, match="holds no counts of subsets"):
        tallies_in({"overall_accuracy": 3.0})
    with pytest.raises(RecordError, match=r"subset multiple: hits without its other half"):
        tallies_in({"subset.multiple.hits": 3.0})
    with pytest.raises(RecordError, match=r"3 hits of 2 are no counts"):
        tallies_in({"subset.multiple.hits": 3.0, "subset.multiple.n": 2.0})
    with pytest.raises(RecordError, match=r"1\.5 hits of 2 are no counts"):
        tallies_in({"subset.multiple.hits": 1.5, "subset.multiple.n": 2.0})


@given(_TALLIES, st.dictionaries(st.sampled_from(sorted(SUBSETS)), st.integers(1, 5)))
def test_bounds_hold_every_score_that_missing_answers_could_make(counts: dict[str, Tally], missing: dict[str, int]) -> None:
    worst, best = bounds(counts, missing)
    some = add([counts, {name: Tally(count // 2, count) for name, count in missing.items()}])
    between = scores_of(some)
    for low, value, high in zip(worst, between, best, strict=True):
        assert (low is None) == (value is None) == (high is None)
        assert low is None or value is None or high is None or low <= value <= high


# What runs inside the environment


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., dict[str, Any]]]:
    """The program that runs inside, here, with the stand-in."""
    monkeypatch.setenv("BFCL_PROJECT_ROOT", str(tmp_path / "root"))
    monkeypatch.syspath_prepend(str(STANDIN))
    before = set(sys.modules)
    program = importlib.import_module("nodeproof.bench.bfcl.inside")

    def call(*arguments: str) -> dict[str, Any]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert program.main(list(arguments)) == 0
        found: dict[str, Any] = json.loads(out.getvalue().splitlines()[-1])
        return found

    yield call
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "bfcl_eval":
            sys.modules.pop(name)


def test_the_data_are_taken_out_whole(tmp_path: Path, inside: Callable[..., dict[str, Any]]) -> None:
    path = tmp_path / "data"
    told = inside("materialise", str(path))
    assert (told["total"], told["subsets"]["simple_python"], len(told["subsets"])) == (123, 40, 13)
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    first = next(row for row in rows if row["sample_id"] == "simple_python_3")
    assert first["tools"][0]["function"]["name"] == "thing_do"
    assert "Note the language" in first["tools"][0]["function"]["description"]  # the model gets the hint
    assert "Note the language" not in first["func_description"]  # the checker gets what was published
    assert json.loads(first["ground_truth"]) == [{"thing.do": {"count": [3]}}]
    assert json.loads(next(row for row in rows if row["subset"] == "irrelevance")["ground_truth"]) == []
    assert [row["subset"] for row in rows] == sorted(row["subset"] for row in rows)


_DEEP = '{"a":' * 3000 + "1" + "}" * 3000


@pytest.mark.parametrize(
    ("sample", "calls", "hit", "why"),
    [
        ("simple_python_3", [["thing_do", '{"count": 3}']], True, ""),
        ("simple_python_3", [["thing_do", '{"count": 4}']], False, "value_error:others"),
        ("simple_python_3", [], False, "no_call"),
        ("simple_python_3", [["thing_do", "{broken"]], False, "arguments_unreadable"),
        ("simple_python_3", [["thing_do", "[3]"]], False, "arguments_unreadable"),
        ("simple_python_3", [["thing_do", _DEEP]], False, "arguments_unreadable"),
        ("simple_python_3", [["thing_do", ""]], False, "arguments_unreadable"),
        ("simple_python_3", [["thing_do", "{}"]], False, "checker_KeyError"),
        ("irrelevance_0", [["thing_do", "{broken"]], False, "called"),
        ("simple_python_3", [["other", '{"count": 3}']], False, "checker_KeyError"),
        ("parallel_1", [["thing_do", '{"count": 1}']] * 2, True, ""),
        ("parallel_1", [["thing_do", '{"count": 1}']], False, "wrong_count"),
        ("irrelevance_0", [], True, ""),
        ("irrelevance_0", [["thing_do", "{}"]], False, "called"),
        ("live_relevance_0", [], False, "no_call"),
        ("live_relevance_0", [["thing_do", "{}"]], True, ""),
    ],
)
def test_answers_are_judged(
    tmp_path: Path, inside: Callable[..., dict[str, Any]], sample: str, calls: list[list[str]], *, hit: bool, why: str
) -> None:
    data, answers, out = tmp_path / "data", tmp_path / "answers", tmp_path / "out"
    inside("materialise", str(data))
    unknown = {"sample_id": "nobody_1", "calls": []}
    lines = [json.dumps({"sample_id": sample, "calls": calls}), json.dumps(unknown)]
    answers.write_text("\n".join(lines), encoding="utf-8")
    assert inside("score", str(data), str(answers), str(out)) == {"unmatched_responses": 1}
    (score,) = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert (score["sample_id"], score["hit"], score["why"]) == (sample, hit, why)


# Whole runs


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in's wheel in a folder that pip takes for an index."""
    folder = tmp_path_factory.mktemp("wheels")
    standin_wheel(folder)
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One place for all runs: the environment is made once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def recipe(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """The stand-in is installed where the real one would be."""
    chosen = standin_recipe(next(wheels.iterdir()))
    _use(monkeypatch, chosen)
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return chosen


def _use(monkeypatch: pytest.MonkeyPatch, recipe: Recipe) -> None:
    for module in ("bfcl.benchmark", "equality.questions"):
        monkeypatch.setattr(f"nodeproof.bench.{module}.GOLDEN_ENVIRONMENT", recipe)


_SMALL: dict[str, Any] = {"request_timeout_s": 20, "concurrency": 4}


def _bfcl(home: Path, answer: Callable[[dict[str, Any]], Said | Script], name: str = "bfcl-subset", **params: Any) -> Ran:
    with ScriptServer(Answering(answer)) as server:
        return run_benchmark(home, server, name, **{**_SMALL, **params})


@pytest.mark.timeout(120)
def test_a_run_is_asked_checked_and_counted(home: Path, recipe: Recipe) -> None:
    ran = _bfcl(home, right(wrong=["simple_python_0", "multiple_0", "irrelevance_1"]))
    assert ran.record.status is RunStatus.COMPLETED, ran.record.verdict
    # of 40, 30 and 12 rows, 62 %, 10 % and all; the others are taken whole by the floor of 25
    n = {name: int(ran.metrics[f"subset.{name}.n"]) for name in SUBSETS if name != "live_relevance"}
    assert n == {
        "irrelevance": 3, "live_irrelevance": 10, "live_multiple": 12, "live_parallel": 2, "live_parallel_multiple": 2,
        "live_simple": 4, "multiple": 5, "parallel": 5, "parallel_multiple": 5, "simple_java": 3, "simple_javascript": 3,
        "simple_python": 24,
    }  # fmt: skip
    hits = {name: int(ran.metrics[f"subset.{name}.hits"]) for name in n}
    assert {name: n[name] - hits[name] for name in n if n[name] != hits[name]} == {
        "irrelevance": 1, "multiple": 1, "simple_python": 1,
    }  # fmt: skip
    assert ran.metrics["overall_accuracy"] == round(75 / 78 * 100, 2)
    assert ran.metrics["normalized_single_turn_score"] == scores_of({k: Tally(hits[k], n[k]) for k in n}).normalized
    assert (ran.metrics["samples"], ran.metrics["transport_errors"], ran.metrics["unmatched_responses"]) == (78.0, 0.0, 0.0)
    assert (ran.metrics["shard.index"], ran.metrics["shard.count"]) == (0.0, 1.0)
    assert ran.verdict == ("info", "overall 96.15 %, normalized 92.66 % of 78 answers; no limit was stated")
    assert any(
        "the draw has 78 samples, of the published data 995: scores do not compare" in line for line in ran.record.warnings
    )
    names = {entry.name: entry.version for entry in ran.record.provenance}
    assert names == {"bfcl-dataset": "0.1", "bfcl-eval": "0.1"}
    assert len(ran.lines("answers.jsonl")) == 78
    assert (ran.record.frame.dataset_fingerprint or "").startswith("file-sha256:")
    assert [entry for entry in (home / "artifacts" / "bfcl").iterdir() if entry.name.startswith(".making")] == []
    assert not list((home / "artifacts" / "bfcl-subset" / "answers").glob("*.jsonl"))  # it came to a verdict


@pytest.mark.parametrize(
    ("floors", "kind"),
    [
        ({"min_overall": 90}, "pass"),
        ({"min_overall": 99}, "fail"),
        ({"min_overall": 90, "min_normalized": 99}, "fail"),
        ({"min_overall": 90, "min_normalized": 89}, "pass"),
    ],
)
@pytest.mark.timeout(60)
def test_limits_make_a_pass_or_a_fail(home: Path, recipe: Recipe, floors: dict[str, Any], kind: str) -> None:
    ran = _bfcl(home, right(wrong=["simple_python_0", "multiple_0", "irrelevance_1"]), **floors)
    assert ran.verdict[0] == kind
    assert ran.verdict[1].startswith("overall 96.15 %, normalized 92.66 %; limits: overall at least")
    assert not (ran.path / "files" / "install.log").exists()  # the environment is there


@pytest.mark.timeout(60)
def test_no_tool_call_at_all_is_vacuous_and_no_bad_score(home: Path, recipe: Recipe) -> None:
    ran = _bfcl(home, lambda _: Said("I would call a function now."), min_overall=50)
    assert ran.verdict[0] == "inconclusive"
    assert ran.verdict[1].startswith("vacuous: none of 65 questions that need a tool call was answered with one")
    assert ran.metrics["tool_call_replies"] == 0.0
    assert "overall_accuracy" not in ran.metrics  # a number that proves nothing is none
    tiles = {tile.label: tile.value for tile in ran.record.frame.summary}
    assert (tiles["Overall"], tiles["Normalized"]) == ("-", "-")
    assert ran.metrics["subset.irrelevance.hits"] == 3.0


@pytest.mark.timeout(60)
def test_answers_that_tell_nothing_are_not_taken_over(home: Path, recipe: Recipe) -> None:
    mute, answer = [True], right()
    with ScriptServer(Answering(lambda body: Said("No tools.") if mute[0] else answer(body))) as server:
        assert run_benchmark(home, server, "bfcl-subset", **_SMALL).verdict[0] == "inconclusive"
        mute[0] = False  # the server was started anew, with tool calls switched on
        ran = run_benchmark(home, server, "bfcl-subset", **_SMALL)
    assert (ran.metrics["resumed_answers"], ran.metrics["overall_accuracy"]) == (0.0, 100.0)


@pytest.mark.timeout(60)
def test_what_brought_no_answer_is_never_scored(home: Path, recipe: Recipe) -> None:
    answer = right()

    def failing(body: dict[str, Any]) -> Said | Script:
        return status(503) if last_text(body).startswith("live_irrelevance") else answer(body)

    ran = _bfcl(home, failing, retries=0)
    assert ran.verdict[0] == "inconclusive"
    assert ran.verdict[1].startswith("unproven: 10 of 78 questions were not answered (12.82 %, limit 0.5 %): 10 status")
    assert ran.metrics["transport_errors"] == 10.0
    assert ran.metrics["subset.live_irrelevance.n"] == 0.0  # no call, which would have been right, is not what was answered
    assert ran.metrics["hallucination_accuracy"] == 100.0
    assert len(ran.lines("failures.jsonl")) == 10
    lenient = _bfcl(home, failing, retries=0, max_unmeasured_pct=20, min_overall=90)
    assert lenient.verdict[0] == "inconclusive"
    assert lenient.verdict[1].startswith("unproven: 10 missing answers decide (overall 87.18 to 100.00 %")
    enough = _bfcl(home, failing, retries=0, max_unmeasured_pct=20, min_overall=80)
    assert enough.verdict[0] == "pass"  # whatever the ten would have been


@pytest.mark.timeout(60)
def test_what_was_refused_is_asked_again_when_the_server_wants_it(home: Path, recipe: Recipe) -> None:
    answer, seen = right(), Counter[str]()

    def busy(body: dict[str, Any]) -> Said | Script:
        seen[last_text(body)] += 1
        return status(429, Retry_After="0") if seen[last_text(body)] == 1 and "parallel" in last_text(body) else answer(body)

    ran = _bfcl(home, busy)
    assert ran.metrics["transport_errors"] == 0.0
    assert ran.metrics["overall_accuracy"] == 100.0
    assert set(seen.values()) == {1, 2}


@pytest.mark.timeout(60)
def test_a_run_that_was_stopped_goes_on_where_it_was(home: Path, recipe: Recipe) -> None:
    gate = right(wrong=["simple_python_1"])
    folder = home / "artifacts" / "bfcl-subset" / "answers"
    before = set(folder.glob("*.jsonl"))  # of runs that were inconclusive
    with ScriptServer(Answering(gate, delay_s=0.01)) as server:
        first = run_benchmark(
            home, server, "bfcl-subset", should_cancel=lambda: len(server.served) > 22, **{**_SMALL, "concurrency": 1}
        )
        assert first.record.status is RunStatus.CANCELLED
        kept = {line["sample_id"] for line in first.lines("answers.jsonl")}
        assert 0 < len(kept) < 78
        (journal,) = set(folder.glob("*.jsonl")) - before
        assert {json.loads(line)["sample_id"] for line in journal.read_bytes().splitlines()} == kept
        journal.write_bytes(journal.read_bytes() + b'{"sample_id": "simple_py')  # as a kill would leave it
        asked = len(server.served)
        second = run_benchmark(home, server, "bfcl-subset", **_SMALL)
        # the probe asks for the models and one question
        assert len(server.served) - asked == 78 - len(kept) + 2
    assert second.metrics["resumed_answers"] == len(kept)
    assert (second.metrics["samples"], second.metrics["subset.simple_python.hits"]) == (78.0, 23.0)
    assert any(f"{len(kept)} answers are those of a run before" in line for line in second.record.warnings)
    assert len(second.lines("answers.jsonl")) == 78
    assert not journal.exists()


@pytest.mark.timeout(60)
def test_shards_are_added_on_counts(home: Path, recipe: Recipe) -> None:
    answer = right(wrong=["simple_python_0", "multiple_0", "irrelevance_1"])
    parts = [_bfcl(home, answer, shard=f"{index}/3") for index in range(3)]
    for index, part in enumerate(parts):
        assert part.verdict[0] == "info"
        assert part.verdict[1].startswith(f"shard {index} of 3: ")
    whole = scores_of(add([tallies_in(part.metrics) for part in parts]))
    assert (whole.overall, whole.normalized) == (96.15, 92.66)
    means = [part.metrics["normalized_single_turn_score"] for part in parts]
    assert round(sum(means) / 3, 2) != 92.66  # which is why


@pytest.mark.timeout(60)
def test_a_checker_that_dies_costs_no_answer(home: Path, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('the checker is ill')\n", encoding="utf-8")
    with ScriptServer(Answering(right())) as server:
        with monkeypatch.context() as patch:
            patch.setattr("nodeproof.bench.bfcl.benchmark.INSIDE", str(broken))
            first = run_benchmark(home, server, "bfcl-subset", **_SMALL)
        assert first.record.status is RunStatus.FAILED
        assert "the checker judged 0 of 78 answers" in first.record.verdict.reason
        assert "the checker is ill" in first.record.verdict.reason
        asked = len(server.served)
        second = run_benchmark(home, server, "bfcl-subset", **_SMALL)
        assert len(server.served) == asked + 2
    assert (second.metrics["resumed_answers"], second.metrics["overall_accuracy"]) == (78.0, 100.0)


@pytest.mark.timeout(60)
def test_equality_is_tried_with_the_golden_draw(home: Path, recipe: Recipe) -> None:
    with ScriptServer(Answering(right())) as server:
        ran = run_benchmark(home, server, "kat-equality", sample_cap=20)
    assert ran.verdict == ("pass", "20 of 20 answers are the same bytes in 2 orders")
    assert {entry.name for entry in ran.record.provenance} == {"bfcl-dataset", "bfcl-eval"}


# The environment


def _left(home: Path) -> list[str]:
    return sorted(entry.name for entry in (home / "artifacts" / "bfcl").iterdir())


@pytest.mark.timeout(60)
def test_without_an_index_the_error_says_what_helps(tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "empty"))
    ran = _bfcl(tmp_path, right())
    assert (ran.record.status, ran.record.exit_code) == (RunStatus.FAILED, 1)
    reason = ran.record.verdict.reason
    assert "bfcl-eval 0.1 could not be installed: ERROR: No matching distribution found for bfcl-eval==0.1" in reason
    assert "pip download --no-deps bfcl-eval==0.1 -d DIR" in reason
    assert "set PIP_NO_INDEX=1 PIP_FIND_LINKS=DIR" in reason
    assert _left(tmp_path) == ["lock"]
    assert "ERROR" in (ran.path / "files" / "install.log").read_text(encoding="utf-8")


@pytest.mark.timeout(60)
def test_a_package_that_was_changed_is_refused(
    tmp_path: Path, wheels: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = recipe._replace(requirements=(f"bfcl-eval==0.1 --hash=sha256:{'0' * 64}",))
    _use(monkeypatch, other)
    ran = _bfcl(tmp_path, right())
    assert ran.record.status is RunStatus.FAILED
    assert "could not be installed" in ran.record.verdict.reason
    assert _left(tmp_path) == ["lock"]


@pytest.mark.timeout(60)
def test_a_cancel_while_it_installs_leaves_nothing_half_made(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Index(Answering):
        def __call__(self, request: Any) -> Script:
            del request
            return Script(steps=[Step(0.0, b"<")], end=End.HANG)

    with ScriptServer(Index(lambda _: Said(""))) as index, ScriptServer(Answering(right())) as server:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
        ran = run_benchmark(tmp_path, server, "bfcl-subset", should_cancel=lambda: bool(index.served), **_SMALL)
    assert (ran.record.status, ran.record.exit_code) == (RunStatus.CANCELLED, 130)
    assert _left(tmp_path) == ["lock"]


@pytest.mark.timeout(60)
def test_what_a_killed_run_left_is_removed_and_one_that_lacks_a_part_is_made_anew(home: Path, recipe: Recipe) -> None:
    _bfcl(home, right(), shard="0/20")
    place = home / "artifacts" / "bfcl"
    (environment,) = place.glob("env-*")
    (environment / "dataset.jsonl").unlink()
    (place / ".making-000000000000" / "bin").mkdir(parents=True)
    ran = _bfcl(home, right(), shard="0/20")
    assert ran.record.status is RunStatus.COMPLETED, ran.record.verdict
    assert (environment / "dataset.jsonl").exists()
    assert _left(home) == [environment.name, "lock"]


@pytest.mark.timeout(60)
def test_data_that_are_not_what_they_were_are_told_of(
    home: Path, wheels: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(monkeypatch, recipe._replace(dataset_sha256="0" * 64))
    ran = _bfcl(home, right(), shard="0/20")
    assert any("differ from what they were: scores do not compare" in line for line in ran.record.warnings)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("lacking", ["pip", "everything"])
def test_whatever_installs_packages_is_found(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    monkeypatch.setattr("nodeproof.bench.bfcl.environment.find_spec", lambda _: None)
    tools = tmp_path / "tools"
    tools.mkdir()
    if lacking == "pip":
        (tools / "pip3").write_text(f'#!/bin/sh\nexec {sys.executable} -m pip "$@"\n', encoding="utf-8")
        (tools / "pip3").chmod(0o755)
    monkeypatch.setattr("nodeproof.bench.bfcl.environment.HostCommands", lambda: HostCommands(str(tools)))
    ran = _bfcl(tmp_path, right(), shard="0/20")
    if lacking == "pip":
        assert ran.record.status is RunStatus.COMPLETED, ran.record.verdict
    else:
        assert "neither pip nor uv is here" in ran.record.verdict.reason


@pytest.mark.timeout(60)
def test_two_runs_at_once_make_one_environment(tmp_path: Path, recipe: Recipe) -> None:
    with ScriptServer(Answering(right())) as server, ThreadPoolExecutor(2) as pool:
        names = ("bfcl-subset-echolp", "bfcl-full")
        runs = [pool.submit(run_benchmark, tmp_path, server, name, shard="0/20", **_SMALL) for name in names]
        found = [run.result() for run in runs]
    assert [ran.record.status for ran in found] == [RunStatus.COMPLETED] * 2, [ran.record.verdict for ran in found]
    assert sum((ran.path / "files" / "install.log").exists() for ran in found) == 1
    assert {ran.record.params["live_pct"] for ran in found} == {"23.0", "100.0"}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("program", "python", "problem"),
    [
        ("print('no data today')", "", "bfcl-eval 0.1 gave no data: no data today; data.log of this run has more"),
        ("import sys; sys.exit('ERROR: not this one')", "", "bfcl-eval 0.1 gave no data: ERROR: not this one"),
        ("", "/bin/false", "python -m venv made no environment: it said nothing; install Python's venv module"),
        ("", "/nowhere/python", "/nowhere/python could not be started: "),
    ],
)
def test_an_environment_that_cannot_be_made_says_why_and_leaves_nothing(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch, program: str, python: str, problem: str
) -> None:
    if program:
        other = tmp_path / "other.py"
        other.write_text(program, encoding="utf-8")
        monkeypatch.setattr("nodeproof.bench.bfcl.environment.INSIDE", str(other))
    else:
        stand_in = SimpleNamespace(executable=python, version_info=sys.version_info)
        monkeypatch.setattr("nodeproof.bench.bfcl.environment.sys", stand_in)
    ran = _bfcl(tmp_path / "home", right(), shard="0/20")
    assert ran.record.status is RunStatus.FAILED
    assert problem in ran.record.verdict.reason
    assert _left(tmp_path / "home") == ["lock"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, recipe: Recipe) -> None:
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "bfcl").write_text("in the way", encoding="utf-8")
    ran = _bfcl(tmp_path, right(), shard="0/20")
    assert "the environment of bfcl-eval cannot be kept: " in ran.record.verdict.reason
    assert "artifacts/bfcl: is no directory; move what stands there" in ran.record.verdict.reason


@pytest.mark.timeout(60)
def test_nothing_answered_proves_nothing(home: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodeproof.bench.bfcl.benchmark._LONGEST_PAUSE_S", 0.05)
    ran = _bfcl(home, lambda _: status(429, Retry_After="30"), shard="0/20")
    drawn = int(ran.metrics["drawn"])
    assert ran.verdict == ("inconclusive", f"unproven: none of {drawn} questions was answered: {drawn} status")
    assert "overall_accuracy" not in ran.metrics
    assert ran.metrics["transport_errors"] == drawn


# Answers


def _answer(name: str, **more: Any) -> Answer:
    return Answer(sample_id=name, subset="multiple", outcome="stop", calls=(), at=time.time(), **more)


class _Handle:
    """As much of a run as a book needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warnings: list[str] = []

    def file_path(self, name: str) -> str:
        self.folder.mkdir(exist_ok=True)
        return str(self.folder / name)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def test_a_journal_gives_what_is_young_whole_and_asked_for(tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    first: Any = _Handle(tmp_path / "one")
    with contextlib.closing(AnswerBook(first, str(journal))) as book:
        book.resume(first, ["a", "b"], take_over=True)
        book.add(_answer("a"))
        book.add(_answer("b", text="x"))
        book.add(Answer(sample_id="c", subset="multiple", outcome="reset", calls=(), at=time.time()))
        book.check()
        other: Any = _Handle(tmp_path / "two")
        with contextlib.closing(AnswerBook(other, str(journal))) as second:
            second.resume(other, ["a"], take_over=True)
            assert (second.resumed, other.warnings) == (
                0, ["bfcl: another run asks the same questions now; this one is not to be resumed"],
            )  # fmt: skip
    old = {"sample_id": "d", "subset": "multiple", "outcome": "stop", "calls": [], "at": time.time() - 90000}
    with open(journal, "ab") as file:
        file.write(json.dumps(old).encode() + b"\nrubbish\n")
    third: Any = _Handle(tmp_path / "three")
    with contextlib.closing(AnswerBook(third, str(journal))) as book:
        book.resume(third, ["a", "c", "d"], take_over=True)
        assert sorted(book.answers) == ["a"]
        book.forget()
    assert not journal.exists()


def test_journals_that_are_of_no_use_any_more_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    for name, age_s in (("old.jsonl", 8 * 86400), ("old.jsonl.lock", 8 * 86400), ("young.jsonl", 3600)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age_s,) * 2)
    handle: Any = _Handle(tmp_path / "one")
    handle.artifacts = SimpleNamespace(directory=lambda name: str(tmp_path / name))
    AnswerBook.of(handle, "k").close()
    assert [entry.name for entry in folder.iterdir()] == ["young.jsonl"]


def test_a_full_disk_is_told_and_not_swallowed(tmp_path: Path) -> None:
    handle: Any = _Handle(tmp_path / "one")
    with contextlib.closing(AnswerBook(handle, str(tmp_path / "j"))) as book:
        os.close(book._files[0]._fd)
        book._files[0]._fd = os.open("/dev/full", os.O_WRONLY)
        book.add(_answer("a"))
        with pytest.raises(WriteError, match="No space left"):
            book.check()


# The real package


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    """A shard with the real data and the real checker, every question of ``simple_python`` answered rightly."""
    place = tmp_path_factory.mktemp("published")
    truths: dict[str, Any] = {}

    def answer(body: dict[str, Any]) -> Said:
        if not truths:
            truths.update({json.dumps(row["messages"]): row for row in _rows(place) if row["subset"] == "simple_python"})
        row = truths.get(json.dumps(body["messages"]))
        return Said("no") if row is None else Said(calls=_truth(row))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_RETRIES", "0")
        patch.setenv("PIP_DEFAULT_TIMEOUT", "10")
        ran = _bfcl(place, answer, shard="0/30")
    return place, ran


def _rows(place: Path) -> list[dict[str, Any]]:
    (data,) = (place / "artifacts" / "bfcl").glob("env-*/dataset.jsonl")
    return [json.loads(line) for line in data.read_bytes().splitlines()]


def _truth(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The calls that are right."""
    calls = []
    for wanted in json.loads(row["ground_truth"]):
        ((name, values),) = wanted.items()
        arguments = {key: one[0] for key, one in values.items() if one and one[0] != ""}
        if row["subset"] in {"simple_java", "simple_javascript"}:
            arguments = {key: one if isinstance(one, str) else json.dumps(one) for key, one in arguments.items()}
        calls.append((name.replace(".", "_"), json.dumps(arguments)))
    return tuple(calls)


def _to_be_had(ran: Ran, absent_here: list[str]) -> bool:
    if "could not be installed" in ran.record.verdict.reason:
        absent_here.append("a package index with bfcl-eval: nothing was run with the published data and checker")
        return False
    return True


@pytest.mark.timeout(120)
def test_a_shard_with_the_published_package(published: tuple[Path, Ran], absent_here: list[str]) -> None:
    _, ran = published
    if not _to_be_had(ran, absent_here):
        return
    assert ran.record.status is RunStatus.COMPLETED, ran.record.verdict
    assert (ran.metrics["drawn"], ran.metrics["subset.simple_python.n"]) == (40.0, 9.0)
    assert ran.metrics["subset.simple_python.hits"] == 9.0
    assert ran.metrics["subset.simple_java.hits"] == 0.0
    assert ran.metrics["subset.irrelevance.hits"] == ran.metrics["subset.irrelevance.n"] == 1.0
    assert not [line for line in ran.record.warnings if "do not compare" in line]
    assert {entry.name: entry.version for entry in ran.record.provenance}["bfcl-eval"] == "2026.3.23"
    assert GOLDEN_ENVIRONMENT.dataset_sha256 in (ran.record.frame.dataset_fingerprint or "")


def _answers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers to all of them, right and wrong in every way, by a seed."""
    chance = random.Random(5)  # noqa: S311 - answers, no secrets
    answers = []
    for row in rows:
        calls = [list(call) for call in _truth(row)] or ([["f", "{}"]] if chance.random() < 0.4 else [])
        way = chance.randrange(10)
        if json.loads(row["ground_truth"]) and way < 6:
            arguments = json.loads(calls[0][1])
            spoilt = json.dumps(dict(list(arguments.items())[1:]))
            calls = (
                [], [*calls, calls[0]], [[calls[0][0], calls[0][1][:-2]], *calls[1:]], [[calls[0][0], spoilt], *calls[1:]],
                [["nothing", calls[0][1]], *calls[1:]], [[calls[0][0], ""], *calls[1:]],
            )[way]  # fmt: skip
        answers.append({"sample_id": row["sample_id"], "subset": row["subset"], "calls": calls, "text": "Some words."})
    return answers


@pytest.mark.timeout(120)
def test_hits_of_every_subset_are_those_of_the_published_runner(
    published: tuple[Path, Ran], tmp_path: Path, absent_here: list[str]
) -> None:
    place, ran = published
    if not _to_be_had(ran, absent_here):
        return
    (environment,) = (place / "artifacts" / "bfcl").glob("env-*")
    answers, scores = tmp_path / "answers.jsonl", tmp_path / "scores.jsonl"
    answers.write_text("".join(json.dumps(answer) + "\n" for answer in _answers(_rows(place))), encoding="utf-8")
    python, data = str(environment / "bin" / "python"), str(environment / "dataset.jsonl")
    helper = str(Path(__file__).parents[2] / "support" / "published_scores.py")
    _inside(tmp_path, python, "-I", INSIDE, "score", data, str(answers), str(scores))
    wanted = json.loads(_inside(tmp_path, python, "-I", helper, str(answers)).splitlines()[-1])
    hits: dict[str, list[int]] = {}
    for line in scores.read_text(encoding="utf-8").splitlines():
        score = json.loads(line)
        of = hits.setdefault(score["subset"], [0, 0])
        of[0] += score["hit"]
        of[1] += 1
    assert hits == wanted
    assert sum(count for _, count in hits.values()) == 3641
    assert all(0 < right_ones < count for right_ones, count in hits.values())


def _inside(folder: Path, *argv: str) -> str:
    environment = {"PATH": os.environ["PATH"], "BFCL_PROJECT_ROOT": str(folder)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
