"""What runs in the sandbox, and what it cannot do: real processes, real namespaces."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nodeproof.errors import RunCancelled
from nodeproof.host.sandbox import Sandbox, SandboxError, SandboxLimits

pytestmark = pytest.mark.timeout(60)

_WORK = "/tmp/work"  # noqa: S108 - that of the sandbox


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One for all tests that do not break it."""
    folder = tmp_path_factory.mktemp("sandbox")
    (folder / "secret").write_text("planted", encoding="utf-8")
    try:
        made = Sandbox.start(str(folder), "box", hidden=(str(folder),))
    except SandboxError as error:
        pytest.skip(f"this user may not shut the machine out: {error}")
    with made:
        assert made.isolated
        yield made


def _output(sandbox: Sandbox, command: str, timeout_s: float = 10.0) -> str:
    return sandbox.run(command, timeout_s=timeout_s).output.decode()


def test_commands_have_an_end_and_an_output(sandbox: Sandbox) -> None:
    done = sandbox.run("echo out; echo err >&2; exit 3", timeout_s=10)
    assert (done.exit_code, done.output, done.timed_out) == (3, b"out\nerr\n", False)
    assert sandbox.run("kill -9 $$", timeout_s=10).exit_code == -9
    assert _output(sandbox, "pwd") == f"{_WORK}\n"
    assert _output(sandbox, "cat; echo $HOME; echo ${SSH_AUTH_SOCK-none}") == f"{_WORK}\nnone\n"


def test_a_command_that_goes_on_is_ended(sandbox: Sandbox) -> None:
    begun_s = time.monotonic()
    done = sandbox.run("echo first; sleep 50 & sleep 50", timeout_s=0.3)
    assert (done.timed_out, done.exit_code, done.output) == (True, -9, b"first\n")
    assert time.monotonic() - begun_s < 5
    assert _settled(sandbox) == 0


def _settled(sandbox: Sandbox) -> int:
    """Processes, once those that were killed are gone."""
    ends_s = time.monotonic() + 5
    while (left := sandbox.processes()) and time.monotonic() < ends_s:
        time.sleep(0.02)
    return left


def test_much_output_keeps_both_ends(sandbox: Sandbox) -> None:
    done = sandbox.run("echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo end", timeout_s=20, limit_bytes=1000)
    assert done.output_bytes == 3_000_010
    assert done.output.startswith(b"begin\nxxx")
    assert done.output.endswith(b"xxxend\n")
    assert len(done.output) < 1100


def test_there_is_no_network(sandbox: Sandbox) -> None:
    program = "import socket; socket.create_connection(('192.0.2.1', 80), 3)"
    assert "unreachable" in _output(sandbox, f'python3 -c "{program}"')
    assert _output(sandbox, "tail -n +3 /proc/net/dev | cut -d: -f1").split() == ["lo"]


def test_no_process_of_the_machine_can_be_seen_or_ended(sandbox: Sandbox) -> None:
    numbers = _output(sandbox, "cd /proc; ls -d [0-9]*").split()
    assert "1" in numbers
    assert len(numbers) < 6
    assert _output(sandbox, "kill -9 -1; kill -9 1; echo there").endswith("there\n")
    assert sandbox.run("true", timeout_s=5).exit_code == 0
    assert f"{os.getpid()}" not in numbers or os.getpid() < 100


def test_no_file_of_the_machine_can_be_changed(sandbox: Sandbox) -> None:
    for path in ("/etc/planted", "/usr/planted", "/var/planted", f"{Path(__file__).parent}/planted"):
        assert sandbox.run(f"touch {path}", timeout_s=5).exit_code != 0
        assert not Path(path).exists()
    assert not Path(_WORK).exists()


def test_hidden_directories_are_empty(sandbox: Sandbox) -> None:
    folder = Path(sandbox._contained.output_path).parent
    assert (folder / "secret").exists()
    assert sandbox.run(f"cat {folder}/secret", timeout_s=5).exit_code != 0


def test_no_rights_can_be_won(sandbox: Sandbox) -> None:
    assert _output(sandbox, "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status | cut -f2").split() == ["0" * 16, "1"]
    assert sandbox.run("mount -t tmpfs none /mnt", timeout_s=5).exit_code != 0
    assert sandbox.run("cat /proc/1/environ", timeout_s=5).exit_code != 0


def test_space_is_limited(tmp_path: Path) -> None:
    limits = SandboxLimits(scratch_bytes=4 << 20, file_bytes=1 << 20)
    with Sandbox.start(str(tmp_path), "small", limits=limits) as sandbox:
        sandbox.run("head -c 9000000 /dev/zero > big", timeout_s=10)
        assert sandbox.files()["big"] == 1 << 20
        sandbox.run("for n in 1 2 3 4 5 6 7 8; do head -c 1000000 /dev/zero > part$n; done", timeout_s=10)
        assert sum(sandbox.files().values()) <= 4 << 20


def test_files_below_the_working_directory(sandbox: Sandbox) -> None:
    sandbox.write("deep/er/file.txt", b"content")
    assert sandbox.read("deep/er/file.txt") == b"content"
    assert sandbox.read(f"{_WORK}/deep/er/file.txt", 4) == b"cont"
    assert sandbox.files()["deep/er/file.txt"] == 7
    sandbox.run("ln -s /etc etc; ln -s /etc/passwd passwd; mkfifo pipe; mkdir folder", timeout_s=5)
    for path, problem in (
        ("../outside", "does not lie below"),
        ("/etc/passwd", "does not lie below"),
        ("deep/../../x", "does not lie below"),
        ("", "does not lie below"),
        ("etc/passwd", "Not a directory"),
        ("passwd", "symbolic links"),
        ("pipe", "no regular file"),
        ("folder", "Is a directory"),
        ("missing", "No such file"),
    ):
        with pytest.raises(OSError, match=problem):
            sandbox.read(path)
    with pytest.raises(OSError, match="symbolic links"):
        sandbox.write("passwd", b"x")
    assert not {"etc", "passwd", "pipe"} & set(sandbox.files())


def test_a_server_is_started_asked_and_ended(sandbox: Sandbox) -> None:
    sandbox.write("served/page", b"hello")
    port = sandbox.reserve_port()
    taken = sandbox.run(f"python3 -c \"import socket; socket.create_server(('127.0.0.1', {port}))\"", timeout_s=5)
    assert b"Address already in use" in taken.output
    sandbox.free_port(port)
    number = sandbox.begin("cd served; exec python3 -m http.server $PORT --bind 127.0.0.1", {"PORT": str(port)})
    assert sandbox.get(port, "/page", timeout_s=10) == (200, b"hello")
    assert sandbox.get(port, "/none", timeout_s=5)[0] == 404
    ended = sandbox.end(number)
    assert ended.exit_code == -9
    assert b"GET /page" in ended.output
    assert sandbox.get(port, "/page", timeout_s=0.2) == (0, b"no answer within 0.2 s: Connection refused")
    with pytest.raises(OSError, match="Connection refused"):
        _connect(port)


def _connect(port: int) -> None:
    import socket  # noqa: PLC0415 - the machine's own network, for one look

    socket.create_connection(("127.0.0.1", port), 2).close()


def test_what_answers_and_is_no_server(sandbox: Sandbox) -> None:
    program = (
        "import socket; s = socket.create_server(('127.0.0.1', 18099)); c = s.accept()[0]; c.recv(9); c.send(b'hm'); c.close()"
    )
    sandbox.begin(f'python3 -c "{program}"')
    status, reason = sandbox.get(18099, "/", timeout_s=1.5)
    assert status == 0
    assert reason.startswith(b"no answer within 1.5 s: ")


def test_servers_in_the_background_go_on_until_they_are_ended(sandbox: Sandbox) -> None:
    sandbox.run("sleep 60 & setsid sleep 60 &", timeout_s=5)
    assert sandbox.processes() == 2
    sandbox.processes(end=True)
    assert _settled(sandbox) == 0


def test_nothing_outlives_it(tmp_path: Path) -> None:
    with Sandbox.start(str(tmp_path), "box") as sandbox:
        sandbox.run("(setsid sleep 4321 &) ; (trap '' TERM; sleep 4321) & true", timeout_s=5)
        assert _sleepers() == 2
    assert sandbox._contained.ended is not None
    assert sandbox._contained.ended.empty
    assert _sleepers() == 0


def _sleepers() -> int:
    found = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found += (entry / "cmdline").read_bytes() == b"sleep\x004321\x00"
            except OSError:
                continue
    return found


def test_memory_is_limited(tmp_path: Path) -> None:
    program = "x = bytearray(300 << 20); import time; time.sleep(30)"
    with Sandbox.start(str(tmp_path), "box", limits=SandboxLimits(memory_bytes=256 << 20)) as sandbox:
        # One process may not have so much address space ...
        assert b"MemoryError" in sandbox.run(f'python3 -c "{program}"', timeout_s=20).output
    limits = SandboxLimits(memory_bytes=400 << 20)
    with (
        Sandbox.start(str(tmp_path), "other", limits=limits) as sandbox,
        pytest.raises(SandboxError, match=r"MiB of memory, limit 400 MiB; all of it was ended"),
    ):
        # ... and several may not have it together.
        sandbox.run(f'python3 -c "{program}" & python3 -c "{program}"', timeout_s=20)


def test_a_cancel_ends_it(tmp_path: Path) -> None:
    stop = threading.Event()
    with Sandbox.start(str(tmp_path), "box", should_stop=stop.is_set) as sandbox:
        timer = threading.Timer(0.3, stop.set)
        timer.start()
        begun_s = time.monotonic()
        with pytest.raises(RunCancelled):
            sandbox.run("sleep 60", timeout_s=60)
        assert time.monotonic() - begun_s < 10
        timer.join()
        with pytest.raises(SandboxError, match="the sandbox is lost: the run is to stop"):
            sandbox.run("true", timeout_s=5)


def test_orders_that_are_none(sandbox: Sandbox) -> None:
    from nodeproof.host.sandbox_inside import Order  # noqa: PLC0415 - the other side's language

    answer = sandbox._ask(Order(op="dance"), 5.0)
    assert (answer.ok, answer.problem) == (False, "no such order 'dance'")


_AS_A_USER = """
import os, socket, sys, tempfile
from nodeproof.host import sandbox_inside
from nodeproof.host.sandbox_inside import Answer, Order, Spec, receive, transmit
import msgspec
os.setgroups([]); os.setgid(54321); os.setuid(54321)
place = tempfile.mkdtemp()
listener = socket.socket(socket.AF_UNIX); listener.bind(place + "/c"); listener.listen(1)
spec = Spec(socket_path=place + "/c", work=place, isolation=sys.argv[1])
if os.fork() == 0:
    os._exit(sandbox_inside.main([msgspec.json.encode(spec).decode()]))
channel, _ = listener.accept()
first = msgspec.json.decode(receive(channel), type=Answer)
print(first.ok, first.isolated, first.problem, first.notes)
if first.ok:
    for command in ("id -u; grep CapEff /proc/self/status | cut -f2; touch /var/tmp/../planted; ls -d /proc/[0-9]* | wc -l",):
        transmit(channel, Order(op="run", command=command))
        print(msgspec.json.decode(receive(channel), type=Answer).data.decode())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_user_without_rights_is_shut_in_as_well(tmp_path: Path) -> None:
    """By a user namespace of its own; where the kernel gives none, nothing runs."""
    done = subprocess.run([sys.executable, "-c", _AS_A_USER, "required"], capture_output=True, text=True, timeout=30, check=False)
    words = done.stdout.split()
    assert words[:2] in (["True", "True"], ["False", "False"]), done.stderr
    if words[0] == "True":
        assert words[words.index("54321") :][:2] == ["54321", "0" * 16]
        assert int(words[-1]) < 8
    else:
        assert "this machine cannot be shut out" in done.stdout


def _kept(own: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in own.items() if key == "PATH" or key.startswith("COVERAGE_")}


def test_where_the_machine_cannot_be_shut_out_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The inside is told to fail by a limit on namespaces, as a hardened kernel has it."""
    spare = tmp_path / "site"
    spare.mkdir()
    (spare / "sitecustomize.py").write_text(
        "from nodeproof.host import namespaces\n"
        "def refuse():\n    raise OSError(1, 'unshare: Operation not permitted')\n"
        "namespaces.enter = refuse\n",
        encoding="utf-8",
    )
    from nodeproof.host import sandbox as module  # noqa: PLC0415 - patched below

    monkeypatch.setattr(module, "allowed_environment", lambda own: _kept(own) | {"PYTHONPATH": str(spare)})
    with pytest.raises(SandboxError, match=r"this machine cannot be shut out: unshare: Operation not permitted; run as root"):
        Sandbox.start(str(tmp_path), "strict")
    with Sandbox.start(str(tmp_path), "lax", required=False) as sandbox:
        assert not sandbox.isolated
        assert sandbox.notes == ["not isolated: unshare: Operation not permitted"]
        place = Path(_output(sandbox, "pwd").strip())
        assert place == Path(sandbox._place) / "work"
        assert sandbox.processes() == 0
        sandbox.run("sleep 60 & setsid sleep 60 &", timeout_s=5)
        assert sandbox.processes() == 2
        assert sandbox.processes(end=True) == 2
        sandbox.write("served/page", b"hello")
        assert (sandbox.read("served/page"), sandbox.files()) == (b"hello", {"served/page": 5})
        assert sandbox.run("yes | head -c 5000", timeout_s=5, limit_bytes=100).output_bytes == 5000
        assert sandbox.run("sleep 60", timeout_s=0.2).timed_out
        port = sandbox.reserve_port()
        sandbox.free_port(port)
        number = sandbox.begin("cd served; exec python3 -m http.server $PORT --bind 127.0.0.1", {"PORT": str(port)})
        assert sandbox.get(port, "/page", timeout_s=10) == (200, b"hello")
        assert sandbox.get(1, "/page", timeout_s=0.1)[0] == 0
        assert b"GET /page" in sandbox.end(number).output
        for path in ("../x", "none", "served"):
            with pytest.raises(OSError, match=path):
                sandbox.read(path)
    assert not place.exists()
