"""Starting, following and cancelling stress jobs over HTTP (stress.md 6.1), on a real server, with real jobs."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from nodeproof.model.job import Status
from nodeproof.stress.manager import Manager
from nodeproof.stress.settings import StressSettings
from nodeproof.web.backstage import Makers
from nodeproof.web.server import WebServer
from support.daemon import until
from support.http_client import Answer
from support.runs import Bench, script
from support.stress import make_manager, make_settings, run_job, write_dispatcher
from support.web import ACTION, ask, get, next_of, reader, serving

START = "/api/stress/runs"
SLOW = "echo begun; for i in $(seq 300); do sleep 0.1; echo on; done"


class Site:
    """A server with a manager of its own, and what is needed to make another manager on the same files."""

    def __init__(self, folder: Path, settings: StressSettings) -> None:
        self.folder = folder
        self.settings = settings
        self.manager = make_manager(settings)
        self.snapshots = folder / "snapshot"
        self.makers = Makers(lambda: self.manager, settings=lambda: settings)

    def other(self) -> Manager:
        """As a command in another process has it."""
        return make_manager(self.settings)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    script = write_dispatcher(tmp_path / "check.sh")
    return Site(tmp_path, msgspec.structs.replace(make_settings(tmp_path, script, names=("stream", "hpl")), web_enabled=True))


@pytest.fixture
def server(site: Site) -> Iterator[WebServer]:
    with serving(site.snapshots, makers=site.makers) as found:
        yield found


@pytest.fixture
def slow(site: Site) -> None:
    write_dispatcher(site.folder / "check.sh", run=SLOW)


def start(server: WebServer, order: object = None, **headers: str) -> Answer:
    return ask(server, "POST", START, {} if order is None else order, {**ACTION, **headers})


def job_of(answer: Answer) -> str:
    return str(json.loads(answer.body)["job_id"])


def ended(server: WebServer, job_id: str) -> Callable[[], bool]:
    return lambda: Status(json.loads(get(server, f"{START}/{job_id}").body)["status"]).is_final


def test_a_job_from_start_to_history(server: WebServer, site: Site) -> None:
    answer = start(server, {"benchmarks": ["stream"], "timeout_seconds": 5.0})
    first = json.loads(answer.body)
    assert ask(server, "POST", START, {"timeout_seconds": 1.5}, ACTION).status == 400
    assert (answer.status, first["status"], first["initiator"], first["cancellable"]) == (202, "running", "web", True)
    assert first["timeout_seconds"] == 5
    assert answer.headers["location"] == f"{START}/{first['job_id']}"
    until(ended(server, first["job_id"]), "the job's end")
    last = json.loads(get(server, "/api/stress/latest").body)
    assert (last["job_id"], last["status"]) == (first["job_id"], "healthy")
    assert last["benchmarks"][0]["values"]["triad_mb_s"] == 10000.0
    assert "cancellable" not in last
    until(lambda: len(json.loads(get(server, "/api/stress/history").body)) == 1, "the history")
    (entry,) = json.loads(get(server, "/api/stress/history?limit=1").body)
    assert entry["job_id"] == first["job_id"]
    assert "cancellable" not in entry
    assert site.manager.job(first["job_id"]).status is Status.HEALTHY
    (line,) = json.loads(get(server, "/api/stress/trends").body)
    assert (line["benchmark"], line["metric"], line["unit"]) == ("stream", "triad_mb_s", "MB/s")
    assert [(point["job_id"], point["value"]) for point in line["points"]] == [(first["job_id"], 10000.0)]


def test_two_jobs_are_compared_and_told_apart(server: WebServer, site: Site) -> None:
    first, second = (run_job(site.other(), "stream").job_id for _ in range(2))
    found = json.loads(get(server, f"/api/stress/compare?first={first}&second={second}").body)
    assert {row["metric"]: row["change"] for row in found["rows"]}["triad_mb_s"] == 0.0
    assert get(server, f"/api/stress/compare?first={first}").status == 400
    assert get(server, f"/api/stress/compare?first={first}&second=ff").status == 404


def test_the_config_view(server: WebServer) -> None:
    view = json.loads(get(server, "/api/stress/config").body)
    assert view["enabled"] is view["feature_enabled"] is view["web_enabled"] is view["loopback"] is view["shared_report"] is True
    assert view["default_benchmarks"] == ["stream"]
    assert [one["name"] for one in view["benchmarks"]] == sorted(one["name"] for one in view["benchmarks"])
    stream = next(one for one in view["benchmarks"] if one["name"] == "stream")
    assert (stream["enabled"], stream["available"], stream["timeout_seconds"]) == (True, True, 20)
    assert stream["profile"]["benchmark"] == "stream"


@pytest.mark.parametrize("path", ["/api/stress/latest", "/api/stress/runs/0123456789abcdef"])
def test_nothing_ran_yet(server: WebServer, path: str) -> None:
    assert get(server, path).status == 404
    assert json.loads(get(server, "/api/stress/live").body) == {"report": None, "live": None}
    assert json.loads(get(server, "/api/stress/trends").body) == []


@pytest.mark.parametrize("limit", ["0", "101", "-1", "10abc", "", "1e1", "9" * 30, "5&limit=6", "%00"])
def test_a_limit_that_is_none(server: WebServer, limit: str) -> None:
    """Defect of the reference: ``10abc`` counted as 10."""
    answer = get(server, f"/api/stress/history?limit={limit}")
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"Content-Type": "text/plain"}, 415, "unsupported media type"),
        ({"Content-Type": "application/jsonp"}, 415, "unsupported media type"),
        ({"X-Nodeproof-Action": "session"}, 403, "action header missing"),
        ({"X-Nodeproof-Action": ""}, 403, "action header missing"),
        ({"X-CATMonitor-Action": "other"}, 403, "action header missing"),
        ({"Origin": "http://evil.example"}, 403, "foreign origin"),
        ({"Origin": "null"}, 403, "foreign origin"),
        ({"Origin": "https://127.0.0.1:{port}"}, 403, "foreign origin"),
        ({"Origin": "http://127.0.0.1"}, 403, "foreign origin"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "cross-site request"),
        ({"Host": "evil.example"}, 421, "misdirected request"),
    ],
)
def test_what_was_not_meant_starts_nothing(
    server: WebServer, site: Site, changes: dict[str, str], status: int, error: str
) -> None:
    told = {name: text.replace("{port}", server.url.rsplit(":", 1)[1].strip("/")) for name, text in changes.items()}
    for path in (START, f"{START}/0123456789abcdef/cancel"):
        answer = ask(server, "POST", path, {}, {**ACTION, **told})
        assert (answer.status, json.loads(answer.body)["error"]) == (status, error)
    assert site.manager.latest() is None


def test_the_headers_of_the_reference_do(server: WebServer) -> None:
    origin = server.url.rstrip("/")
    headers = {"Content-Type": "application/json; charset=utf-8", "X-CATMonitor-Action": "stress", "Origin": origin}
    answer = ask(server, "POST", START, {}, headers)
    assert answer.status == 202
    until(ended(server, job_of(answer)), "the job's end")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"stream"',
        b"{} {}",
        b'{"benchmarks":"stream"}',
        b'{"benchmarks":[1]}',
        b'{"benchmarks":[""]}',
        b'{"timeout_seconds":-1}',
        b'{"timeout_seconds":1.5}',
        b'{"timeout_seconds":99999999999999999999}',
        b'{"timeout_seconds":"5"}',
        b'{"command":"rm"}',
        b'{"plan":"endless"}',
        b"\xff\xfe{}",
        b"[" * 30000,
        b'{"benchmarks":["mining"]}',
        b'{"benchmarks":["hpcg"]}',
        b'{"benchmarks":["stream"],"timeout_seconds":3600}',
    ],
    ids=lambda body: body[:40].decode("latin-1"),
)
def test_a_body_that_is_no_order(server: WebServer, site: Site, body: bytes) -> None:
    answer = ask(server, "POST", START, body, ACTION)
    assert answer.status == 400
    assert json.loads(answer.body)["error"]
    assert site.manager.latest() is None


def test_a_body_that_is_too_long(server: WebServer) -> None:
    padding = b" " * (64 * 1024 - 2)
    assert ask(server, "POST", START, b"[]" + padding, ACTION).status == 400
    assert ask(server, "POST", START, b"[] " + padding, ACTION).status == 413


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"enabled": False}, "stress jobs are disabled"),
        ({"web_enabled": False}, "the page may not start stress jobs"),
        ({"report_path": ""}, "there is no report path"),
    ],
)
def test_switches_are_the_servers_business(site: Site, settings: dict[str, object], error: str) -> None:
    """Defect of the reference: the page greyed the button, and a POST succeeded."""
    shut = Site(site.folder, msgspec.structs.replace(site.settings, **settings))
    with serving(site.snapshots, makers=shut.makers) as server:
        for path in (START, f"{START}/0123456789abcdef/cancel"):
            answer = ask(server, "POST", path, {}, ACTION)
            assert (answer.status, json.loads(answer.body)["error"]) == (403, error)
        assert json.loads(get(server, "/api/stress/config").body)["enabled"] is False


def test_a_server_without_stress_jobs(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert get(server, "/api/stress/latest").status == 503
        assert ask(server, "POST", START, {}, ACTION).status == 503
        assert get(server, "/api/doctor").status == 503


@pytest.mark.usefixtures("slow")
def test_whoever_comes_second_gets_the_job_that_runs(server: WebServer) -> None:
    answers: list[Answer] = []
    tabs = [threading.Thread(target=lambda: answers.append(start(server))) for _ in range(3)]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    assert sorted(answer.status for answer in answers) == [202, 409, 409]
    assert len({job_of(answer) for answer in answers}) == 1
    refused = next(answer for answer in answers if answer.status == 409)
    assert json.loads(refused.body)["status"] == "running"
    assert refused.headers["content-type"] == "application/json"
    job_id = job_of(refused)
    live = json.loads(get(server, "/api/stress/live").body)
    assert (live["report"]["job_id"], live["live"]["item"]) == (job_id, "stream")
    cancel = ask(server, "POST", f"{START}/{job_id}/cancel", b"anything", ACTION)
    assert (cancel.status, json.loads(cancel.body)) == (200, {"ok": True})
    until(ended(server, job_id), "the job's end")
    assert json.loads(get(server, f"{START}/{job_id}").body)["status"] == "cancelled"
    assert ask(server, "POST", f"{START}/{job_id}/cancel", {}, ACTION).status == 404
    acts = [(one["action"], one["status"]) for one in json.loads(get(server, "/api/audit").body)]
    assert sorted(acts) == sorted(
        [("stress.start", 102)] * 3
        + [("stress.start", 202), ("stress.start", 409), ("stress.start", 409)]
        + [("stress.cancel", 200), ("stress.cancel", 404)]
    )


@pytest.mark.usefixtures("slow")
def test_the_page_and_the_command_exclude_each_other(server: WebServer, site: Site) -> None:
    command = site.other()
    foreign = command.start(["stream"])
    answer = start(server)
    assert (answer.status, job_of(answer)) == (409, foreign.job_id)
    assert json.loads(answer.body)["cancellable"] is True
    assert ask(server, "POST", f"{START}/{foreign.job_id}/cancel", {}, ACTION).status == 200
    assert command.wait(foreign.job_id, 10.0) is not None
    own = job_of(start(server))
    command.cancel(own, "by the command")
    until(ended(server, own), "the job's end")
    last = json.loads(get(server, f"{START}/{own}").body)
    assert last["status"] == "cancelled"
    assert "by the command" in last["benchmarks"][0]["message"]


@pytest.mark.usefixtures("slow")
def test_the_event_stream_tells_how_a_job_gets_on(server: WebServer) -> None:
    with reader(server) as answer:
        assert next_of(answer, "stress") == {"report": None, "live": None}
        job_id = job_of(start(server))
        news = next_of(answer, "stress")
        while not (news["report"] and news["live"]):
            news = next_of(answer, "stress")
        assert (news["report"]["job_id"], news["report"]["status"], news["live"]["number"]) == (job_id, "running", 1)
        ask(server, "POST", f"{START}/{job_id}/cancel", {}, ACTION)
        while news["report"]["status"] == "running":
            news = next_of(answer, "stress")
        assert (news["report"]["status"], news["live"]) == ("cancelled", None)


@pytest.mark.usefixtures("slow")
def test_a_server_that_ends_takes_its_own_job_along_and_no_other(server: WebServer, site: Site) -> None:
    job_id = job_of(start(server))
    server.stop()
    assert site.other().job(job_id).status is Status.CANCELLED
    command = site.other()
    foreign = command.start(["stream"])
    with serving(site.snapshots, makers=site.makers) as again:
        assert get(again, "/api/stress/latest").status == 200
    assert command.live() is not None
    command.cancel(foreign.job_id)
    assert command.wait(foreign.job_id, 10.0) is not None


def test_five_starts_a_minute(server: WebServer) -> None:
    statuses = [start(server, {"benchmarks": ["mining"]}).status for _ in range(7)]
    assert statuses == [400, 400, 400, 400, 400, 429, 429]
    answer = start(server)
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert "starts a minute" in json.loads(answer.body)["detail"]


def test_without_an_audit_log_nothing_is_started(server: WebServer, site: Site) -> None:
    os.makedirs(os.path.join(site.settings.state_root, "web-audit.jsonl"))
    answer = start(server)
    assert answer.status == 400
    assert "web-audit.jsonl" in json.loads(answer.body)["detail"]
    assert site.manager.latest() is None


def test_records_of_runs(server: WebServer, site: Site) -> None:
    first, second = (run_job(site.other(), "stream").benchmarks[0].run_id for _ in range(2))
    listed = json.loads(get(server, "/api/runs?benchmark=stream").body)
    assert [one["run_id"] for one in listed["runs"]] == [second, first]
    assert listed["going_on"] == []
    assert json.loads(get(server, "/api/runs?benchmark=hpl").body)["runs"] == []
    view = json.loads(get(server, f"/api/runs/{first}").body)
    assert (view["going_on"], view["problems"], view["record"]["status"]) == (False, [], "completed")
    name = view["files"][0]["name"]
    file = get(server, f"/api/runs/{first}/files/{name}")
    assert len(file.body) == view["files"][0]["bytes"]
    assert file.headers["content-type"] == "application/octet-stream"
    assert file.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert get(server, f"/api/runs/{first}/files/{name}", method="HEAD").body == b""
    said = json.loads(get(server, f"/api/runs/{first}/messages?limit=3").body)
    assert [one["sequence"] for one in said["messages"]] == [1, 2, 3]
    more = json.loads(get(server, f"/api/runs/{first}/messages?after={said['next']}").body)
    assert more["messages"][0]["sequence"] == 4
    assert [one["frame"]["status"] for one in more["messages"] if "frame" in one][-1] == "completed"
    both = json.loads(get(server, f"/api/runs/compare?first={first}&second={second}").body)
    assert {one["key"]: one["change"] for one in both["metrics"]}["triad_mb_s"] == 0.0
    assert both["comparable"] is False
    assert "was not seen to be fit" in both["reasons"][0]


def test_runs_are_found_by_the_reference_s_name_of_their_benchmark(server: WebServer, site: Site) -> None:
    ran = Bench(Path(site.settings.state_root)).run(msgspec.structs.replace(script([]), id="quick-speed"))
    listed = json.loads(get(server, "/api/runs?benchmark=quick-speed-bench").body)
    assert [one["run_id"] for one in listed["runs"]] == [ran.record.run_id]
    assert json.loads(get(server, "/api/runs?benchmark=ttft-warm-gate").body)["runs"] == []


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/run-1",
        "/api/runs/run-1/messages",
        "/api/runs/run-1/files/x",
        "/api/runs/compare?first=run-1&second=run-2",
    ],
)
def test_a_run_that_is_not_there(server: WebServer, path: str) -> None:
    assert get(server, path).status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/..%2f..%2fetc",
        "/api/runs/run-1/files/..%2f..%2frecord.json",
        "/api/runs/run-1/files/.hidden",
        "/api/runs/run-1/files/a%00b",
        "/api/runs/run-1/files/a%0d%0aSet-Cookie:x",
        "/api/stress/runs/..%2f..",
        "/api/stress/runs/ABC",
        "/api/stress/runs/%0a",
        "/api/runs?benchmark=../x",
        "/api/runs?limit=0",
        "/api/runs/run-1/messages?after=-1",
    ],
)
def test_ids_that_are_none(server: WebServer, path: str) -> None:
    answer = get(server, path)
    assert answer.status == (400 if "?" in path else 404)
    assert "set-cookie" not in answer.headers


def test_a_file_that_was_changed_is_not_handed_out(server: WebServer, site: Site) -> None:
    run_id = run_job(site.other(), "stream").benchmarks[0].run_id
    place = Path(site.other().runs.place(run_id))
    name = json.loads(get(server, f"/api/runs/{run_id}").body)["files"][0]["name"]
    os.chmod(place / "files" / name, 0o600)
    with open(place / "files" / name, "ab") as file:
        file.write(b"x")
    answer = get(server, f"/api/runs/{run_id}/files/{name}")
    assert answer.status == 404
    assert "was changed" in json.loads(answer.body)["detail"]
    (problem,) = json.loads(get(server, f"/api/runs/{run_id}").body)["problems"]
    assert name in problem


@pytest.mark.usefixtures("slow")
def test_a_run_that_is_going_on(server: WebServer) -> None:
    job_id = job_of(start(server))
    until(lambda: json.loads(get(server, "/api/runs").body)["going_on"] != [], "an open run")
    (head,) = json.loads(get(server, "/api/runs").body)["going_on"]
    assert (head["benchmark_id"], head["source"]) == ("stream", "web")
    view = json.loads(get(server, f"/api/runs/{head['run_id']}").body)
    assert view["going_on"] is True
    said = json.loads(get(server, f"/api/runs/{head['run_id']}/messages").body)
    assert said["going_on"] is True
    assert said["messages"][0]["sequence"] == 1
    ask(server, "POST", f"{START}/{job_id}/cancel", {}, ACTION)
    until(ended(server, job_id), "the job's end")
