"""The files of the page: sums of what is vendored, weight, words in both languages, and what must not stand in our own code."""

import gzip
import hashlib
import re
from pathlib import Path

import pytest

from nodeproof.web.static_files import STATIC_DIRECTORY, load_static

STATIC = Path(STATIC_DIRECTORY)
OWN = sorted([*STATIC.glob("js/*.js"), STATIC / "index.html", STATIC / "style.css"])
PAGE_LIMIT = 60 * 1024


def test_vendored_files_are_the_ones_that_were_taken() -> None:
    readme = (STATIC / "vendor" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (\S+) \| (\S+) \| ([\d.]+) \| \S+ \| (\S+) \| `([0-9a-f]{64})` \|$", readme, re.MULTILINE)
    sums = {row[0]: row[4] for row in rows}
    assert sums == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in STATIC.glob("vendor/*.[jc]s*")}
    third_parties = (Path(__file__).parents[3] / "THIRD_PARTY.md").read_text("utf-8").lower()
    for _, package, version, licence, _ in rows:
        assert re.search(rf"\b{package}\b.*\| {re.escape(version)} \| {licence} ", third_parties, re.IGNORECASE), package
        assert (STATIC / "vendor" / f"LICENSE.{package}").exists()


def test_the_whole_page_is_light() -> None:
    weights = {name: len(gzip.compress(body.plain, 9, mtime=0)) for name, body in load_static().items()}
    assert sum(weights.values()) <= PAGE_LIMIT, weights


def test_both_languages_have_the_same_words() -> None:
    keys = {}
    for language in ("en", "zh"):
        lines = re.findall(
            r'^  "([^"]+)": "((?:[^"\\]|\\.)+)",$', (STATIC / "js" / f"{language}.js").read_text("utf-8"), re.MULTILINE
        )
        assert len(lines) == len(dict(lines))
        keys[language] = {key: set(re.findall(r"\{(\w+)\}", text)) for key, text in lines}
    assert keys["en"] == keys["zh"]


def test_every_word_that_the_page_uses_is_there() -> None:
    known = set(re.findall(r'^  "([^"]+)"', (STATIC / "js" / "en.js").read_text("utf-8"), re.MULTILINE))
    used = set()
    for path in STATIC.glob("js/*.js"):
        used |= set(re.findall(r'\bt\("([^"]+)"', path.read_text("utf-8")))
    assert used - known == set()
    assert len(used) > 50


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_text_never_becomes_markup_or_code(path: Path) -> None:
    text = path.read_text("utf-8")
    bad = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|javascript:| style=|\son\w+=\"|<script>"
    assert re.findall(bad, text) == []


def test_nothing_is_loaded_from_elsewhere() -> None:
    for path in OWN:
        assert re.findall(r"""["'(`=](?:https?:)?//\w""", path.read_text("utf-8")) == [], path.name


def test_colours_stand_in_one_list() -> None:
    rest = (STATIC / "style.css").read_text("utf-8").split("}", 1)[1]
    assert re.findall(r"#[0-9a-f]{3,8}\b", rest) == []
