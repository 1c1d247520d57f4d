"""Servers that see, mistake one picture for another, look at none, or take none."""

from pathlib import Path

import pytest

from nodeproof.bench.benchmarks import DESCRIPTORS
from nodeproof.bench.media.items import clip_item, colours_item, counts_item, number_item
from nodeproof.bench.testing import End, Received, Rules, Script, ScriptServer
from nodeproof.runs.registry import Registry
from support.bench_course import Outcome, run
from support.seeing import Pixels, Sight, picture_tokens

pytestmark = pytest.mark.timeout(60)


def _run(tmp_path: Path, model: Sight | Rules, benchmark: str = "vision", **params: str) -> Outcome:
    with ScriptServer(model) as server:
        return run(tmp_path, server.url, benchmark, **params)


def _check(outcome: Outcome, name: str) -> tuple[str, str]:
    """Result and detail of a check."""
    table = outcome.record.frame.table
    assert table is not None
    return next((row[2].text, row[3].text) for row in table.rows if row[1].text == name)


def test_the_reference_s_names_are_aliases() -> None:
    registry = Registry()
    for descriptor in DESCRIPTORS:
        registry.add(descriptor, "nodeproof")
    assert registry.get("vision-fidelity").id == "vision"
    assert registry.get("video-fidelity").id == "video"


def test_a_server_that_sees_passes(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Sight())
    assert outcome.kind == "pass", outcome.reason
    assert outcome.reason == "geometry 1 of 1; probes 3 of 3; integrity 8 of 8; concurrency 3 of 3; control 3 of 3"
    metrics = outcome.metrics
    assert (metrics["geometry_asserted"], metrics["geometry_matched"], metrics["geometry_cells"]) == (7, 7, 7)
    assert (metrics["probes_passed"], metrics["probes_total"], metrics["control_held"]) == (3, 3, 1)
    assert (metrics["integrity_passed"], metrics["integrity_failed"], metrics["concurrency_levels_clean"]) == (8, 0, 3)
    assert _check(outcome, "prices")[1] == "one token for 28 x 28 pixels, sizes rounded nearest, 2 around"
    assert outcome.record.frame.dataset_fingerprint == "seed:1"
    assert (outcome.files / "fidelity.json").exists()


def test_what_a_server_does_not_offer_is_no_failure(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Sight(no_responses=True, no_choices=True, no_usage=True))
    assert outcome.kind == "pass", outcome.reason
    assert outcome.reason.endswith("integrity 6 of 6; concurrency 3 of 3; control 3 of 3; 3 not offered")
    assert outcome.metrics["integrity_skipped"] == 2
    assert outcome.metrics["geometry_asserted"] == 0


def test_a_cache_that_mistakes_pictures_fails(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Sight(stale=True))
    assert outcome.kind == "fail"
    assert "colours: answered " in outcome.reason
    assert outcome.metrics["integrity_failed"] >= 2
    assert outcome.metrics["concurrency_levels_clean"] == 0
    assert _check(outcome, "prefix-isolation")[0] == "fail"


def test_pictures_of_other_requests_are_named(tmp_path: Path) -> None:
    class Mixing(Sight):
        """Answers requests that come close together with what the first of them showed."""

        def _say(self, text: str, pictures: list[Pixels], clips: list[list[Pixels]]) -> str:
            if pictures:
                self.turn = getattr(self, "turn", 0) + 1
                if self.turn % 2:
                    self.held = pictures
            return super()._say(text, getattr(self, "held", pictures) if pictures and self.turn > 12 else pictures, clips)

    outcome = _run(tmp_path, Mixing())
    assert outcome.kind == "fail"
    assert "another request's picture was answered" in outcome.reason


def test_prices_that_break_the_declared_rule_fail(tmp_path: Path) -> None:
    def shrinks(picture: Pixels) -> int:
        """Large pictures are scaled down on the way."""
        return min(picture_tokens(picture), 300)

    outcome = _run(tmp_path, Sight(tokens=shrinks), patch="14", merge="2", concurrencies="2")
    assert outcome.kind == "fail"
    assert "300 tokens where one token for 28 x 28 pixels" in outcome.reason
    assert (outcome.metrics["geometry_asserted"], outcome.metrics["geometry_matched"]) == (7, 3)
    unknown = _run(tmp_path, Sight(tokens=shrinks), concurrencies="2")
    assert unknown.kind == "pass"
    assert _check(unknown, "prices")[0] == "skipped"
    assert "no rule by size was found (224 x 224: 66, " in _check(unknown, "prices")[1]


def test_pictures_that_do_not_reach_the_model_fail(tmp_path: Path) -> None:
    class Blind(Sight):
        def _say(self, text: str, pictures: list[Pixels], clips: list[list[Pixels]]) -> str:
            return super()._say(text, pictures[:0], clips[:0])

    outcome = _run(tmp_path, Blind(tokens=lambda _: 0))
    assert outcome.kind == "fail"
    assert "prices: pictures add no tokens: they do not reach the model" in outcome.reason
    assert "answered 'I see nothing.' where" in outcome.reason
    assert outcome.metrics["control_held"] == 1


def test_other_costs_in_one_piece_fail(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Sight(costlier_in_one_piece=True))
    assert outcome.kind == "fail"
    assert outcome.reason.startswith("stream-parity: ")
    assert "prompt tokens as a stream" in outcome.reason


def test_a_choice_that_saw_nothing_fails(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Sight(second_choice_blind=True))
    assert outcome.reason == "choices: one choice says 'I see nothing.'"


def test_who_knows_without_looking_proves_nothing(tmp_path: Path) -> None:
    answers = {"stripes": ", ".join(colours_item(1).expected)}
    outcome = _run(tmp_path, Sight(knows=answers))
    assert outcome.kind == "inconclusive"
    assert outcome.reason == f"vacuous: answered rightly without a picture: {answers['stripes']}"
    assert outcome.metrics["control_held"] == 0


def test_a_lucky_count_proves_nothing_either_way(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Sight(knows={"squares": ", ".join(counts_item(1).expected)}))
    assert outcome.kind == "pass"
    assert outcome.metrics["control_held"] == 0


def test_a_refusal_in_words_is_one_as_well(tmp_path: Path) -> None:
    """llama.cpp without a projector says so under status 500; any other 500 is an error."""
    outcome = _run(tmp_path, Sight(blind_refuses=True, under_500=True))
    assert outcome.kind == "inconclusive"
    assert outcome.reason.startswith("unmeasured: the endpoint takes no picture (status: status 500: ")


def test_a_server_that_takes_no_pictures_is_unmeasured(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Sight(blind_refuses=True))
    assert outcome.kind == "inconclusive"
    assert outcome.reason.startswith("unmeasured: the endpoint takes no picture (status: status 400")
    assert outcome.metrics["probes_total"] == 0
    assert "control_held" not in outcome.metrics


def test_a_server_that_does_not_answer_at_all(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Rules(Sight(), lambda _: Script(status=503)))
    assert outcome.kind == "inconclusive"
    assert outcome.reason.startswith("vacuous: the endpoint does not answer even without a picture (status")


def test_answers_that_are_cut_leave_it_open(tmp_path: Path) -> None:
    def cut(request: Received) -> Script | None:
        return Script(end=End.CLOSE) if b"stripes" in request.body else None

    outcome = _run(tmp_path, Rules(Sight(), cut), concurrencies="2")
    assert outcome.kind == "inconclusive"
    fewer = _run(tmp_path, Rules(Sight(), cut), concurrencies="2", min_probes="2")
    assert fewer.kind == "inconclusive"
    assert "checks could not be made: colours: reset: " in fewer.reason


# Clips


def test_a_server_that_sees_clips_passes(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Sight(), "video")
    assert outcome.kind == "pass", outcome.reason
    assert outcome.reason == (
        "geometry 1 of 1; probes 2 of 2; forms 1 of 1; mixed 1 of 1; integrity 8 of 8; concurrency 3 of 3; control 2 of 2"
    )
    assert outcome.metrics["group_count_ratio"] == pytest.approx(2.0, abs=0.05)


def test_an_order_that_is_lost_fails(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Sight(backwards=True), "video")
    assert outcome.kind == "fail"
    assert "where " in outcome.reason
    assert outcome.metrics["probes_passed"] < 2


def test_the_other_form_is_tried(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Sight(no_mp4=True, fixed_frames=True), "video", concurrencies="2")
    assert outcome.kind == "pass", outcome.reason
    assert any("the endpoint takes no mp4" in warning for warning in outcome.record.warnings)
    assert _check(outcome, "mp4 as gif")[0] == "skipped"
    assert _check(outcome, "length") == ("skipped", "512 tokens, 512 for one twice as long: a fixed number of frames")


def test_clips_that_are_not_taken_are_unmeasured(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Sight(blind_refuses=True), "video")
    assert outcome.kind == "inconclusive"
    assert outcome.reason.startswith("unmeasured: the endpoint takes no video (")


def test_who_knows_the_clip_without_looking(tmp_path: Path) -> None:
    outcome = _run(tmp_path, Sight(knows={"video": ", ".join(clip_item(1).expected)}), "video", concurrencies="2")
    assert outcome.kind == "inconclusive"
    assert outcome.reason.startswith("vacuous: answered rightly without a video: ")


def test_an_item_is_right_only_by_its_own_answer() -> None:
    assert not number_item(1).right(number_item(2).expected[0])
