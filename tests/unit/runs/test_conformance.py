"""The kit holds a good benchmark to be good, an installed one too, and finds what is wrong with bad ones."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from nodeproof.model.run import Frame, Verdict, VerdictKind
from nodeproof.runs.benchmark import Descriptor, PluginMetadata
from nodeproof.runs.conformance import CASES, Case, ConformanceError, Subject, failures
from nodeproof.runs.conformance.subject import Rig, expect
from nodeproof.runs.params import Int, ParamSpec
from nodeproof.runs.registry import discover
from support.runs import PASS, Scripted, script

EXAMPLE = str(Path(__file__).parents[2] / "fixtures" / "packages" / "example_benchmark")


@pytest.fixture(scope="module")
def example() -> Iterator[Subject]:
    """The example package, found the way an installed one is."""
    sys.path.insert(0, EXAMPLE)
    try:
        yield Subject(discover([EXAMPLE]).get("example-hash"), overrides={"blocks": "3"}, within_s=15.0, cancel_grace_s=1.0)
    finally:
        sys.path.remove(EXAMPLE)
        sys.modules.pop("example_benchmark", None)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_example_package_keeps_the_contract(example: Subject, case: Case) -> None:
    case.check(example)


def test_example_package_measures(example: Subject) -> None:
    with Rig(example) as rig:
        outcome = rig.run()
    assert outcome.record.verdict == Verdict(VerdictKind.PASS, "3 of 3 digests as expected")
    assert outcome.record.frame.metrics["hash_bytes_per_s"] > 1e6
    assert outcome.record.provenance[0].name == "python"
    assert [frame.progress for frame in outcome.frames()] == [(1, 3), (2, 3), None]


def test_example_package_fails_on_a_wrong_digest(example: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("example_benchmark"), "EXPECTED", "0" * 64)
    with Rig(example) as rig:
        outcome = rig.run()
    assert (outcome.record.verdict.kind, outcome.record.exit_code) == (VerdictKind.FAIL, 2)


def test_names_are_the_same_for_everybody() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) == 30
    assert all(case.about and str(case) == case.name for case in CASES)


def test_scripted_benchmark_keeps_the_contract() -> None:
    assert failures(Subject(script([]), within_s=15.0, cancel_grace_s=0.5)) == {}


def only(*names: str) -> list[Case]:
    return [case for case in CASES if case.name in names]


def found(descriptor: Descriptor, *names: str) -> str:
    """What the cases of these names say about a bad benchmark."""
    subject = Subject(descriptor, within_s=10.0, cancel_grace_s=0.2)
    (case,) = only(*names)
    with pytest.raises(ConformanceError, match=r".") as caught:
        case.check(subject)
    return str(caught.value)


def _raise(error: BaseException) -> None:
    raise error


def test_a_benchmark_deaf_to_a_cancel_is_found() -> None:
    release = threading.Event()

    def deaf(_: Scripted) -> None:
        release.wait(1.0)

    assert "every call to come back within the grace of a cancel" in found(script([], next=deaf), "cancel-in-next")
    release.set()


def test_a_child_left_behind_is_found() -> None:
    children: list[subprocess.Popen[bytes]] = []

    def step(_: Scripted) -> None:
        children.append(subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE))

    try:
        assert "no process left behind" in found(script([], next=step), "nothing-left")
    finally:
        for child in children:
            child.communicate(timeout=10)


def test_a_thread_left_behind_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodeproof.runs.conformance.ends._SETTLE_S", 0.3)
    release = threading.Event()

    def step(_: Scripted) -> None:
        threading.Thread(target=release.wait, args=(10,), daemon=True).start()

    assert "no thread left behind" in found(script([], next=step), "nothing-left")
    release.set()


def test_cleanup_of_an_unloaded_object_that_breaks_is_found() -> None:
    def cleanup(bench: Scripted) -> None:
        bench.given.info("done")

    assert "not loaded" in found(script([], cleanup=cleanup), "cleanup-unloaded")


def test_state_that_is_not_reset_is_found() -> None:
    def configure(bench: Scripted) -> None:
        if configured:
            raise OSError("already configured")
        configured.append(1)

    configured: list[int] = []
    assert "already configured" in found(script([], configure=configure), "configure-again")


def test_metrics_that_are_no_numbers_are_found() -> None:
    frame = Frame.completed("done", 0.1, verdict=PASS, metrics={"rate": float("nan")})
    assert "finite metrics" in found(script([], next=lambda _: frame), "configure-again")


def test_a_run_that_fails_is_found() -> None:
    text = found(script([], next=lambda _: Frame.failed("probe", "port closed", 0.1)), "whole-run")
    assert "a run that completes, saw failed in phase probe: port closed" in text


def test_unsound_parameters_are_found() -> None:
    class Odd(Scripted):
        specs: tuple[ParamSpec, ...] = (ParamSpec("steps", "Steps", "how many", Int(1, 3), 9),)

        def parameters(self) -> tuple[ParamSpec, ...]:
            return self.specs

    def odd(*specs: ParamSpec) -> Descriptor:
        descriptor = script([])

        def build() -> Odd:
            made = Odd(lambda: descriptor, [], {})
            made.specs = specs
            return made

        return msgspec.structs.replace(descriptor, build=build)

    good = ParamSpec("steps", "Steps", "how many", Int(1, 3), 2)
    assert "legal defaults, saw Steps (steps): 9 is not between 1 and 3" in found(odd(Odd.specs[0]), "parameters")
    assert "each parameter key once" in found(odd(good, good), "parameters")
    assert "label, help and domain" in found(odd(msgspec.structs.replace(good, help="")), "parameters")
    wanting = msgspec.structs.replace(odd(good), threshold_params=(("floor", "rate"),))
    assert "every threshold parameter" in found(wanting, "parameters")


def test_unsound_descriptor_and_metadata_are_found() -> None:
    other = msgspec.structs.replace(script([]), name="Other")
    assert "to name the descriptor" in found(other, "descriptor")
    shared = Scripted(lambda: descriptor, [], {})
    descriptor = msgspec.structs.replace(script([]), build=lambda: shared)
    assert "a fresh object" in found(descriptor, "descriptor")

    class Silent(Scripted):
        def metadata(self) -> PluginMetadata:
            return PluginMetadata("", "1")

    silent = msgspec.structs.replace(script([]), build=lambda: Silent(lambda: descriptor, [], {}))
    assert "a description and a version" in found(silent, "metadata")


def test_failures_are_listed_by_case(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(subject: Subject) -> None:
        expect(subject.within_s == 0, "no time at all", subject.within_s)

    monkeypatch.setattr("nodeproof.runs.conformance.CASES", (Case("odd", "odd", check),))
    assert failures(Subject(script([]))) == {"odd": "expected no time at all, saw 60.0"}


def test_a_run_without_an_end_and_a_record_that_is_not_stored_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    hung = Subject(script([], build=lambda _: release.wait(10)), within_s=0.1, cancel_grace_s=0.1)
    with Rig(hung) as rig, pytest.raises(ConformanceError, match=r"expected an end within 0\.1 s"):
        rig.run()
    release.set()
    subject = Subject(script([]))
    with Rig(subject) as rig:
        monkeypatch.setattr(rig.store, "publish", lambda *_: _raise(OSError("disk full")))
        with pytest.raises(ConformanceError, match=r"expected a stored record, saw .*disk full"):
            rig.run()
