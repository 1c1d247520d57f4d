"""Where the server listens and where it refuses to; the configuration and command line that lead there."""

import argparse
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
import warnings
from pathlib import Path

import pytest

from nodeproof.cli.page import Page
from nodeproof.config.loader import load
from nodeproof.config.resolve import defaults
from nodeproof.config.schema import Config, WebConfig
from nodeproof.errors import AddressInUseError, ConfigError, UsageError
from nodeproof.web.server import WebServer
from support.daemon import environment, free_port
from support.web import Written, address, get, serving


@pytest.mark.parametrize("where", ["0.0.0.0:9527", ":9527", "192.0.2.1:9527", "[::]:9527", "unix:/tmp/x"])
def test_nowhere_that_others_can_reach(tmp_path: Path, where: str) -> None:
    with pytest.raises(UsageError, match=r"web\.(token_file|address)"):
        WebServer(str(tmp_path), WebConfig(address=where))


def test_a_taken_port_names_its_holder(tmp_path: Path) -> None:
    """The reference moved on to the next free port without a word."""
    with serving(tmp_path) as server, pytest.raises(AddressInUseError, match=rf"\(pid {os.getpid()}\).*web\.address"):
        WebServer(str(tmp_path), WebConfig(address=f"127.0.0.1:{address(server)[1]}"))


def test_the_configuration_refuses_other_addresses(tmp_path: Path) -> None:
    file = tmp_path / "nodeproof.yaml"
    file.write_text("web: {address: '0.0.0.0:9527'}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"web\.address.*ssh -L"):
        load(str(file), {"HOME": str(tmp_path)})
    file.write_text("web: {enabled: false, address: '[::1]:9000', allowed_hosts: [node1]}\n", encoding="utf-8")
    assert load(str(file), {"HOME": str(tmp_path)}).web == WebConfig(False, "[::1]:9000", ("node1",))


def _options() -> argparse.Namespace:
    return argparse.Namespace(environ=dict(os.environ), config=None, root="/")


def _config(folder: Path, web: WebConfig, *, snapshots: bool = True) -> Config:
    import msgspec  # noqa: PLC0415 - for this helper alone

    plain = defaults({"HOME": str(folder)})
    snapshot = msgspec.structs.replace(plain.snapshot, dir=str(folder), enabled=snapshots)
    return msgspec.structs.replace(plain, web=web, snapshot=snapshot)


def test_the_page_beside_a_daemon_stays_through_reloads(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    page = Page(_options())
    web = WebConfig(address=f"127.0.0.1:{free_port()}")
    try:
        page.follow(_config(tmp_path, web))
        page.follow(_config(tmp_path, web))
        assert caplog.messages == []
        page.follow(_config(tmp_path, WebConfig(enabled=False)))
        assert caplog.messages == ["web and snapshot.dir of the page take effect with the next start"]
        with urllib.request.urlopen(page.url) as answer:  # noqa: S310 - our own address
            assert answer.status == 200
    finally:
        page.close()


def test_no_page_where_none_is_wanted_or_possible(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    off, blind = Page(_options()), Page(_options())
    off.follow(_config(tmp_path, WebConfig(enabled=False)))
    blind.follow(_config(tmp_path, WebConfig(), snapshots=False))
    assert (off.url, blind.url) == ("", "")
    assert caplog.messages == ["no page: it is made of snapshots, and snapshot.enabled is false"]
    off.close()


def test_nodeproof_web_serves_alone_and_ends_in_good_order(tmp_path: Path) -> None:
    written = Written(tmp_path / "snapshot")
    written.write()
    where = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "nodeproof", "web", "-c", "/dev/null", "-addr", where, "-snapshot-dir", str(written.folder)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"Serving the snapshots in {written.folder} at http://{where}/. Ctrl-C ends.\n"
        with urllib.request.urlopen(f"http://{where}/api/config") as answer:
            assert answer.read() == b'{"refresh_interval_ms":1000,"history_points":60}'
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    written.close()


def test_an_error_of_our_own_is_a_problem_without_inner_parts(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.feed.look = None  # type: ignore[method-assign,assignment]  # something that breaks
        answer = get(server, "/api/snapshot")
    assert answer.status == 500
    assert b"TypeError" in answer.body
    assert b"Traceback" not in answer.body


@pytest.mark.parametrize("turn", range(3))
def test_a_client_that_comes_in_the_turn_of_the_end_loses_no_socket(tmp_path: Path, turn: int) -> None:
    """asyncio gave it no transport, and its socket stayed open until somebody collected it: a warning in another test."""
    with warnings.catch_warnings(record=True) as told, serving(tmp_path / str(turn)) as server:
        warnings.simplefilter("always")
        loop, held = server._loop, threading.Event()
        assert loop is not None
        loop.call_soon_threadsafe(held.wait, 10.0)
        with socket.create_connection(address(server)):
            loop.call_soon_threadsafe(server._stop.set)  # as stop() does; the loop finds both at once
            held.set()
            server.stop()
        gc.collect()
    assert [str(one.message) for one in told if "unclosed" in str(one.message)] == []
