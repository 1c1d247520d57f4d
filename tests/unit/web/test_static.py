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


def reached(*names: str) -> set[str]:
    """Files that the browser loads with ``names``: whatever a page refers to, and what modules import before they run."""
    found: set[str] = set()
    wanted = list(names)
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        found.add(name)
        text = (STATIC / name).read_text("utf-8")
        folder = str(Path(name).parent)
        wanted += re.findall(r'(?:href|src)="/static/([^"]+)"', text) if name.endswith(".html") else []
        if name.endswith(".js"):
            wanted += [
                str(Path(folder, one)) for one in re.findall(r'^(?:import|export) .*?from "\./([^"]+)";', text, re.MULTILINE)
            ]
            wanted += [str(Path(folder).parent / one) for one in re.findall(r'from "\.\./([^"]+)"', text)]
    return found


def weight(names: set[str]) -> int:
    files = load_static()
    return sum(len(gzip.compress(files[name].plain, 9, mtime=0)) for name in names)


FIRST = reached("index.html")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_view_is_light(language: str) -> None:
    assert {"js/main.js", "js/overview.js", "vendor/preact.js", "js/base.js", "style.css"} <= FIRST
    assert weight(FIRST | {f"js/{language}.js"}) <= PAGE_LIMIT * 0.6


@pytest.mark.parametrize("page", ["component", "stress", "runs", "faults", "energy", "doctor"])
def test_what_a_page_adds_is_light(page: str) -> None:
    added = reached(f"js/{page}.js") - FIRST
    assert weight(added) <= 16 * 1024
    # The library of the charts comes with the first chart of a visit.
    assert weight(FIRST | added | {"js/zh.js"}) <= PAGE_LIMIT


def words(language: str) -> dict[str, str]:
    pairs = re.findall(
        r'^  "([^"]+)": "((?:[^"\\]|\\.)+)",$', (STATIC / "js" / f"{language}.js").read_text("utf-8"), re.MULTILINE
    )
    assert len(pairs) == len(dict(pairs))
    return dict(pairs)


SAME_IN_BOTH = {
    "component.cpu": "an abbreviation that Chinese uses as it is",
    "component.gpu": "likewise",
    "component.npu": "likewise",
    "bench.stream": "name of a program",
    "bench.hpl": "name of a program",
    "bench.hpcg": "name of a program",
}


def test_both_languages_have_the_same_words() -> None:
    english, chinese = words("en"), words("zh")
    assert list(english) == list(chinese)
    for key, text in english.items():
        assert set(re.findall(r"\{(\w+)\}", text)) == set(re.findall(r"\{(\w+)\}", chinese[key])), key
    assert {key for key, text in english.items() if chinese[key] == text} == set(SAME_IN_BOTH)


def test_every_word_that_the_page_uses_is_there_and_no_other() -> None:
    known = set(words("en"))
    used, made = set(), set()
    for path in STATIC.glob("js/*.js"):
        if path.stem in {"en", "zh"}:
            continue
        text = path.read_text("utf-8")
        used |= set(re.findall(r'"([a-z_]+(?:\.[a-z_]+)+)"', text))
        made |= {f"{kind}." for kind in re.findall(r'\bword\("([^"]+)"', text)}
        made |= set(re.findall(r"\bt\(`((?:[a-z_]+\.)+)\$", text))
        assert set(re.findall(r'\bt\("([^"]+)"', text)) <= known, path.name
    idle = {key for key in known - used if not any(key.startswith(kind) for kind in made)}
    assert idle == set()


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
