"""Models that act, in a real sandbox: good ones, lazy ones, greedy ones, and endpoints that know no tools."""

import json
from collections import Counter
from pathlib import Path

import pytest

from nodeproof.bench.agentic.score import STEPS, judge_steps
from nodeproof.bench.agentic.tools import TOOLS, Act, Workbench
from nodeproof.bench.agentic.trajectories import commands_of, iou, read_trajectories
from nodeproof.bench.benchmarks import DESCRIPTORS
from nodeproof.bench.exchange import ToolCall
from nodeproof.bench.testing import End, Model, Received, Rules, Script, ScriptServer
from nodeproof.bench.testing.model import document
from nodeproof.errors import ParamError, RunError
from nodeproof.host.sandbox import Sandbox, SandboxError
from nodeproof.runs.params import ParamValues
from support.acting import Acting, Plan, call, good_plan, tool_stream
from support.bench_course import Outcome, run

pytestmark = pytest.mark.timeout(90)
_QUICK = {"iterations": "1", "serve_timeout_s": "5", "command_timeout_s": "10", "memory_mib": "1024"}


def _agentic(tmp_path: Path, model: Model | Rules, absent_here: list[str], **params: str) -> Outcome:
    with ScriptServer(model) as server:
        outcome = run(tmp_path, server.url, "agentic", **{**_QUICK, **params})
    if "this machine cannot be shut out" in outcome.reason:
        absent_here.append("namespaces: what models write was not run")
        pytest.skip(outcome.reason)
    return outcome


def test_who_does_all_that_is_asked_passes(tmp_path: Path, absent_here: list[str]) -> None:
    outcome = _agentic(tmp_path, Acting(good_plan()), absent_here, iterations="2")
    assert outcome.kind == "pass", outcome.reason
    assert outcome.reason.startswith("2 of 2 servers serve, by all steps, in ")
    metrics = outcome.metrics
    assert (metrics["webserver_ok"], metrics["process_ok"], metrics["turns"], metrics["tool_calls"]) == (2, 2, 10, 14)
    assert all(metrics[f"step_{name}"] == 2 for name in STEPS)
    kept = json.loads((outcome.files / "iteration-0.json").read_bytes())
    assert kept["outcome"]["served"] is True
    assert kept["acts"][4]["command"] == "bash test.sh"
    assert "pong" in kept["acts"][5]["shown"]


def test_who_only_writes_fails_by_the_steps_that_lack(tmp_path: Path, absent_here: list[str]) -> None:
    lazy: Plan = [good_plan()[0], "Done."]
    outcome = _agentic(tmp_path, Acting(lazy), absent_here)
    assert outcome.kind == "fail"
    assert outcome.reason == "1 of 1 iterations: iteration 0 lacks ran_tests, ran_server, curled, tore_down"
    assert outcome.metrics["webserver_ok"] == 1


def test_a_server_that_answers_otherwise_fails(tmp_path: Path, absent_here: list[str]) -> None:
    plan = good_plan()
    files = plan[0]
    assert isinstance(files, list)
    files[0] = call("write_file", path="server.py", content=files[0][1]["content"].replace("pong", "bang"))
    outcome = _agentic(tmp_path, Acting(plan), absent_here)
    assert outcome.kind == "fail"
    assert "/ping is answered with status 200 and b'bang' where 200 and pong are wanted" in outcome.reason


def test_what_goes_on_running_is_no_end(tmp_path: Path, absent_here: list[str]) -> None:
    plan = good_plan()
    plan[2] = [call("bash", command="PORT=18080 bash run.sh > server.log 2>&1 &\nsleep 0.5; python3 ask.py # curl /ping")]
    outcome = _agentic(tmp_path, Acting(plan), absent_here)
    assert outcome.reason == "1 of 1 iterations: iteration 0 lacks tore_down"


def test_who_says_something_and_does_nothing_fails(tmp_path: Path, absent_here: list[str]) -> None:
    outcome = _agentic(tmp_path, Acting(["I would write a server."]), absent_here)
    assert outcome.kind == "fail"
    assert "iteration 0 lacks webserver_ok (there is no run.sh), wrote_project" in outcome.reason


def test_endless_turns_have_an_end(tmp_path: Path, absent_here: list[str]) -> None:
    outcome = _agentic(tmp_path, Acting([[call("bash", command="echo again")]]), absent_here, max_turns="3")
    assert outcome.kind == "fail"
    assert (outcome.metrics["turns"], outcome.metrics["tool_calls"]) == (3, 3)


def test_who_takes_all_memory_loses_the_iteration(tmp_path: Path, absent_here: list[str]) -> None:
    greedy = "for n in 1 2 3 4; do python3 -c 'x = bytearray(100 << 20); import time; time.sleep(20)' & done; wait"
    outcome = _agentic(tmp_path, Acting([[call("bash", command=greedy)], "Done."]), absent_here, memory_mib="256")
    assert outcome.kind == "fail"
    assert "MiB of memory, limit 256 MiB; all of it was ended" in outcome.reason


def test_a_budget_that_is_spent_fails(tmp_path: Path, absent_here: list[str]) -> None:
    outcome = _agentic(tmp_path, Acting(good_plan()), absent_here, iterations="50", wall_budget_s="1")
    assert outcome.kind == "fail"
    assert "limit 1 s" in outcome.reason or "lacks" in outcome.reason


def test_an_endpoint_without_tools_is_unmeasured(tmp_path: Path, absent_here: list[str]) -> None:
    def no_tools(request: Received) -> Script | None:
        return document({"error": {"message": "tools are not supported"}}, status=400) if b'"tools"' in request.body else None

    outcome = _agentic(tmp_path, Rules(Model(ttft_s=0.0, tpot_s=0.0), no_tools), absent_here)
    assert outcome.kind == "inconclusive"
    assert outcome.reason.startswith("unmeasured: the endpoint takes no tools (status: status 400")


def test_answers_that_are_cut_leave_it_open(tmp_path: Path, absent_here: list[str]) -> None:
    turns: list[int] = []

    def cut(request: Received) -> Script | None:
        if b'"tools"' in request.body:
            turns.append(request.number)
            return Script(end=End.CLOSE) if len(turns) in {3, 4} else None  # the client tries a kept connection twice
        return None

    outcome = _agentic(tmp_path, Rules(Acting(good_plan()), cut), absent_here, iterations="2")
    assert outcome.kind == "inconclusive"
    assert outcome.reason.startswith("1 of 2 iterations are unmeasured: iteration 0: ")
    assert (outcome.metrics["unmeasured"], outcome.metrics["webserver_ok"]) == (1, 1)


def test_an_endpoint_that_answers_nothing_plain(tmp_path: Path, absent_here: list[str]) -> None:
    outcome = _agentic(tmp_path, Rules(Model(), lambda _: Script(status=503)), absent_here)
    assert outcome.kind == "inconclusive"
    assert outcome.reason.startswith("vacuous: the endpoint does not answer a plain question (status")


def test_nothing_is_run_where_the_machine_cannot_be_shut_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Sandbox:
        raise SandboxError("this machine cannot be shut out: unshare: Operation not permitted; run as root")

    monkeypatch.setattr(Sandbox, "start", refuse)
    with ScriptServer(Acting(good_plan())) as server:
        outcome = run(tmp_path, server.url, "agentic", **_QUICK)
    assert (str(outcome.record.status), outcome.record.exit_code) == ("failed", 1)
    assert outcome.reason.startswith("this machine cannot be shut out: ")


def test_whoever_runs_what_models_write_asks_first() -> None:
    by = {one.id: one for one in DESCRIPTORS}
    assert by["agentic"].needs_confirmation
    assert by["serve-matrix"].needs_confirmation
    assert by["chaos"].needs_confirmation
    assert by["agentic"].aliases == ("agentic-webserver",)
    assert by["mlperf-agentic"].aliases == ("mlperf-agentic-subset",)


# Steps and tools


def test_steps_need_their_evidence() -> None:
    acts = [
        Act("bash", "bash test.sh", exit_code=1),
        Act("bash", "PORT=1 bash run.sh &"),
        Act("bash", "curl -s localhost:1/ping", exit_code=7),
    ]
    steps = judge_steps(acts, {"run.sh": 9, "test.sh": 0}, 0)
    assert steps == {
        "wrote_project": True,
        "wrote_tests": False,  # an empty file is none
        "ran_tests": False,  # they did not pass
        "ran_server": True,
        "curled": False,  # nobody answered
        "tore_down": True,
    }
    assert not judge_steps([], {}, 0)["tore_down"]  # what never ran cannot be stopped


def test_calls_that_cannot_be_carried_out_are_told() -> None:
    class Broken:
        def read(self, path: str, limit: int) -> bytes:
            raise OSError(f"{path}: No such file or directory ({limit} bytes)")

    bench = Workbench(Broken(), 1.0)  # type: ignore[arg-type]  # only what is called
    assert bench.call("bash", "{").startswith("error: the arguments are no JSON object")
    assert bench.call("bash", '{"command": " "}') == "error: command is empty"
    assert bench.call("fly", "{}") == "error: there is no tool 'fly'; there are bash, read_file, write_file"
    assert bench.call("read_file", '{"path": "x"}') == "error: x: No such file or directory (16384 bytes)"
    assert [act.tool for act in bench.acts] == ["bash", "bash", "fly", "read_file"]
    assert all("function" in tool for tool in TOOLS)


# Recorded sessions


def _tool_call(name: str, **arguments: str) -> dict[str, object]:
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _dataset(tmp_path: Path) -> Path:
    coding = [
        {"role": "user", "content": "list"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [_tool_call("bash", command="ls -l"), _tool_call("bash", command="pwd")],
        },
        {"role": "tool", "tool_call_id": "c", "content": "a"},
        {"role": "assistant", "content": "done"},
    ]
    workflow = [
        {"role": "user", "content": "refund me"},
        {"role": "assistant", "content": "", "intent": "REFUND-7", "tool_calls": []},
        {"role": "user", "content": "and close"},
        {"role": "assistant", "content": "", "tool_calls": [_tool_call("close_case", id="3")]},
    ]
    tools = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
    lines = [
        {"id": "a", "kind": "coding", "messages": coding, "tools": tools},
        {"id": "b", "kind": "workflow", "messages": workflow, "tools": tools},
    ]
    path = tmp_path / "sessions.jsonl"
    path.write_text("\n\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return path


def _agent(request: Received) -> Script | None:
    messages = request.json().get("messages")
    assert isinstance(messages, list)
    last = str(messages[-1]["content"])
    if last == "list":
        return tool_stream([call("bash", command="ls  -l"), call("bash", command="whoami")])
    if last == "and close":
        return tool_stream([call("close_case", id="9")])
    return None


class _Intents(Model):
    """Answers with the code of an intent."""

    def __init__(self, code: str) -> None:
        super().__init__(ttft_s=0.0, tpot_s=0.0, answers={"refund": code})


def test_turns_are_predicted_and_compared(tmp_path: Path) -> None:
    path = _dataset(tmp_path)
    with ScriptServer(Rules(_Intents("REFUND-7"), _agent)) as server:
        outcome = run(tmp_path, server.url, "mlperf-agentic", dataset=str(path))
        sent = [served.request.json() for served in server.served if served.request.method == "POST"]
    assert outcome.kind == "info", outcome.reason
    metrics = outcome.metrics
    assert metrics["coding_command_iou_pct"] == pytest.approx(100 / 3)  # one of three different commands is shared
    assert metrics["workflow_intent_match_pct"] == 100
    assert metrics["score_pct"] == pytest.approx((1 / 3 + 1 + 1) / 3 * 100)
    assert (metrics["turns"], metrics["sessions"], metrics["failed"]) == (3, 2, 0)
    fields = {key: sent[0][key] for key in ("temperature", "top_k", "top_p", "repetition_penalty", "presence_penalty", "seed")}
    assert fields == {
        "temperature": 1.0, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.0, "presence_penalty": 1.5, "seed": 42,
    }  # fmt: skip
    assert sent[0]["max_tokens"] == 8192
    # What was recorded is what is shown, not what was answered now.
    second = next(one for one in sent if len(one["messages"]) == 3)  # type: ignore[arg-type]  # a list
    assert "intent" not in second["messages"][1]  # type: ignore[index]  # as above
    fingerprint = outcome.record.frame.dataset_fingerprint
    assert fingerprint is not None
    assert fingerprint.startswith("file-sha256:")
    assert ";draw-sha256:" in fingerprint
    assert outcome.record.provenance[0].name == "dataset"


@pytest.mark.parametrize(("floor", "kind"), [("70", "pass"), ("90", "fail")])
def test_a_floor_makes_a_judgement(tmp_path: Path, floor: str, kind: str) -> None:
    path = _dataset(tmp_path)
    with ScriptServer(Rules(_Intents("REFUND-7"), _agent)) as server:
        outcome = run(tmp_path, server.url, "mlperf-agentic", dataset=str(path), min_score_pct=floor)
    assert outcome.kind == kind, outcome.reason


def test_a_request_that_failed_counts_as_nothing_and_leaves_a_floor_open(tmp_path: Path) -> None:
    path = _dataset(tmp_path)

    def cut(request: Received) -> Script | None:
        return Script(end=End.CLOSE) if b"and close" in request.body else _agent(request)

    with ScriptServer(Rules(_Intents("REFUND-7"), cut)) as server:
        outcome = run(tmp_path, server.url, "mlperf-agentic", dataset=str(path), min_score_pct="60")
        told = run(tmp_path, server.url, "mlperf-agentic", dataset=str(path))
    assert outcome.kind == "inconclusive"
    assert outcome.metrics["score_pct"] == pytest.approx((1 / 3 + 1) / 3 * 100)
    assert told.kind == "info"
    assert "1 of them unanswered (counted as 0)" in told.reason


def test_empty_answers_prove_nothing(tmp_path: Path) -> None:
    path = _dataset(tmp_path)
    thought = b'data: {"choices":[{"delta":{"reasoning":"hm"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    def nothing(_: Received) -> Script | None:
        from nodeproof.bench.testing import Step  # noqa: PLC0415 - used once

        return Script(steps=[Step(0.0, thought)])

    with ScriptServer(Rules(Model(), nothing)) as server:
        outcome = run(tmp_path, server.url, "mlperf-agentic", dataset=str(path))
    assert (outcome.kind, outcome.reason) == ("inconclusive", "vacuous: all 3 answers are empty")


def test_no_answers_prove_nothing(tmp_path: Path) -> None:
    path = _dataset(tmp_path)
    with ScriptServer(Rules(Model(), lambda _: Script(status=503))) as server:
        outcome = run(tmp_path, server.url, "mlperf-agentic", dataset=str(path))
    assert outcome.kind == "inconclusive"
    assert outcome.reason.startswith("no turn of 3 was answered: status")


def test_there_is_nothing_to_replay_without_data() -> None:
    benchmark = next(one for one in DESCRIPTORS if one.id == "mlperf-agentic").build()
    with pytest.raises(ParamError, match="give a file of yours, dataset=FILE"):
        benchmark.configure(ParamValues.defaults(benchmark.parameters()))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "line 1: no recorded session"),
        (b'\n{"id": "a", "kind": "dance", "messages": []}', "line 2: kind 'dance' is none of workflow, coding"),
        (b'{"id": "a", "kind": "coding", "messages": [{"role": "user", "content": "x"}]}', "nothing to predict"),
        (b"", "nothing to predict"),
    ],
)
def test_files_that_are_no_recording(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(RunError, match=problem):
        read_trajectories(str(path))
    with pytest.raises(RunError, match="No such file"):
        read_trajectories(str(tmp_path / "none"))


def test_draws_take_both_kinds_in_turn(tmp_path: Path) -> None:
    data = read_trajectories(str(_dataset(tmp_path)))
    drawn = data.draw(2)
    assert [turn.kind for turn in drawn.turns] == ["workflow", "coding"]
    assert drawn.fingerprint != data.fingerprint
    assert data.draw(0) is data


def test_what_multisets_share() -> None:
    assert iou(Counter(["a", "b"]), Counter(["a", "a"])) == pytest.approx(1 / 3)
    assert iou(Counter(), Counter()) == 0
    odd = ToolCall()
    odd.name, odd.arguments = "bash", "{"
    assert commands_of([odd]) == Counter()
