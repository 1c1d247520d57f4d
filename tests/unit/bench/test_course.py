"""Benchmarks that go a course of steps keep the contract of the executor, and say what they lack."""

import json
from collections.abc import Iterator

import pytest

from nodeproof.bench.benchmarks import DESCRIPTORS
from nodeproof.bench.course import Course, slug
from nodeproof.bench.testing import Model, ScriptServer
from nodeproof.errors import RunError
from nodeproof.runs.conformance import CASES, Case, Subject
from nodeproof.runs.endpoint import TargetEndpoint

_COURSES = ("agentic", "chaos", "mlperf-agentic", "serve-matrix", "soak", "video", "vision")


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    """The quickest of them, with a server."""
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    messages = [{"role": "user", "content": "list"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    data = tmp_path_factory.mktemp("data") / "sessions.jsonl"
    data.write_text(json.dumps({"id": "a", "kind": "coding", "messages": messages}), encoding="utf-8")
    descriptor = next(one for one in DESCRIPTORS if one.id == "mlperf-agentic")
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0)) as server:
        target = TargetEndpoint.new(server.url, "m")
        yield Subject(descriptor, overrides={"dataset": str(data)}, target=target, within_s=15.0, cancel_grace_s=1.0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_course_keeps_the_contract(subject: Subject, case: Case) -> None:
    case.check(subject)


@pytest.mark.parametrize("name", _COURSES)
def test_what_every_course_says_of_itself(name: str) -> None:
    descriptor = next(one for one in DESCRIPTORS if one.id == name)
    benchmark = descriptor.build()
    assert isinstance(benchmark, Course)
    assert benchmark.descriptor() is descriptor
    assert benchmark.metadata().official
    keys = [spec.key for spec in benchmark.parameters()]
    assert len(set(keys)) == len(keys)
    assert all(spec.parse(spec_text(spec.default)) == spec.default for spec in benchmark.parameters())
    with pytest.raises(RunError, match=r"next\(\) before"):
        benchmark.next()
    benchmark.cleanup()


def spec_text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def test_names_become_parts_of_file_names() -> None:
    assert slug("Qwen/Qwen3-8B (FP8)") == "qwen-qwen3-8b-fp8"
    assert slug("../..") == "unnamed"
    assert len(slug("x" * 500)) == 64
