"""``nodeproof bench``: what is asked wrongly, and lists."""

import json
from pathlib import Path

import pytest

from nodeproof.cli.main import main


def test_what_is_asked_wrongly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = ("--url", "http://127.0.0.1:9", "--model", "m")
    for arguments, problem in (
        (("run", "nothing", *url), "there is no benchmark 'nothing'"),
        (("run", "load"), "give --url and --model"),
        (("run", "load", "--url", "http://127.0.0.1:9"), "belong together"),
        (("run", "load", *url, "--param", "rate"), "expected KEY=VALUE"),
        (("run", "load", *url, "--param", "rate=many"), "Rate (rate): 'many' is no number"),
        (("run", "load", *url, "--api-key-env", "NOT_SET"), "this variable is not set"),
        (("run", "load", *url, "--api-key-file", str(tmp_path / "none")), "No such file"),
        (("run", "load", "--url", "http://u:sk-planted@h", "--model", "m"), "do not belong into an address"),
        (("run", "load", *url, "--serve-override", "api_key=sk-planted"), "every record would hold it in clear"),
        (("run", "load", *url, "--timeout", "soon"), "--timeout"),
        (("show", "run-1"), "there is no run run-1"),
        (("history", "--limit", "0"), "expected 1 or more"),
    ):
        assert main(["bench", *arguments], {"HOME": str(tmp_path)}) in {1, 2}, arguments
        told = capsys.readouterr()
        assert problem in told.err, told.err
        assert "sk-planted" not in told.err
        assert told.out == ""


def test_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*arguments: str) -> str:
        assert main(["bench", *arguments], {"HOME": str(tmp_path)}) == 0
        return capsys.readouterr().out

    listed = json.loads(told("list", "--format", "json"))
    assert {"load", "goodput-search", "stream"} <= {entry["id"] for entry in listed}
    one = json.loads(told("list", "load", "-o", "json"))
    assert {"key", "label", "help", "default", "domain"} == set(one["parameters"][0])
    assert "goodput-search" in told("list", "--format", "text")
    assert "slo_ttft_ms" in told("list", "load", "-o", "table")
