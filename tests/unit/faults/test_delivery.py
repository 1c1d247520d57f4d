"""Each event at least once, in order, marked when it may come a second time; never to where it must not go."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import WriteError
from nodeproof.faults import delivery
from nodeproof.faults.dead_letters import DeadLetter, DeadLetterFile
from nodeproof.faults.delivery import DeliverySettings
from nodeproof.faults.journal import Journal
from nodeproof.faults.signing import signature, verifies
from nodeproof.host.webhook_client import Answer, Target, Unreachable
from nodeproof.model.event import Severity
from nodeproof.model.fault import Change, FaultEvent, Subscription
from support.daemon import free_port
from support.webhooks import Network, Office, fault_event

Opened = Callable[..., Office]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    offices: list[Office] = []

    def make(network: Network, **more: object) -> Office:
        office = Office(tmp_path, network, **more)  # type: ignore[arg-type]
        offices.append(office)
        office.deliverer.start()
        return office

    yield make
    for office in offices:
        office.close()


def test_events_come_in_order_signed_and_unmarked(opened: Opened) -> None:
    network = Network()
    office = opened(network)
    office.subscribe()
    office.happen(*[fault_event(number) for number in range(1, 101)])
    assert network.sequences == list(range(1, 101))
    first = network.arrived[0]
    assert (first.attempt, first.again, first.address) == (1, False, "93.184.215.14")
    assert first.headers["X-CatMonitor-Event"] == "card_drop"
    assert first.headers["X-CatMonitor-EventID"] == f"{1:032x}"
    stamp, signed = first.headers["X-Nodeproof-Timestamp"], first.headers["X-Nodeproof-Signature"]
    assert signed == signature(b"k" * 64, stamp, first.body)
    assert verifies(b"k" * 64, stamp, first.body, signed, now_s=office.clock.wall_s)
    (progress,) = [office.deliverer.progress(one.id) for one in office.subscriptions.all()]
    assert progress is not None
    assert (progress.place, progress.delivered, progress.problem) == (100, 100, "")


def test_a_secret_of_its_own_signs(opened: Opened) -> None:
    network = Network()
    office = opened(network)
    office.subscribe(secret="a secret of the subscriber")  # noqa: S106 - of nobody
    office.happen(fault_event(1))
    (one,) = network.arrived
    assert one.headers["X-Nodeproof-Signature"] == signature(
        b"a secret of the subscriber", one.headers["X-Nodeproof-Timestamp"], one.body
    )


@pytest.mark.parametrize(
    ("change", "now_s"),
    [
        ({"body": b"{}"}, 1000.0),
        ({"timestamp": "1001"}, 1000.0),
        ({"secret": b"another"}, 1000.0),
        ({"claimed": "v1=00"}, 1000.0),
        ({}, 1301.0),
        ({}, 699.0),
        ({"timestamp": "x"}, 1000.0),
        ({"timestamp": "9" * 13}, 1000.0),
    ],
)
def test_what_does_not_verify(change: dict[str, object], now_s: float) -> None:
    good: dict[str, object] = {"secret": b"s", "timestamp": "1000", "body": b"[]", "claimed": signature(b"s", "1000", b"[]")}
    assert verifies(**good, now_s=1000.0)  # type: ignore[arg-type]
    assert not verifies(**{**good, **change}, now_s=now_s)  # type: ignore[arg-type]


def test_a_receiver_that_fails_for_a_day_gets_everything_in_order(opened: Opened) -> None:
    began: list[float] = []

    def answer(_number: int, _event: FaultEvent) -> int | str:
        return "no answer within 5 s" if office.clock.wall_s < began[0] + 86400 else 200

    network = Network(answer)
    office = opened(network)
    began.append(office.clock.wall_s)
    office.subscribe()
    office.happen(*[fault_event(number, at_s=office.clock.wall_s) for number in range(1, 6)])
    attempts = [one for one in network.arrived if one.sequence == 1]
    assert network.sequences[len(attempts) :] == [2, 3, 4, 5]
    assert 86400 / 300 < len(attempts) < 2 * 86400 / 300 + 20
    assert [one.again for one in attempts] == [False] + [True] * (len(attempts) - 1)
    assert [one.attempt for one in attempts] == list(range(1, len(attempts) + 1))
    assert 0.5 <= office.pauses[0] <= 1.0
    assert all(150.0 <= pause <= 300.0 for pause in office.pauses[12:])
    assert len(set(office.pauses)) > 100
    assert not any(one.again for one in network.arrived[len(attempts) :])


@pytest.mark.parametrize("answer", [500, 301, 302, 307, 404, 429, "refused"])
def test_what_is_no_success_is_tried_again_and_never_followed(opened: Opened, answer: int | str) -> None:
    network = Network(lambda number, _event: answer if number <= 3 else 200)
    office = opened(network)
    subscription = office.subscribe()
    office.happen(fault_event(1), fault_event(2))
    assert network.sequences == [1, 1, 1, 1, 2]
    assert set(network.looked_up) == {"alerts.example.com"}
    assert office.deliverer.dead_letters(subscription.id) == []


def test_retry_after_is_heeded_up_to_a_limit(opened: Opened) -> None:
    network = Network(lambda number, _event: {1: Answer(429, 40.0), 2: Answer(503, 86400.0)}.get(number, 200))
    office = opened(network)
    office.subscribe()
    office.happen(fault_event(1))
    assert 20.0 <= office.pauses[0] <= 40.0
    assert 150.0 <= office.pauses[1] <= 300.0


def test_given_up_events_are_dead_letters_and_the_next_one_has_its_turn(opened: Opened) -> None:
    network = Network(lambda _number, event: 500 if event.sequence == 1 else 200)
    office = opened(network, settings=DeliverySettings(retries=2))
    subscription = office.subscribe()
    office.happen(fault_event(1), fault_event(2))
    assert network.sequences == [1, 1, 1, 2]
    (letter,) = office.deliverer.dead_letters(subscription.id)
    assert (letter.event, letter.attempts, letter.reason) == (fault_event(1), 3, "it answered 500")
    progress = office.deliverer.progress(subscription.id)
    assert progress is not None
    assert (progress.dead, progress.delivered) == (1, 1)


def test_gone_is_given_up_at_once_and_age_in_the_end(opened: Opened) -> None:
    network = Network(lambda _number, event: 410 if event.sequence == 1 else 500)
    office = opened(network, settings=DeliverySettings(give_up_s=3600.0))
    subscription = office.subscribe()
    office.happen(fault_event(1, at_s=office.clock.wall_s), fault_event(2, at_s=office.clock.wall_s))
    letters = office.deliverer.dead_letters(subscription.id)
    assert [(one.event.sequence if one.event else 0, one.reason) for one in letters] == [
        (1, "it answered 410"),
        (2, "it answered 500"),
    ]
    assert letters[1].attempts > 10


def test_a_receiver_that_was_away_for_too_long_gets_one_attempt_an_event_until_it_is_back(opened: Opened) -> None:
    network = Network(lambda _number, event: 500 if event.sequence < 4 else 200)
    office = opened(network, settings=DeliverySettings(give_up_s=3600.0))
    subscription = office.subscribe()
    office.happen(*[fault_event(number, at_s=0.0) for number in range(1, 6)])
    assert network.sequences[-4:] == [2, 3, 4, 5]
    assert network.sequences.count(1) > 10
    assert len(office.deliverer.dead_letters(subscription.id)) == 3
    progress = office.deliverer.progress(subscription.id)
    assert progress is not None
    assert progress.failing_since == 0.0


def test_only_one_event_is_in_doubt_after_a_kill(opened: Opened, tmp_path: Path) -> None:
    """The process ended between sending and writing its place down."""
    network = Network()
    office = opened(network)
    subscription = office.subscribe()
    office.happen(fault_event(1), fault_event(2))
    path = tmp_path / "deliveries" / f"{subscription.id}.json"
    before = path.read_bytes()
    office.happen(fault_event(3))
    office.close()
    path.write_bytes(before)
    again = opened(network)
    again.happen(fault_event(4))
    assert [(one.sequence, one.again) for one in network.arrived[2:]] == [(3, False), (3, True), (4, False)]


def test_after_a_boot_all_that_may_have_been_sent_is_marked(opened: Opened, tmp_path: Path) -> None:
    network = Network()
    office = opened(network)
    office.subscribe()
    office.happen(fault_event(1))
    office.deliverer.stop()
    office.journal.append([fault_event(2), fault_event(3)])
    office.close()
    again = opened(network, boot="another")
    again.happen(fault_event(4))
    assert [(one.sequence, one.again) for one in network.arrived] == [(1, False), (2, True), (3, True), (4, False)]


def test_a_first_event_that_a_killed_process_may_have_sent_is_marked(opened: Opened) -> None:
    """Before the first success there is a place on disk already."""
    network = Network(lambda number, _event: "connection reset" if number == 1 else 200)
    office = opened(network)
    office.subscribe()
    stopped = threading.Event()

    def pause(ended: threading.Event, _seconds: float) -> None:
        stopped.set()
        ended.wait(10.0)

    office.deliverer.pause = pause
    office.journal.append([fault_event(1)])
    office.written = 1
    office.deliverer.wake()
    assert stopped.wait(5.0)
    office.close()
    again = opened(network)
    again.serve()
    assert [(one.sequence, one.again) for one in network.arrived] == [(1, False), (1, True)]


def test_what_is_not_on_the_disk_is_not_sent(opened: Opened) -> None:
    network = Network()
    office = opened(network)
    office.subscribe()
    office.journal.append([fault_event(1), fault_event(2)])
    office.written = 1
    office.serve()
    assert network.sequences == [1]


def test_what_fell_out_of_the_log_is_a_dead_letter(opened: Opened, tmp_path: Path) -> None:
    network = Network(lambda _number, event: 500 if event.sequence == 1 else 200)
    office = opened(network)
    subscription = office.subscribe()
    office.close()
    small = Journal(str(tmp_path), segment_bytes=2000, total_bytes=10_000)
    small.open()
    for number in range(1, 101):
        small.append([fault_event(number)])
    small.close()
    again = opened(network)
    again.written = 100
    again.serve()
    (letter,) = again.deliverer.dead_letters(subscription.id)
    first = network.sequences[0]
    assert letter.lost == first - 1 > 50
    assert network.sequences == list(range(first, 101))


def test_a_log_that_was_taken_away_begins_anew(opened: Opened, tmp_path: Path) -> None:
    network = Network()
    office = opened(network)
    office.subscribe()
    office.happen(*[fault_event(number) for number in range(1, 9)])
    office.close()
    for segment in tmp_path.glob("events-*.jsonl"):
        segment.unlink()
    again = opened(network)
    again.happen(fault_event(1), fault_event(2))
    assert network.sequences[8:] == [1, 2]


def test_a_name_that_means_a_private_address_is_refused_and_looked_up_once_an_attempt(opened: Opened) -> None:
    """DNS rebinding: the address that was judged is the one that is used."""
    network = Network()
    network.addresses["rebind.example.com"] = [["10.0.0.7"], ["93.184.215.14", "127.0.0.1"], ["93.184.215.14"], ["127.0.0.1"]]
    office = opened(network)
    subscription = office.subscribe("http://rebind.example.com/x")
    office.happen(fault_event(1))
    assert [(one.sequence, one.attempt, one.address) for one in network.arrived] == [(1, 3, "93.184.215.14")]
    assert network.looked_up == ["rebind.example.com"] * 3
    assert office.deliverer.dead_letters(subscription.id) == []


def test_what_a_subscriber_does_not_want_is_passed_over(opened: Opened) -> None:
    network = Network()
    office = opened(network)
    office.subscribe(types=["thermal"])
    office.subscribe(min_severity="critical", components=["npu"], npu_ids=["3"])
    office.happen(
        fault_event(1, type="thermal", severity=Severity.WARNING),
        fault_event(2, npu_id="4"),
        fault_event(3, change=Change.ACKNOWLEDGED),
        fault_event(4, change=Change.CLEARED),
        fault_event(5, component="gpu", gpu_id="3", npu_id=""),
    )
    assert sorted(network.sequences) == [1, 4]


def test_a_debounce_keeps_the_last_word_true(opened: Opened) -> None:
    """Defect of the reference: a recovery within the window was swallowed."""
    network = Network()
    office = opened(network)
    office.subscribe(debounce_ms=60_000)
    clear = fault_event(2, change=Change.CLEARED, fault_id="f1")
    office.happen(fault_event(1), clear, fault_event(3), fault_event(4, change=Change.CLEARED, fault_id="f3"))
    assert network.sequences == [1, 2]
    bell = threading.Event()
    office.deliverer.wake()
    office.settle()
    office.clock.advance(30.0)
    office.journal.append([fault_event(5)])
    office.written = 5
    office.deliverer.wake()
    bell.wait(0.1)
    assert network.sequences == [1, 2]
    office.clock.advance(31.0)
    office.serve()
    assert network.sequences == [1, 2, 5]


def test_what_a_debounce_kept_survives_a_restart(opened: Opened) -> None:
    network = Network()
    office = opened(network)
    office.subscribe(debounce_ms=3_600_000)
    office.happen(fault_event(1))
    office.journal.append([fault_event(2)])
    office.written = 2
    office.deliverer.wake()
    deadline = threading.Event()
    for _ in range(100):
        progress = office.deliverer.progress(office.subscriptions.all()[0].id)
        assert progress is not None
        if progress.held:
            break
        deadline.wait(0.02)
    office.close()
    again = opened(network)
    again.serve()
    assert [(one.sequence, one.again) for one in network.arrived] == [(1, False), (2, True)]


def test_a_receiver_that_hangs_holds_up_nobody_else(opened: Opened) -> None:
    hangs = threading.Event()

    class Hanging(Network):
        def post(self, target: Target, address: str, headers: dict[str, str], body: bytes, limit_s: float) -> Answer:
            if target.host == "slow.example.com":
                hangs.wait(10.0)
            return super().post(target, address, headers, body, limit_s)

    network = Hanging()
    office = opened(network)
    office.subscribe("https://slow.example.com/")
    office.subscribe("https://quick.example.com/")
    office.journal.append([fault_event(1)])
    office.written = 1
    office.deliverer.wake()
    for _ in range(250):
        if network.arrived:
            break
        threading.Event().wait(0.02)
    assert [one.headers["Content-Type"] for one in network.arrived] == ["application/json"]
    hangs.set()
    office.settle()
    assert network.sequences == [1, 1]


def test_a_subscription_that_is_deleted_gets_no_more(opened: Opened) -> None:
    network = Network()
    office = opened(network)
    subscription = office.subscribe()
    office.happen(fault_event(1))
    assert office.subscriptions.remove(subscription.id)
    office.happen(fault_event(2))
    assert network.sequences == [1]
    assert office.deliverer.progress(subscription.id) is None


def test_a_bug_ends_one_round_and_no_more(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network = Network()
    office = opened(network)
    office.subscribe()

    def broken(_subscription: Subscription, _event: FaultEvent) -> bool:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(delivery, "wants", broken)
        office.happen(fault_event(1))
    assert "nothing more is delivered to it until the next event" in caplog.text
    office.happen(fault_event(2))
    assert network.sequences == [1, 2]


def test_a_place_that_cannot_be_written_is_told_of_and_stops_nothing(
    opened: Opened, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    network = Network(lambda _number, event: 410 if event.sequence == 2 else 200)
    office = opened(network)
    (tmp_path / "deliveries").write_text("in the way", encoding="ascii")
    office.subscribe()
    office.happen(fault_event(1), fault_event(2), fault_event(3))
    assert network.sequences == [1, 2, 3]
    assert "how far it got is not kept" in caplog.text
    assert "its dead letters are not kept" in caplog.text


def test_dead_letters_are_bounded(opened: Opened) -> None:
    network = Network(lambda _number, _event: 410)
    office = opened(network)
    subscription = office.subscribe()
    for start in range(1, 1101, 100):
        office.journal.append([fault_event(number) for number in range(start, start + 100)])
    office.written = 1100
    letters = [DeadLetter("now", "x", 1, fault_event(number)) for number in range(995)]
    path = Path(office.folder) / "deliveries" / f"{subscription.id}.dead.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.encode(letters))
    office.written = 10
    office.serve()
    kept = office.deliverer.dead_letters(subscription.id)
    assert len(kept) == 1000
    assert [one.event.sequence for one in kept[-10:] if one.event] == list(range(1, 11))


def test_the_real_network_says_that_nobody_is_there(opened: Opened) -> None:
    real = delivery.Network()
    assert real.resolve("127.0.0.1", 1) == ["127.0.0.1"]
    with pytest.raises(Unreachable):
        real.post(Target(False, "127.0.0.1", free_port(), "/"), "127.0.0.1", {}, b"{}", 2.0)


def test_who_has_stopped_serves_no_more(opened: Opened) -> None:
    network = Network()
    office = opened(network)
    office.subscribe()
    office.deliverer.stop()
    office.happen(fault_event(1))
    assert network.arrived == []


def _folder(office: Office) -> list[str]:
    return sorted(path.name for path in (Path(office.folder) / "deliveries").iterdir())


def test_dead_letters_are_bounded_in_bytes(opened: Opened) -> None:
    """A thousand of the largest events would be 64 MB a subscriber, written anew with each."""
    network = Network(lambda _number, _event: 410)
    office = opened(network)
    subscription = office.subscribe()
    office.happen(*[fault_event(number, detail={"line": "x" * 60_000}) for number in range(1, 31)])
    path = Path(office.folder) / "deliveries" / f"{subscription.id}.dead.json"
    assert path.stat().st_size <= 1024 * 1024
    kept = [one.event.sequence for one in office.deliverer.dead_letters(subscription.id) if one.event]
    assert kept == list(range(14, 31)), "the newest 17 of 60.5 kB each"


def test_one_letter_that_is_larger_than_all_may_be_is_kept(tmp_path: Path) -> None:
    file = DeadLetterFile(str(tmp_path / "dead.json"))
    file.bury(DeadLetter("now", "x" * 2_000_000, 1))
    assert [len(one.reason) for one in file.read()] == [2_000_000]
    file.bury(DeadLetter("now", "y", 1))
    assert [one.reason for one in file.read()] == ["y"]


def test_dead_letters_are_sent_again_before_what_waits(opened: Opened) -> None:
    well: list[bool] = []
    network = Network(lambda _number, _event: 204 if well else 410)
    office = opened(network)
    subscription = office.subscribe()
    office.happen(*[fault_event(number) for number in (1, 2, 3)])
    assert len(office.deliverer.dead_letters(subscription.id)) == 3
    well.append(True)
    network.arrived.clear()
    office.journal.append([fault_event(4)])
    office.written = 4
    assert office.deliverer.redeliver(subscription.id, [3, 1, 99]) == [1, 3]
    office.settle()
    assert [(one.sequence, one.again, one.attempt) for one in network.arrived] == [(1, True, 1), (3, True, 1), (4, False, 1)]
    assert [one.event.sequence for one in office.deliverer.dead_letters(subscription.id) if one.event] == [2]
    progress = office.deliverer.progress(subscription.id)
    assert progress is not None
    assert (progress.dead, progress.delivered, progress.place, progress.again) == (1, 3, 4, [])
    assert office.deliverer.redeliver(subscription.id) == [2]
    office.settle()
    assert office.deliverer.redeliver(subscription.id) == []
    assert network.sequences == [1, 3, 4, 2]


def test_what_is_given_up_again_is_a_dead_letter_again(opened: Opened) -> None:
    network = Network(lambda _number, _event: 410)
    office = opened(network)
    subscription = office.subscribe()
    office.happen(fault_event(1))
    assert office.deliverer.redeliver(subscription.id) == [1]
    office.settle()
    assert network.sequences == [1, 1]
    assert [one.event.sequence for one in office.deliverer.dead_letters(subscription.id) if one.event] == [1]
    progress = office.deliverer.progress(subscription.id)
    assert progress is not None
    assert (progress.dead, progress.again) == (1, [])


def test_who_ends_while_dead_letters_go_out_again_sends_them_after_the_restart(opened: Opened) -> None:
    office = opened(Network(lambda _number, _event: 410))
    subscription = office.subscribe()
    office.happen(fault_event(1), fault_event(2))
    ended = office.deliverer

    def answer(_number: int, event: FaultEvent) -> int | str:
        if event.sequence == 2:
            ended._posts[subscription.id].retire()  # the process is told to end while the second one is under way
            return "nobody"
        return 204

    office.network._answer = answer
    assert ended.redeliver(subscription.id) == [1, 2]
    office.settle()
    office.close()
    network = Network()
    office = opened(network)
    office.serve()
    assert [(one.sequence, one.again) for one in network.arrived] == [(2, True)]
    assert office.deliverer.dead_letters(subscription.id) == []


def test_a_letter_that_cannot_be_taken_off_its_file_is_sent_and_stays(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    well: list[bool] = []
    network = Network(lambda _number, _event: 204 if well else 410)
    office = opened(network)
    subscription = office.subscribe()
    office.happen(fault_event(1))
    well.append(True)

    def full(path: str, _data: bytes) -> None:
        raise WriteError(path, "No space left on device")

    monkeypatch.setattr(delivery, "replace_file", full)
    assert office.deliverer.redeliver(subscription.id) == [1]
    office.settle()
    assert network.sequences == [1, 1]
    assert "how far it got is not kept" in caplog.text
    assert len(office.deliverer.dead_letters(subscription.id)) == 1


def test_nobody_to_send_again_to(opened: Opened) -> None:
    assert opened(Network()).deliverer.redeliver("sub-0") == []


def test_a_subscription_that_is_removed_leaves_no_file(opened: Opened) -> None:
    network = Network(lambda number, _event: 204 if number == 1 else 410)
    office = opened(network)
    gone, stays = office.subscribe(), office.subscribe()
    office.happen(fault_event(1))
    assert len(_folder(office)) == 3, "two places, and the dead letters of one"
    assert office.subscriptions.remove(gone.id)
    office.serve()
    assert [name.partition(".")[0] for name in _folder(office)] == [stays.id] * len(_folder(office))
    assert office.deliverer.progress(gone.id) is None


def test_one_that_is_removed_while_it_is_served_leaves_no_file_either(opened: Opened) -> None:
    removed: list[str] = []

    def answer(_number: int, _event: FaultEvent) -> int:
        office.subscriptions.remove(removed[0])
        office.deliverer.wake()
        return 410

    network = Network(answer)
    office = opened(network)
    removed.append(office.subscribe().id)
    office.journal.append([fault_event(1), fault_event(2)])
    office.written = 2
    office.deliverer.wake()
    postman = next(iter(office.deliverer._posts.values()))
    postman.join(15.0)
    assert network.sequences == [1]
    assert _folder(office) == []


def test_files_of_subscriptions_that_are_gone_go_with_the_next_start(opened: Opened) -> None:
    office = opened(Network())
    stays = office.subscribe()
    office.happen(fault_event(1))
    folder = Path(office.folder) / "deliveries"
    strangers = [folder / f"sub-{'0' * 32}.json", folder / f"sub-{'0' * 32}.dead.json"]
    others = [folder / "notes.txt", folder / "sub-0.json"]
    for path in (*strangers, *others):
        path.write_text("{}")
    (folder / f"sub-{'1' * 32}.json").mkdir()
    office.deliverer.forget_strangers()
    assert _folder(office) == sorted([f"{stays.id}.json", f"sub-{'1' * 32}.json", *(path.name for path in others)])
