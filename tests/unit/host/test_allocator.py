"""One arena for all threads: seen in the process's own map, in a process of its own since the setting is for good."""

import ctypes
import subprocess
import sys

import pytest

from nodeproof.host import allocator

PROGRAM = """
import ctypes, sys, threading
from nodeproof.host.allocator import share_one_arena
print(share_one_arena() if sys.argv[1] == "shared" else False)
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = (ctypes.c_size_t,)
with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
    heap = next((line.split()[0] for line in maps if line.rstrip().endswith("[heap]")), "0-0")
places = []
def work():
    places.append(libc.malloc(500))
    barrier.wait()
barrier = threading.Barrier(4)
threads = [threading.Thread(target=work) for _ in range(4)]
[one.start() for one in threads]
[one.join() for one in threads]
with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
    heap = next((line.split()[0] for line in maps if line.rstrip().endswith("[heap]")), heap)
first, last = (int(part, 16) for part in heap.split("-"))
print(sum(first <= place < last for place in places))
"""


def in_main_arena(how: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="arenas are glibc's")
def test_threads_allocate_from_the_arena_of_the_main_thread() -> None:
    assert in_main_arena("shared") == ["True", "4"]
    assert int(in_main_arena("apart")[1]) < 4  # what would be without


def test_a_library_without_arenas_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())
    assert allocator.share_one_arena() is False


LARGE = """
import ctypes
from nodeproof.host.allocator import return_large_blocks
print(return_large_blocks())
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = (ctypes.c_size_t,)
libc.free.argtypes = (ctypes.c_void_p,)
def resident():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * 4096
before = resident()
large, small = [], []
for _ in range(100):
    large.append(libc.malloc(100_000))
    ctypes.memset(large[-1], 1, 100_000)
    small.append(libc.malloc(20_000))
full = resident()
for place in large:
    libc.free(place)
print(resident() - before < 0.7 * (full - before))
"""


def test_large_blocks_go_back_to_the_kernel_at_once() -> None:
    """A small block after each large one keeps the heap from shrinking: all ten megabytes would stay.

    About half of them come out of the room at the top of the heap, which glibc uses up before it maps a block of its own.
    """
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    assert done.stdout == "True\nTrue\n"
