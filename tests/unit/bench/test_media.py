"""Pictures and clips that are drawn here, read back by decoders of our own; what is asked about them; prices by size."""

import base64
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeproof.bench.media.canvas import COLOURS, PALETTE, Canvas
from nodeproof.bench.media.geometry import LADDER, Price, Rule, declared_rule, infer
from nodeproof.bench.media.gif import encode_gif
from nodeproof.bench.media.items import clip_item, colours_item, counts_item, mixed_item, number_item, number_picture
from nodeproof.bench.media.mp4 import encode_mp4
from nodeproof.bench.media.png import encode_png
from support.seeing import Pixels, decode_gif, decode_mp4, decode_png


def _pixels(canvas: Canvas) -> Pixels:
    table = np.array(list(PALETTE.values()), np.uint8)
    found: Pixels = table[np.array([list(row) for row in canvas.rows])]
    return found


def _noise(width: int, height: int, seed: int) -> Canvas:
    chance = random.Random(seed)  # noqa: S311 - noise
    canvas = Canvas(width, height)
    for row in canvas.rows:
        row[:] = bytes(chance.randrange(len(COLOURS)) for _ in range(width))
    return canvas


@settings(max_examples=25)
@given(st.integers(1, 90), st.integers(1, 70), st.integers(0, 1 << 30))
def test_png_and_gif_give_back_what_was_drawn(width: int, height: int, seed: int) -> None:
    canvas = _noise(width, height, seed)
    assert np.array_equal(decode_png(encode_png(canvas)), _pixels(canvas))
    (frame,) = decode_gif(encode_gif([canvas], 0.5))
    assert np.array_equal(frame, _pixels(canvas))


def test_a_gif_whose_table_of_codes_runs_full() -> None:
    canvas = _noise(300, 300, 1)
    frames = decode_gif(encode_gif([canvas, Canvas(300, 300, "red")], 0.25))
    assert np.array_equal(frames[0], _pixels(canvas))
    assert frames[1][7, 7].tolist() == [220, 20, 20]


@pytest.mark.parametrize("colour", COLOURS)
def test_mp4_gives_back_every_colour(colour: str) -> None:
    frames = decode_mp4(encode_mp4([Canvas(32, 48, colour)], 4))
    assert len(frames) == 1
    assert frames[0].shape == (48, 32, 3)
    assert np.abs(frames[0].astype(int) - np.array(PALETTE[colour])).max() <= 3  # of eight bits of chroma


def test_mp4_keeps_order_place_and_repeats() -> None:
    one, two = Canvas(64, 32, "red"), Canvas(64, 32, "blue")
    one.rectangle(0, 0, 16, 16, "white")
    frames = decode_mp4(encode_mp4([one, one, one, two, two, one], 4))
    assert [frame[20, 40].tolist()[0] > 100 for frame in frames] == [True, True, True, False, False, True]
    assert np.abs(frames[2].astype(int) - _pixels(one)).max() <= 3
    assert frames[0][5, 5].min() > 250
    assert frames[0][5, 20].max() < 235


def test_many_repeats_count_beyond_what_a_frame_number_holds() -> None:
    assert len(decode_mp4(encode_mp4([Canvas(16, 16, "green")] * 600, 25))) == 600


def test_what_is_drawn_beyond_the_border_is_left_out() -> None:
    canvas = Canvas(8, 8)
    canvas.rectangle(-3, -3, 5, 5, "red")
    canvas.rectangle(20, 20, 5, 5, "red")
    canvas.disc(7, 7, 3, "blue")
    assert canvas.rows[0][:3] == bytes([2, 2, 0])
    assert canvas.rows[7][7] == COLOURS.index("blue")
    assert {len(row) for row in canvas.rows} == {8}


# Questions


def test_items_are_the_same_again_and_differ_by_seed() -> None:
    for make in (number_item, colours_item, counts_item):
        assert make(5) == make(5)
        assert make(5).parts != make(6).parts
        assert 0 < make(5).chance < 0.03
    assert len({number_item(seed).expected for seed in range(200)}) > 190
    assert clip_item(3).expected == clip_item(3, reverse=True).expected[::-1]
    assert len(clip_item(3).expected) == len(set(clip_item(3).expected)) == 4
    assert mixed_item(3).expected == (*number_item(3).expected, *clip_item(3).expected)


def test_what_is_a_right_answer() -> None:
    item = number_item(5)
    (number,) = item.expected
    assert item.right(f"The number is {number}.")
    assert not item.right(f"{number} or {int(number) + 1}")
    assert not item.right("")
    assert not item.right(" ".join(number))
    colours = colours_item(5)
    assert colours.right(", ".join(colours.expected).upper())
    assert colours.right(" then ".join(colours.expected))
    assert not colours.right(", ".join(colours.expected[::-1]))
    assert not colours.right(", ".join(colours.expected[:3]))
    counts = counts_item(5)
    assert counts.right("{} and {}".format(*counts.expected))
    mixed = mixed_item(5)
    assert mixed.right(f"{mixed.expected[0]}: {', '.join(mixed.expected[1:])}")


def test_a_picture_goes_as_a_data_address() -> None:
    part = number_item(5).parts[0]
    assert part["type"] == "image_url"
    holder = part["image_url"]
    assert isinstance(holder, dict)
    kind, _, data = str(holder["url"]).partition(";base64,")
    assert kind == "data:image/png"
    assert decode_png(base64.b64decode(data)).shape == (224, 224, 3)


def test_digits_fill_their_picture() -> None:
    ink = _pixels(number_picture("8888", 640, 480)).sum(axis=2) == 0
    columns = np.flatnonzero(ink.any(axis=0))
    assert columns[-1] - columns[0] > 0.8 * 640


# Prices


def _prices(rule: Rule) -> list[Price]:
    return [Price(width, height, rule.tokens(width, height)) for width, height in LADDER]


def test_tokens_by_hand() -> None:
    rule = Rule(28, "nearest", 2)
    assert rule.tokens(224, 224) == 8 * 8 + 2
    assert rule.tokens(1280, 720) == 46 * 26 + 2  # 45.7 x 25.7
    capped = Rule(28, "nearest", 0, 512 * 512)
    # 1280 x 720 shrinks by sqrt(921600 / 262144) = 1.875 to 682 x 384: 24 x 13 squares.
    assert capped.tokens(1280, 720) == 24 * 13
    assert capped.tokens(224, 224) == 64
    assert str(capped) == "one token for 28 x 28 pixels, sizes rounded nearest, 0 around, at most 262144 pixels"


@pytest.mark.parametrize("rule", [Rule(28, "nearest", 2), Rule(32, "nearest", 2), Rule(14, "up", 0), Rule(16, "down", 1)])
def test_a_rule_is_found_by_its_prices(rule: Rule) -> None:
    found = infer(_prices(rule))
    assert found is not None
    assert [found.tokens(*size) for size in LADDER] == [rule.tokens(*size) for size in LADDER]
    assert found.side == rule.side


def test_prices_without_a_rule() -> None:
    assert infer([Price(width, height, 576) for width, height in LADDER]) is None
    odd = _prices(Rule(28, "nearest", 2))
    odd[3] = odd[3]._replace(tokens=odd[3].tokens + 1)
    assert infer(odd) is None
    assert infer(odd[:2]) is None


def test_a_declared_rule_names_what_breaks_it() -> None:
    prices = _prices(Rule(32, "nearest", 2))
    assert declared_rule(prices, 32, 0) == (Rule(32, "nearest", 2), [])
    prices[6] = prices[6]._replace(tokens=500)
    rule, odd = declared_rule(prices, 32, 0)
    assert (rule.constant, odd) == (2, [prices[6]])
    assert len(declared_rule(prices, 28, 0)[1]) >= 6
    assert declared_rule([], 28, 0)[1] == []
