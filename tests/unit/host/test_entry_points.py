"""Plug-ins, found without importlib.metadata and equal to what it finds."""

from importlib import metadata
from pathlib import Path

import pytest

from nodeproof.errors import NodeproofError
from nodeproof.host.entry_points import EntryPoint, entry_points, offers, parse_entry_points

GROUP = "nodeproof.collectors"


def test_same_answer_as_the_standard_library() -> None:
    ours = {(point.name, point.target) for point in entry_points(GROUP)}
    assert ours == {(point.name, point.value) for point in metadata.entry_points(group=GROUP)}
    assert {"chassis", "cpu", "disk", "gpu", "memory", "network", "npu"} <= {name for name, _ in ours}


def test_sections_comments_and_extras() -> None:
    text = "[other]\na = x:y\n\n[nodeproof.collectors]\n# c = no:no\n; d = no:no\nb = m.n : f [extra]\nbroken\n[last]\ne = z\n"
    assert list(parse_entry_points(text, GROUP)) == [("b", "m.n : f")]
    assert list(parse_entry_points("", GROUP)) == []


def test_first_of_two_with_one_name_counts(tmp_path: Path) -> None:
    for folder, target in (("first", "a:x"), ("second", "b:x")):
        info = tmp_path / folder / "p-1.dist-info"
        info.mkdir(parents=True)
        (info / "entry_points.txt").write_text(f"[{GROUP}]\nthing = {target}\n")
    (tmp_path / "first" / "q-1.dist-info").mkdir()
    found = entry_points(GROUP, [str(tmp_path / "absent"), str(tmp_path / "first"), str(tmp_path / "second")])
    assert found == [EntryPoint("thing", "a:x", "p-1.dist-info")]


def test_loading_gives_the_attribute_or_names_the_plug_in() -> None:
    assert EntryPoint("p", "os.path:join", "d").load() is __import__("os").path.join
    assert EntryPoint("p", "os.path", "d").load() is __import__("os").path
    with pytest.raises(NodeproofError, match=r"plug-in p \(os:no_such of d\) cannot be loaded: .*no_such"):
        EntryPoint("p", "os:no_such", "d").load()
    with pytest.raises(NodeproofError, match=r"plug-in p \(no_such_module:x of d\) cannot be loaded"):
        EntryPoint("p", "no_such_module:x", "d").load()


def test_offers_tell_of_rivals_and_count_one_distribution_once(tmp_path: Path) -> None:
    for folder, target in (("first", "a:x"), ("second", "b:x"), ("third", "a:x")):
        info = tmp_path / folder / "p-1.dist-info"
        info.mkdir(parents=True)
        (info / "entry_points.txt").write_text(f"[{GROUP}]\nthing = {target}\n")
    found = offers(GROUP, [str(tmp_path / name) for name in ("first", "second", "third", "first")])
    assert [(point.name, point.target) for point in found] == [("thing", "a:x"), ("thing", "b:x")]
