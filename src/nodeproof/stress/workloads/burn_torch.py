"""Devices of ``gpu_burn`` by torch's device interface: NVIDIA and AMD (``cuda``), Ascend (``npu``), Intel (``xpu``), ``cpu``.

Products are compared as integers of their words, so that a sign of zero or a NaN hides nothing. That the reference is right is
proven by a checksum: ``C x`` against ``A (B x)`` in fp64 for a random ``x``, within the rounding that the formats allow.
"""

from collections.abc import Sequence
from typing import Any, Final

import torch

from nodeproof.stress.workloads.burn_device import DeviceFacts, Unsupported, WordFault

__all__ = ["TorchDevice", "TorchDriver"]

_SEED: Final = 20_260_801
_ROWS_A_PIECE: Final = 1024
_BLOCK_WORDS: Final = 1 << 27
"""Words of one block of memory under test: 1 GiB."""
_PIECE_WORDS: Final = 1 << 24
"""Words compared at once: what a comparison takes beside the memory under test is 256 MiB."""
_ODD: Final = 0x1E3779B97F4A7C15
"""Odd factor that spreads a word's number over its bits (2^64 divided by the golden ratio, its top bit cleared)."""
_WORD: Final = (1 << 64) - 1
_FORMATS: Final[dict[str, torch.dtype]] = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
}
_WORDS: Final = {8: torch.int64, 4: torch.int32, 2: torch.int16}
_UNIT: Final = {"fp64": 2.0**-53, "fp32": 2.0**-24, "tf32": 2.0**-11, "bf16": 2.0**-9, "fp8": 2.0**-9}
"""Half of the distance between 1 and the next number, of what the product is kept in (tf32: of what its factors are cut to)."""
_SUM_UNIT: Final = {"fp64": 2.0**-53, "fp32": 2.0**-24, "tf32": 2.0**-11, "bf16": 2.0**-24, "fp8": 2.0**-13}
"""The same of what sums are kept in; tensor cores of the Hopper kind sum fp8 with 14 bits."""


class TorchDriver:
    """All devices that this torch can use."""

    def __init__(self) -> None:
        self.version = str(torch.__version__)

    def devices(self, kind: str) -> list[DeviceFacts]:
        """Those of a kind; ``auto`` never means the processor."""
        kinds = ("cuda", "npu", "xpu") if kind == "auto" else (kind,)
        for one in kinds:
            found = _devices(one)
            if found:
                return found
        return []

    def open(self, device: str) -> "TorchDevice":
        """One of them."""
        facts = next((facts for facts in _devices(device.partition(":")[0]) if facts.device == device), None)
        if facts is None:
            raise ValueError(f"torch knows no device {device}")
        return TorchDevice(facts)


def _devices(kind: str) -> list[DeviceFacts]:
    if kind == "cpu":
        return [DeviceFacts("cpu:0", "the processor", "", 0)]
    module = getattr(torch, kind, None)
    if module is None or not module.is_available():
        return []
    found = []
    for number in range(module.device_count()):
        facts = module.get_device_properties(number)
        address = _address(facts)
        found.append(DeviceFacts(f"{kind}:{number}", str(facts.name), address, int(getattr(facts, "total_memory", 0))))
    return found


def _address(facts: Any) -> str:  # noqa: ANN401 - each backend has a type of its own
    """PCI address, where this backend tells it."""
    bus = getattr(facts, "pci_bus_id", None)
    if not isinstance(bus, int):
        return ""
    return f"{getattr(facts, 'pci_domain_id', 0):04x}:{bus:02x}:{getattr(facts, 'pci_device_id', 0):02x}.0"


class TorchDevice:
    """One device. Its tensors live between :meth:`prepare` or :meth:`fill` and :meth:`release`."""

    def __init__(self, facts: DeviceFacts) -> None:
        self.facts = facts
        self._device = torch.device(facts.device if not facts.device.startswith("cpu") else "cpu")
        self._module: Any = getattr(torch, self._device.type)
        self._precision = ""
        self._factors: tuple[torch.Tensor, torch.Tensor] | None = None
        self._product = self._reference = torch.empty(0)
        self._scale = torch.empty(0)
        self._blocks: list[torch.Tensor] = []
        self._numbers = torch.empty(0, dtype=torch.int64)

    def free_bytes(self) -> int:
        """Memory that may be allocated now; of the processor a small part, because this is for tests."""
        if self._device.type == "cpu":
            return 64 << 20
        free, _ = self._module.mem_get_info(self._device)
        return int(free)

    def prepare(self, precision: str, size: int) -> float:
        """Factors and reference. Raises Unsupported."""
        self._precision = precision
        if precision == "tf32" and (self._device.type != "cuda" or self._module.get_device_capability(self._device) < (8, 0)):
            raise Unsupported("this device has no tf32")
        if self._device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        generator = torch.Generator(device=self._device).manual_seed(_SEED)
        plain = [
            torch.rand((size, size), generator=generator, device=self._device, dtype=torch.float32).sub_(0.5) for _ in range(2)
        ]
        try:
            self._factors = self._converted(plain, precision)
            self._product = self._multiplied()
            self.multiply(1)
        except (RuntimeError, TypeError, AttributeError, NotImplementedError) as error:
            if isinstance(error, getattr(torch, "OutOfMemoryError", MemoryError)):
                raise
            self.release()
            raise Unsupported(f"{type(error).__name__}: {str(error).splitlines()[0][:160]}") from None
        self._reference = self._product.clone()
        return self._checksum(size)

    def multiply(self, times: int) -> None:
        """So many products, each written over the one before it."""
        factors = self._loaded()
        for _ in range(times):
            if self._precision == "fp8":
                self._product = self._multiplied()
            else:
                torch.matmul(*factors, out=self._product)
        self._wait()

    def flip(self, where: str, offset: int, bits: int) -> None:
        """Change one word."""
        words = self._blocks[offset // _BLOCK_WORDS] if where == "memory" else self._words(self._product)
        at = offset % _BLOCK_WORDS if where == "memory" else offset
        wide = torch.iinfo(words.dtype).bits
        value = (int(words[at].item()) ^ bits) & ((1 << wide) - 1)
        words[at] = value - (1 << wide) if value >> (wide - 1) else value
        self._wait()

    def verify(self, most: int) -> tuple[int, Sequence[WordFault]]:
        """Product against reference, as integers."""
        actual, expected = self._words(self._product), self._words(self._reference)
        if torch.equal(actual, expected):
            return 0, ()
        return self._differences(self._precision, actual, expected, 0, most)

    def fill(self, size: int, key: int) -> int:
        """Blocks of memory with the pattern of ``key``; as much as can be had."""
        left = size // 8
        self._numbers = torch.arange(min(_PIECE_WORDS, max(1, left)), dtype=torch.int64, device=self._device)
        while left > 0:
            words = min(left, _BLOCK_WORDS)
            try:
                self._blocks.append(torch.empty(words, dtype=torch.int64, device=self._device))
            except RuntimeError:  # others took some meanwhile
                if not self._blocks:
                    raise
                break
            left -= words
        for start, piece in self._pieces():
            piece.copy_(self._pattern(start, piece.numel(), key))
        self._wait()
        return sum(int(block.numel()) for block in self._blocks) * 8

    def sweep(self, key: int, next_key: int, most: int) -> tuple[int, Sequence[WordFault]]:
        """Compare, and write the next pattern."""
        count = 0
        faults: list[WordFault] = []
        for start, piece in self._pieces():
            expected = self._pattern(start, piece.numel(), key)
            if not torch.equal(piece, expected):
                more, found = self._differences("memory", piece, expected, start, most - len(faults))
                count += more
                faults += found
            if next_key != key or count:
                piece.copy_(self._pattern(start, piece.numel(), next_key))
        self._wait()
        return count, faults

    def release(self) -> None:
        """Forget all tensors."""
        self._factors = None
        self._product = self._reference = self._scale = torch.empty(0)
        self._blocks = []
        if self._device.type != "cpu":
            self._module.empty_cache()

    def _converted(self, plain: list[torch.Tensor], precision: str) -> tuple[torch.Tensor, torch.Tensor]:
        if precision == "fp8":
            self._scale = torch.ones((), device=self._device)
            first, second = (matrix.to(torch.float8_e4m3fn) for matrix in plain)
            return first, second.t().contiguous().t()  # these kernels take the second factor by columns
        first, second = (matrix.to(_FORMATS[precision]) for matrix in plain)
        return first, second

    def _multiplied(self) -> torch.Tensor:
        first, second = self._loaded()
        if self._precision != "fp8":
            return torch.matmul(first, second)
        scaled = torch._scaled_mm  # noqa: SLF001 - torch's only way to its fp8 kernels
        return scaled(first, second, scale_a=self._scale, scale_b=self._scale, out_dtype=torch.bfloat16)

    def _checksum(self, size: int) -> float:
        """Largest relation of an error of ``C x`` to its bound, over all rows."""
        first, second = self._loaded()
        generator = torch.Generator(device=self._device).manual_seed(_SEED + 1)
        vector = torch.rand((size, 1), generator=generator, device=self._device, dtype=torch.float32).to(torch.float64)
        wide = _rows(second, vector, absolute=False)
        wide_bound = _rows(second, vector, absolute=True)
        expected, bound = _rows(first, wide, absolute=False), _rows(first, wide_bound, absolute=True)
        actual, kept = _rows(self._reference, vector, absolute=False), _rows(self._reference, vector, absolute=True)
        # Rounding of each word that is kept, and of the sums behind it; a factor of two for the sums of this check itself.
        limit = 2.0 * (_UNIT[self._precision] * kept + size * _SUM_UNIT[self._precision] * bound)
        return float(((actual - expected).abs() / limit).max().item())

    def _differences(
        self, where: str, actual: torch.Tensor, expected: torch.Tensor, start: int, most: int
    ) -> tuple[int, list[WordFault]]:
        places = torch.nonzero(actual != expected).flatten()
        mask = (1 << torch.iinfo(actual.dtype).bits) - 1
        faults = [
            WordFault(where, start + at, int(expected[at].item()) & mask, int(actual[at].item()) & mask)
            for at in places[: max(0, most)].tolist()
        ]
        return int(places.numel()), faults

    def _pieces(self) -> list[tuple[int, torch.Tensor]]:
        return [
            (number * _BLOCK_WORDS + at, block[at : at + _PIECE_WORDS])
            for number, block in enumerate(self._blocks)
            for at in range(0, block.numel(), _PIECE_WORDS)
        ]

    def _pattern(self, start: int, words: int, key: int) -> torch.Tensor:
        """A word's number, spread over its bits, and ``key``: a line of an address that sticks shows as well as a bit."""
        signed = key - (1 << 64) if key >> 63 else key
        return (self._numbers[:words] + start).mul_(_ODD).bitwise_xor_(signed)

    def _words(self, matrix: torch.Tensor) -> torch.Tensor:
        return matrix.view(_WORDS[matrix.element_size()]).flatten()

    def _loaded(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self._factors is None:
            raise RuntimeError("nothing was prepared")
        return self._factors

    def _wait(self) -> None:
        if self._device.type != "cpu":
            self._module.synchronize(self._device)


def _rows(matrix: torch.Tensor, vector: torch.Tensor, *, absolute: bool) -> torch.Tensor:
    """``matrix`` times ``vector`` in fp64, some rows at a time: a wide copy of the whole would not fit."""
    parts = []
    for start in range(0, matrix.shape[0], _ROWS_A_PIECE):
        wide = matrix[start : start + _ROWS_A_PIECE].to(torch.float64)
        parts.append((wide.abs() if absolute else wide) @ vector)
    return torch.cat(parts)
