"""Sweeps over a part of memory, word by word, upwards or downwards.

What a word must hold is `background` in a march, and its own address mixed with `background` in the address pattern. A
sweep first holds each word against what the sweep before left, then writes what the next one expects.
"""

from nodeproof.stress.workloads.native import Words, kernel

__all__ = ["FIELDS", "KEPT", "sweep", "wash", "write"]

KEPT = 64
"""Errors kept in full, for each thread; all are counted."""
FIELDS = 3
"""Of an error kept: place of the word, what it must hold, what it held."""
_BLOCK = 4096  # words looked at together: fast where all are right


@kernel()
def _wanted(base: int, place: int, background: int, by_address: int) -> int:
    return (base + 8 * place) ^ background if by_address else background


@kernel()
def write(words: Words, base: int, background: int, by_address: int, done: Words) -> None:
    """Write a pattern upwards."""
    for first in range(0, words.size, _BLOCK):
        part = words[first : first + _BLOCK]
        for place in range(part.size):
            part[place] = _wanted(base, first + place, background, by_address)
        done[0] += part.size


@kernel()
def _differences(part: Words, base: int, first: int, background: int, by_address: int) -> int:
    """All differing bits of some words taken together; 0 when there are none."""
    differing = 0
    for place in range(part.size):
        differing |= part[place] ^ _wanted(base, first + place, background, by_address)
    return differing


@kernel()
def _note(part: Words, base: int, first: int, background: int, by_address: int, errors: Words, count: int) -> int:
    """Keep the errors of some words; the count of errors so far."""
    for place in range(part.size):
        wanted = _wanted(base, first + place, background, by_address)
        if part[place] != wanted:
            if count < KEPT:
                errors[count, 0] = first + place
                errors[count, 1] = wanted
                errors[count, 2] = part[place]
            count += 1
    return count


@kernel()
def sweep(
    words: Words, base: int, background: int, inverted: int, by_address: int, downwards: int, errors: Words, done: Words
) -> int:
    """Hold all words against the pattern, or its complement if `inverted`, and leave the other of the two; the count of errors.

    A downward sweep takes blocks of words from the end; within a block all words are read before any is written.
    """
    mask = -1 if inverted else 0
    count = 0
    blocks = (words.size + _BLOCK - 1) // _BLOCK
    for turn in range(blocks):
        first = ((blocks - 1 - turn) if downwards else turn) * _BLOCK
        part = words[first : first + _BLOCK]
        if _differences(part, base, first, background ^ mask, by_address) != 0:
            count = _note(part, base, first, background ^ mask, by_address, errors, count)
        for place in range(part.size):
            part[place] = _wanted(base, first + place, background ^ ~mask, by_address)
        done[0] += part.size
    return count


@kernel()
def wash(words: Words, done: Words) -> int:
    """Read some words, to have the caches forget others. Their sum, so that the reading is not left out."""
    total = 0
    for place in range(words.size):
        total += words[place]
    done[0] += words.size
    return total
