"""The receiver of docs/subscriptions.md does what it says."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeproof.faults.delivery import Network
from nodeproof.faults.signing import signature
from nodeproof.host.webhook_client import Target, post
from nodeproof.model.fault import Change
from support.daemon import free_port, until
from support.documents import ROOT, blocks
from support.webhooks import Office, fault_event

_SECRET = "the secret of this test"  # noqa: S105 - of nobody


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    (block,) = [one for one in blocks(ROOT / "docs" / "subscriptions.md") if one.info == "python receiver"]
    script, heard, port = tmp_path / "receiver.py", tmp_path / "heard", free_port()
    script.write_text(block.text, encoding="utf-8")
    with heard.open("wb") as out:
        process = subprocess.Popen([sys.executable, str(script), str(port), _SECRET], stdout=out)
    yield port, heard
    process.kill()
    process.wait()


def test_it_takes_what_is_signed_once_and_nothing_else(receiver: tuple[int, Path], tmp_path: Path) -> None:
    port, heard = receiver
    office = Office(tmp_path / "faults", Network(), allow=["127.0.0.1"])  # type: ignore[arg-type]
    office.clock.wall_s = time.time()
    office.deliverer.pause = lambda ended, seconds: threading.Event.wait(ended, seconds / 20)
    office.deliverer.start()
    office.subscribe(f"http://127.0.0.1:{port}/", secret=_SECRET)
    office.happen(fault_event(1), fault_event(2, change=Change.CLEARED))
    office.close()
    until(lambda: heard.read_text().splitlines() == ["card_drop on npu_id=3: critical", "card_drop on npu_id=3: is over"], "both")
    target = Target(False, "127.0.0.1", port, "/")
    body = b'{"event_id": "' + b"%032x" % 1 + b'"}'
    now = str(int(time.time()))
    headers = {"X-Nodeproof-Timestamp": now, "X-Nodeproof-Signature": signature(b"another", now, body)}
    assert post(target, "127.0.0.1", headers, body, 5.0).status == 403
    old = str(int(time.time()) - 3600)
    headers = {"X-Nodeproof-Timestamp": old, "X-Nodeproof-Signature": signature(_SECRET.encode(), old, body)}
    assert post(target, "127.0.0.1", headers, body, 5.0).status == 403
    headers = {"X-Nodeproof-Timestamp": now, "X-Nodeproof-Signature": signature(_SECRET.encode(), now, body)}
    assert post(target, "127.0.0.1", headers, body, 5.0).status == 204
    assert len(heard.read_text().splitlines()) == 2
