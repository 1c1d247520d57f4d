import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_mounts import Mount, has_option, parse, parse_mountinfo, visible


def _mount(mount_id: int, parent: int, point: bytes, device: str = "8:1") -> Mount:
    return Mount(mount_id, parent, device, b"/", point, "rw", "ext4", b"/dev/sda1", "rw")


def test_one_line_of_mountinfo() -> None:
    raw = rb"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 shared:7 - ext3 /dev/ro\134ot rw,errors=continue" + b"\n"
    assert parse_mountinfo(raw) == [
        Mount(36, 35, "98:0", b"/mnt1", b"/mnt 2", "rw,noatime", "ext3", b"/dev/ro\\ot", "rw,errors=continue")
    ]


def test_defect_32_octal_escapes_are_decoded_and_bytes_kept() -> None:
    raw = b"1 0 8:1 / /a\\011b\\012c\\134d\\377 rw - ext4 /dev/sda1 rw\n"
    assert parse_mountinfo(raw)[0].mount_point == b"/a\tb\nc\\d\xff"


def test_a_backslash_that_is_no_escape_stays() -> None:
    assert parse(rb"/dev/sda1 /a\9b\04 ext4 rw 0 0")[0].mount_point == rb"/a\9b\04"


def test_a_source_that_is_empty() -> None:
    assert parse_mountinfo(b"1 0 0:5 / /t rw - tmpfs  rw,size=4k\n")[0].source == b""


@pytest.mark.parametrize(
    "line",
    [
        b"x 0 8:1 / /a rw - ext4 /dev/sda1 rw",
        b"1 0 8-1 / /a rw - ext4 /dev/sda1 rw",
        b"1 0 8:1 / a rw - ext4 /dev/sda1 rw",
        b"1 0 8:1 / /a rw - ext4",
        b"1 0 8:1 / /a rw ext4 /dev/sda1 rw",
        b"",
    ],
)
def test_a_damaged_line_costs_itself_only(line: bytes) -> None:
    raw = line + b"\n2 1 8:2 / /b rw - xfs /dev/sda2 rw\n"
    assert [mount.mount_point for mount in parse_mountinfo(raw)] == [b"/b"]


def test_text_of_another_kind_is_named() -> None:
    assert parse_mountinfo(b"") == []
    with pytest.raises(ParseError, match="mountinfo, line 1"):
        parse_mountinfo(b"nothing of the sort")


def test_fstab_with_comments_and_short_lines() -> None:
    raw = b"# /etc/fstab\n\n/dev/sda1\t/\text4\terrors=remount-ro 0 1\nUUID=1 /b xfs\nlost\n"
    assert [(entry.mount_point, entry.fstype, entry.options) for entry in parse(raw)] == [
        (b"/", "ext4", "errors=remount-ro"),
        (b"/b", "xfs", "defaults"),
    ]


def test_an_option_is_a_whole_word() -> None:
    assert has_option("rw,relatime,ro", "ro")
    assert not has_option("rw,errors=remount-ro", "ro")


def test_a_mount_on_top_hides_the_one_below() -> None:
    below, above = _mount(2, 1, b"/mnt"), _mount(3, 2, b"/mnt", "8:2")
    assert visible([_mount(1, 0, b"/"), below, above]) == [_mount(1, 0, b"/"), above]


def test_a_mount_further_up_hides_those_under_it() -> None:
    root, deep = _mount(1, 0, b"/"), _mount(2, 1, b"/mnt/a/b")
    cover = _mount(3, 1, b"/mnt", "8:2")
    assert visible([root, deep, cover]) == [root, cover]


def test_what_lies_on_a_hidden_mount_is_hidden_too() -> None:
    root, below, child, above = _mount(1, 0, b"/"), _mount(2, 1, b"/mnt"), _mount(4, 2, b"/mnt/x"), _mount(3, 2, b"/mnt")
    assert visible([root, below, child, above]) == [root, above]


def test_neighbours_with_a_common_beginning_do_not_hide_each_other() -> None:
    mounts = [_mount(1, 0, b"/"), _mount(2, 1, b"/mnt/ab"), _mount(3, 1, b"/mnt/a"), _mount(4, 3, b"/mnt/a/c")]
    assert visible(mounts) == mounts


def test_ids_that_go_in_a_circle_end() -> None:
    mounts = [_mount(1, 2, b"/a"), _mount(2, 1, b"/b"), _mount(3, 3, b"/")]
    assert visible(mounts) == mounts


_PATHS = st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=3).map(lambda parts: b"/" + b"/".join(parts))


@given(st.lists(st.tuples(st.integers(0, 6), _PATHS), max_size=8))
def test_something_is_always_visible_where_anything_is_mounted(entries: list[tuple[int, bytes]]) -> None:
    mounts = [_mount(number, min(parent, number), path) for number, (parent, path) in enumerate(entries)]
    assert {mount.mount_id for mount in visible(mounts)} <= {mount.mount_id for mount in mounts}


@given(st.binary(max_size=200))
def test_arbitrary_bytes(raw: bytes) -> None:
    parse(raw)
    try:
        mounts = parse_mountinfo(raw)
    except ParseError:
        return
    assert all(mount.mount_point.startswith(b"/") for mount in mounts)


@given(st.binary(min_size=1, max_size=30).filter(lambda path: b"\0" not in path))
def test_every_name_comes_back(name: bytes) -> None:
    escaped = b"".join(b"\\%03o" % byte if byte in b" \t\n\\#" else bytes((byte,)) for byte in name)
    mount = parse_mountinfo(b"1 0 8:1 / /" + escaped + b" rw - ext4 /dev/" + escaped + b" rw\n")[0]
    assert (mount.mount_point, mount.source) == (b"/" + name, b"/dev/" + name)
