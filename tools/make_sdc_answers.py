"""Work out the answers of the `cpu_sdc` workload in another way than the workload does, and write them to its module.

The workload runs machine code compiled by LLVM, BLAS, OpenSSL, zlib and liblzma. Here everything is Python integers: sums
and products as they are taught at school, floating-point results as exact fractions rounded once to 53 bits (half to even),
square roots by integer square root, SHA-2 and CRC-32 from their standards (FIPS 180-4, ISO 3309), sorting by `sorted`.

    python tools/make_sdc_answers.py          # compare with the module
    python tools/make_sdc_answers.py --write  # write the module
"""

import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

MODULE = Path(__file__).resolve().parent.parent / "src/nodeproof/stress/workloads/sdc_answers.py"
MASK = (1 << 64) - 1

HEADER = '''"""Answers of the `cpu_sdc` kernels. Made by tools/make_sdc_answers.py from integer arithmetic alone; it tells how."""

from typing import Final

__all__ = ["ANSWERS"]

ANSWERS: Final = {
'''


def numbers(seed: int) -> Iterator[int]:
    """Knuth's 64-bit linear congruence."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        yield state


def fold(digest: int, word: int) -> int:
    """Rotate by 13 and take the word in."""
    return ((digest << 13 | digest >> 51) & MASK) ^ (word & MASK)


def integer() -> int:
    """Multiplication, division and remainder of 64-bit words."""
    digest = 0
    for state, _ in zip(numbers(1), range(20_000), strict=False):
        divisor = (digest ^ state) & 0xFFFFF | 1
        digest = fold(digest, state // divisor + (state % divisor) * (state >> 32))
    return digest


def rounded(value: Fraction) -> Fraction:
    """To 53 bits, half to even; for positive and negative numbers of ordinary size."""
    if value == 0:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length() - 52
    scaled = value / Fraction(2) ** exponent
    while abs(scaled) >= 1 << 53:
        exponent, scaled = exponent + 1, scaled / 2
    while abs(scaled) < 1 << 52:
        exponent, scaled = exponent - 1, scaled * 2
    return round(scaled) * Fraction(2) ** exponent  # Python rounds half to even, exactly


def root(value: Fraction) -> Fraction:
    """Square root, rounded to 53 bits: the integer root of enough bits, with a last bit that tells whether it is exact."""
    shift = 220 + (value.denominator.bit_length() & 1)
    scaled = (value.numerator << 2 * shift) // value.denominator
    whole = math.isqrt(scaled)
    sticky = int(whole * whole != scaled)
    return rounded(Fraction(whole * 2 + sticky, 1 << (shift + 1)))


def bits(value: Fraction) -> int:
    """The 64 bits of the double that is this number."""
    sign, value = int(value < 0), abs(value)
    exponent = 0
    while value >= 2:
        exponent, value = exponent + 1, value / 2
    while value < 1:
        exponent, value = exponent - 1, value * 2
    return sign << 63 | (exponent + 1023) << 52 | int((value - 1) * (1 << 52))


def floating() -> int:
    """Fused multiply-add, square root and division."""
    digest = 0
    for lane in range(32):
        x = 1 + Fraction(lane, 64)
        for _ in range(256):
            x = rounded(x * Fraction("1.640625") + Fraction("0.3359375"))
            x = rounded(root(x) + rounded(7 / x))
            x = rounded(rounded(x / Fraction("2.5")) + Fraction("0.5625"))
            digest = fold(digest, bits(x))
    return digest


def signed(word: int) -> int:
    """Of 64 bits."""
    word &= MASK
    return word - (1 << 64) if word >> 63 else word


def vector() -> int:
    """Lanes of floating-point and integer operations."""
    digest = 0
    for lane in range(1024):
        x, word = Fraction(1, 8) + Fraction(lane, 4096), signed(lane * 0x9E3779B97F4A7C + 1)
        for _ in range(32):
            x = rounded(rounded(x * x) * Fraction("-1.90625") + 1)
            word = signed(word * 0x5851F42D4C957F2D) ^ signed((word >> 29) + lane)
        digest = fold(fold(digest, bits(x)), word)
    return digest


def matrix() -> int:
    """The product of two matrices of whole numbers."""
    order, source = 192, numbers(3)
    left, right = [[0] * order for _ in range(order)], [[0] * order for _ in range(order)]
    for row in range(order):
        for column in range(order):
            left[row][column] = (next(source) >> 44) - (1 << 19)
            right[row][column] = (next(source) >> 44) - (1 << 19)
    columns = list(zip(*right, strict=True))
    digest = 0
    for values in left:
        for others in columns:
            digest = fold(digest, sum(a * b for a, b in zip(values, others, strict=True)))
    return digest


def data() -> bytes:
    """What is hashed and packed."""
    words = ((word >> 40) & 0x0F0F0F for word, _ in zip(numbers(4), range((1 << 17) // 8), strict=False))
    return b"".join(word.to_bytes(8, "little") for word in words)


def first_primes(count: int) -> list[int]:
    """The first prime numbers."""
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    return primes


def integer_root(number: int, degree: int) -> int:
    """The largest whole number whose power is not above."""
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low


def sha2(message: bytes, width: int, rounds: int, big: tuple[tuple[int, ...], ...], small: tuple[tuple[int, ...], ...]) -> bytes:
    """FIPS 180-4 section 6; constants are fraction bits of roots of primes (4.2), `small` ends in a shift."""
    mask = (1 << width) - 1
    primes = first_primes(rounds)
    constants = [integer_root(prime << 3 * width, 3) & mask for prime in primes]
    state = [integer_root(prime << 2 * width, 2) & mask for prime in primes[:8]]

    def rotated(word: int, *counts: int) -> int:
        result = 0
        for count in counts:
            result ^= (word >> count | word << (width - count)) & mask
        return result

    block = width * 2
    length = len(message) * 8
    message += b"\x80"
    message += bytes(-(len(message) + block // 8) % block) + length.to_bytes(block // 8, "big")
    for start in range(0, len(message), block):
        schedule = [
            int.from_bytes(message[start + index : start + index + width // 8], "big") for index in range(0, block, width // 8)
        ]
        for index in range(16, rounds):
            early, late = schedule[index - 15], schedule[index - 2]
            schedule.append(
                (
                    schedule[index - 16]
                    + (rotated(early, *small[0][:2]) ^ early >> small[0][2])
                    + schedule[index - 7]
                    + (rotated(late, *small[1][:2]) ^ late >> small[1][2])
                )
                & mask
            )
        a, b, c, d, e, f, g, h = state
        for index in range(rounds):
            first = h + rotated(e, *big[1]) + (e & f ^ ~e & mask & g) + constants[index] + schedule[index]
            second = rotated(a, *big[0]) + (a & b ^ a & c ^ b & c)
            a, b, c, d, e, f, g, h = (first + second) & mask, a, b, c, (d + first) & mask, e, f, g
        state = [(old + new) & mask for old, new in zip(state, (a, b, c, d, e, f, g, h), strict=True)]
    return b"".join(word.to_bytes(width // 8, "big") for word in state)


def hashes() -> int:
    """SHA-256 and SHA-512 of the data."""
    message = data()
    short = sha2(message, 32, 64, ((2, 13, 22), (6, 11, 25)), ((7, 18, 3), (17, 19, 10)))
    long = sha2(message, 64, 80, ((28, 34, 39), (14, 18, 41)), ((1, 8, 7), (19, 61, 6)))
    return int.from_bytes(short + long, "big")


def compression() -> int:
    """CRC-32 of the data, twice: packing and unpacking must not change it."""
    check = 0xFFFFFFFF
    for byte in data():
        check ^= byte
        for _ in range(8):
            check = check >> 1 ^ (0xEDB88320 if check & 1 else 0)
    check ^= 0xFFFFFFFF
    return check << 32 | check


def sorting() -> int:
    """Sorted random numbers and the lengths of Collatz chains."""
    digest = 0
    for number in sorted(state >> 1 for state, _ in zip(numbers(2), range(8192), strict=False)):
        digest = fold(digest, number)
    for first in range(1, 4001):
        number, length = first, 0
        while number != 1:
            number = 3 * number + 1 if number & 1 else number >> 1
            length += 1
        digest = fold(digest, length)
    return digest


WAYS: dict[str, Callable[[], int]] = {
    "integer": integer,
    "float": floating,
    "vector": vector,
    "matrix": matrix,
    "hash": hashes,
    "compression": compression,
    "sort": sorting,
}


def module() -> str:
    """The text of the module."""
    lines = []
    for name, work in WAYS.items():
        digits = f"{work():X}"
        digits = digits.rjust(-(-len(digits) // 16) * 16, "0")
        if len(digits) == 16:
            lines.append(f'    "{name}": 0x{digits},\n')
        else:
            parts = "".join(f'        "{digits[start : start + 96]}"\n' for start in range(0, len(digits), 96))
            lines.append(f'    "{name}": int(\n{parts}        "",\n        16,\n    ),\n'.replace('"\n        "",', '",'))
    return HEADER + "".join(lines) + "}\n"


def main() -> int:
    """Write or compare; 1 when they differ."""
    text = module()
    if "--write" in sys.argv[1:]:
        MODULE.write_text(text, encoding="utf-8")
        return 0
    if MODULE.read_text(encoding="utf-8") == text:
        print("the answers agree")
        return 0
    print(f"{MODULE} differs from what was worked out")
    return 1


if __name__ == "__main__":
    sys.exit(main())
