"""What the compiled kernels need of the machine: atomics, a clock, wide streaming stores, and BLAS by address.

Everything here is for use inside `@kernel` functions, which numba compiles to machine code that runs without the
interpreter lock. numba offers no atomics on CPUs, no monotonic clock and no calls through an address; each is one small
piece of LLVM code below. Addresses are plain `int64` numbers (`array.ctypes.data`).
"""

import platform
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.event import Listener, install_listener
from numba.extending import get_cython_function_address
from numba.extending import intrinsic as _numba_intrinsic
from numpy.typing import NDArray

from nodeproof.stress.workloads.console import Console

__all__ = [
    "BARRIER_WORDS",
    "LINE_ELEMENTS",
    "Bytes",
    "Floats",
    "Function",
    "Ints",
    "Words",
    "add_atomic",
    "barrier",
    "call_pointers",
    "cython_address",
    "fused_multiply_add",
    "kernel",
    "load_atomic",
    "load_word",
    "now_ns",
    "pause",
    "relax",
    "store_atomic",
    "store_word",
    "stream_copy",
    "stream_scaled",
    "stream_sum",
    "watch_compiling",
]

Function = TypeVar("Function", bound=Callable[..., Any])
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Words = NDArray[np.int64]
Bytes = NDArray[np.uint8]

BARRIER_WORDS = 48  # arrivals, generation and sleepers, each in a pair of cache lines of its own
_GENERATION_OFFSET, _SLEEPERS_OFFSET = 128, 256
_SPINS_BEFORE_SLEEP = 8000
_FUTEX = {"x86_64": 202, "aarch64": 98, "ppc64le": 221, "s390x": 238, "riscv64": 98}.get(platform.machine(), -1)
"""Number of the system call (arch/*/syscalls); where it is not known the call fails and the waiting loop spins."""
_FUTEX_WAIT, _FUTEX_WAKE = 128, 129  # private to this process
_ALL = 1 << 30
_SPINS_BEFORE_YIELD = 4000  # about 50 us: longer waits mean that another program has the core
_CLOCK_MONOTONIC = 1
_LOOK_S = 0.2
LINE_ELEMENTS = 8  # doubles of one cache line


def kernel(*, reassociate: bool = False) -> Callable[[Function], Function]:
    """Compile a function to machine code that runs without the interpreter lock, kept in the cache between starts.

    `reassociate` lets sums be split over vector lanes and products be fused into additions; values are never assumed
    to be finite, and no division is replaced by a reciprocal.
    """
    fastmath: Any = {"reassoc", "nsz", "contract"} if reassociate else False

    def compile_function(function: Function) -> Function:
        compiled: Function = numba.njit(
            function, nogil=True, cache=True, fastmath=fastmath, error_model="numpy", boundscheck=False
        )
        return compiled

    return compile_function


def _intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give numba's decorator a type."""
    made: Callable[..., Any] = _numba_intrinsic(function)
    return made


def _word_pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, cgutils.intp_t.as_pointer())


@_intrinsic
def add_atomic(typing: Any, address: Any, value: Any) -> Any:
    """Add to the word at an address as one step; the value before."""
    del typing, address, value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.atomic_rmw("add", _word_pointer(builder, arguments[0]), arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@_intrinsic
def load_atomic(typing: Any, address: Any) -> Any:
    """The word at an address; all that its writer wrote before storing it is seen too."""
    del typing, address

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.load_atomic(_word_pointer(builder, arguments[0]), "acquire", 8)

    return types.int64(types.int64), generate


@_intrinsic
def store_atomic(typing: Any, address: Any, value: Any) -> Any:
    """Store a word so that whoever loads it sees all that was written before."""
    del typing, address, value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        builder.store_atomic(arguments[1], _word_pointer(builder, arguments[0]), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@_intrinsic
def load_word(typing: Any, address: Any) -> Any:
    """The word at an address, read from memory each time: never kept in a register, never left out."""
    del typing, address

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.load_atomic(_word_pointer(builder, arguments[0]), "monotonic", 8)

    return types.int64(types.int64), generate


@_intrinsic
def store_word(typing: Any, address: Any, value: Any) -> Any:
    """Store a word to memory each time it is asked for."""
    del typing, address, value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        builder.store_atomic(arguments[1], _word_pointer(builder, arguments[0]), "monotonic", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@_intrinsic
def pause(typing: Any) -> Any:
    """Tell the core that this is a waiting loop."""
    del typing

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature, arguments
        machine = platform.machine()
        if machine == "x86_64":
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), ir.FunctionType(ir.VoidType(), [])), [])
        elif machine == "aarch64":
            hint = ir.FunctionType(ir.VoidType(), [ir.IntType(32)])
            builder.call(builder.module.declare_intrinsic("llvm.aarch64.hint", (), hint), [ir.Constant(ir.IntType(32), 1)])
        return context.get_dummy_value()

    return types.void(), generate


def _addresses(count: int) -> Any:
    make: Any = types.UniTuple
    return make(types.int64, count)


@_intrinsic
def call_pointers(typing: Any, address: Any, pointers: Any) -> Any:
    """Call a C function without result whose arguments are all pointers, given as a tuple of addresses."""
    del typing, address
    count = len(pointers)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        pointer_type = ir.IntType(8).as_pointer()
        callee_type = ir.FunctionType(ir.VoidType(), [pointer_type] * count)
        callee = builder.inttoptr(arguments[0], callee_type.as_pointer())
        values = [builder.inttoptr(builder.extract_value(arguments[1], index), pointer_type) for index in range(count)]
        builder.call(callee, values)
        return context.get_dummy_value()

    return types.void(types.int64, _addresses(count)), generate


@_intrinsic
def fused_multiply_add(typing: Any, first: Any, second: Any, third: Any) -> Any:
    """Compute first * second + third, rounded once."""
    del typing, first, second, third

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


def _line_pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, ir.VectorType(ir.DoubleType(), LINE_ELEMENTS).as_pointer())


def _load_line(builder: Any, address: Any) -> Any:
    return builder.load(_line_pointer(builder, address), align=8 * LINE_ELEMENTS)


def _stream_line(builder: Any, address: Any, line: Any) -> None:
    store = builder.store(line, _line_pointer(builder, address), align=8 * LINE_ELEMENTS)
    store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))


def _all_lanes(builder: Any, value: Any) -> Any:
    line_type = ir.VectorType(ir.DoubleType(), LINE_ELEMENTS)
    one = builder.insert_element(ir.Constant(line_type, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LINE_ELEMENTS), [0] * LINE_ELEMENTS)
    return builder.shuffle_vector(one, one, mask)


@_intrinsic
def stream_copy(typing: Any, target: Any, source: Any) -> Any:
    """Copy one cache line past the caches. Addresses are multiples of a line, here and in the two below.

    Such stores are seen by other threads in any order until the next atomic operation of this one.
    """
    del typing, target, source

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        _stream_line(builder, arguments[0], _load_line(builder, arguments[1]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@_intrinsic
def stream_scaled(typing: Any, target: Any, source: Any, factor: Any) -> Any:
    """One cache line of factor * source, past the caches."""
    del typing, target, source, factor

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        line = builder.fmul(_all_lanes(builder, arguments[2]), _load_line(builder, arguments[1]))
        _stream_line(builder, arguments[0], line)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64), generate


@_intrinsic
def stream_sum(typing: Any, target: Any, first: Any, second: Any, factor: Any) -> Any:
    """One cache line of first + factor * second, past the caches."""
    del typing, target, first, second, factor

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        scaled = builder.fmul(_all_lanes(builder, arguments[3]), _load_line(builder, arguments[2]), flags=("contract",))
        line = builder.fadd(_load_line(builder, arguments[1]), scaled, flags=("contract",))
        _stream_line(builder, arguments[0], line)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.float64), generate


_sched_yield: Any = types.ExternalFunction("sched_yield", types.int32())
_clock_gettime: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.intp))
_syscall: Any = types.ExternalFunction(
    "syscall", types.int64(types.int64, types.int64, types.int64, types.int64, types.int64, types.int64, types.int64)
)


@kernel()
def now_ns(scratch: Words) -> int:
    """Monotonic time; `scratch` holds two words of the caller's own."""
    _clock_gettime(np.int32(_CLOCK_MONOTONIC), scratch.ctypes.data)
    return int(scratch[0] * 1_000_000_000 + scratch[1])


@kernel()
def relax(spins: int) -> int:
    """Wait a moment inside a waiting loop: on the core at first, then by giving it away. The count of spins so far."""
    if spins < _SPINS_BEFORE_YIELD:
        pause()
    else:
        _sched_yield()
    return spins + 1


@kernel()
def barrier(sync: Words, threads: int) -> None:
    """Wait until all threads have come here. `sync` holds BARRIER_WORDS zeros at first and serves one team.

    Whoever waits longer than a moment sleeps in the kernel: where other programs share the CPUs, one that has slept is put
    back at once when it is woken, while one that has spun must wait for its turn again.
    """
    arrivals = sync.ctypes.data
    generation = arrivals + _GENERATION_OFFSET
    sleepers = arrivals + _SLEEPERS_OFFSET
    mine = load_atomic(generation)
    if add_atomic(arrivals, 1) == threads - 1:
        store_atomic(arrivals, 0)
        add_atomic(generation, 1)
        if add_atomic(sleepers, 0) > 0:
            _syscall(_FUTEX, generation, _FUTEX_WAKE, _ALL, 0, 0, 0)
        return
    for _ in range(_SPINS_BEFORE_SLEEP):
        if load_atomic(generation) != mine:
            return
        pause()
    add_atomic(sleepers, 1)
    while load_atomic(generation) == mine:
        _syscall(_FUTEX, generation, _FUTEX_WAIT, mine & 0xFFFFFFFF, 0, 0, 0)
    add_atomic(sleepers, -1)


class _Compiled(Listener):
    """Counts functions compiled, as numba tells."""

    def __init__(self) -> None:
        self.count = 0

    def on_start(self, event: Any) -> None:
        """A function is begun."""

    def on_end(self, event: Any) -> None:
        """A function is done."""
        del event
        self.count += 1


@contextmanager
def watch_compiling(console: Console) -> Generator[None]:
    """Tell progress while kernels are compiled inside: after the first start of a version they only are loaded."""
    compiled = _Compiled()
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(_LOOK_S):
            console.beat("compile", compiled.count, unit="functions")

    teller = threading.Thread(target=tell, name="compile progress")
    with install_listener("numba:compile", compiled):
        teller.start()
        try:
            yield
        finally:
            ended.set()
            teller.join()
    console.beat("compile", compiled.count, unit="functions")


def cython_address(module: str, name: str) -> int:
    """Where a function of one of scipy's Cython modules lies, for `call_pointers`."""
    address: int = get_cython_function_address(module, name)
    return address
