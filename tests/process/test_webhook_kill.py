"""Sender and receiver are killed between send and acknowledgement; a thousand events are counted by their ids."""

import random
import subprocess
import sys
import time
import urllib.request
from functools import partial
from pathlib import Path

import msgspec
import pytest

from nodeproof.faults.journal import read_journal
from support.daemon import free_port, until
from support.webhooks import SENDER, Receiver

_EVENTS = 1000


@pytest.mark.timeout(90)
def test_a_thousand_events_none_lost_none_doubled_unmarked(tmp_path: Path) -> None:
    chance = random.Random(20261201)  # noqa: S311 - chance, not secrecy
    port, hook = free_port(), free_port()
    store = tmp_path / "faults"
    receiver = Receiver(hook, tmp_path / "received")
    receiver.start()

    def send() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", SENDER, str(store), str(port), str(_EVENTS)])

    # The first sender has nothing to send before there is a subscriber.
    sender = subprocess.Popen([sys.executable, "-c", SENDER, str(store), str(port), "0"])
    until(lambda: _subscribed(port, hook), "a subscription")
    sender.kill()
    sender.wait()
    kills = 0
    sender = send()
    while (count := len(receiver.deliveries())) < _EVENTS:
        more = min(_EVENTS, count + chance.randrange(5, 80))
        until(partial(receiver.has, more), f"{more} deliveries", 30.0)
        time.sleep(chance.uniform(0.0, 0.01))
        kills += 1
        if kills % 3:
            sender.kill()
            sender.wait()
            sender = send()
        else:
            receiver.kill()
            receiver.start()
    until(lambda: len({one for one, _ in receiver.deliveries()}) == _EVENTS, "all of them", 30.0)
    sender.kill()
    sender.wait()
    receiver.kill()
    arrived = receiver.deliveries()
    ids = [one for one, _ in arrived]
    assert [event.event_id for event in read_journal(str(store))] == list(dict.fromkeys(ids)), "all of them, in order"
    assert len(set(ids)) == _EVENTS
    seen: set[str] = set()
    doubled = 0
    for event_id, marked in arrived:
        if event_id in seen:
            doubled += 1
            assert marked, f"{event_id} came again without a mark"
        seen.add(event_id)
    assert kills >= 12
    assert doubled <= kills


def _subscribed(port: int, hook: int) -> bool:
    body = msgspec.json.encode({"endpoint": f"http://127.0.0.1:{hook}/"})
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/faultsub/subscriptions", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=2.0) as answer:  # noqa: S310 - loopback
            return bool(answer.status == 201)
    except OSError:
        return False
