"""What is learned in one place is replaced in all of them, and what has the form of an address anywhere."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.operate.bundle.places import names_of_users, smbios_serials
from nodeproof.operate.bundle.redact import Redactor


@given(
    st.binary(max_size=40).filter(lambda raw: b"\0" not in raw),
    st.ip_addresses().filter(lambda one: one.is_global and not one.is_multicast),
    st.binary(min_size=6, max_size=6).filter(lambda raw: len(set(raw)) > 2),
)
def test_no_address_is_left_whatever_stands_around_it(noise: bytes, address: ipaddress.IPv4Address, mac: bytes) -> None:
    redactor = Redactor()
    hardware = ":".join(f"{byte:02x}" for byte in mac)
    text = noise + f" at {address} via {hardware}, ".encode() + noise

    bare = redactor.redact("", text)

    assert str(address).encode() not in bare
    assert hardware.encode() not in bare
    assert redactor.leaks(bare) == []


@given(st.binary(max_size=200))
def test_any_bytes_go_through_and_bytes_that_are_no_text_keep_their_length(raw: bytes) -> None:
    redactor = Redactor()
    redactor.learn_from("/sys/x/serial", raw)

    bare = redactor.redact("/some/file", raw)

    assert redactor.leaks(bare) == []
    if b"\0" in raw:
        assert len(bare) == len(raw)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        (b"10.1.2.3", b"198.18.0.1"),
        (b"127.0.0.1 0.0.0.0 255.255.255.0", b"127.0.0.1 0.0.0.0 255.255.255.0"),
        (b"from fe80::1234:56ff:fe78:9abc", b"from fe80::1"),
        (b"fe80:0000:0000:0000:506b:4b03:00a1:b2c2", b"fe80:0000:0000:0000:0000:0000:0000:0001"),
        (b"00:1b:21:aa:bb:cc", b"02:00:00:00:00:01"),
        (b"00-1B-21-AA-BB-CC", b"02-00-00-00-00-01"),
        (b"00:00:00:00:00:00 ff:ff:ff:ff:ff:ff", b"00:00:00:00:00:00 ff:ff:ff:ff:ff:ff"),
        (b"12:34:56 0000:3b:00.0 5.15.0-91 1.2.3.4.5 22.31.1014", b"12:34:56 0000:3b:00.0 5.15.0-91 1.2.3.4.5 22.31.1014"),
        (b"Serial Number: ABC12345XYZ\n", b"Serial Number: SERIAL00001\n"),
        (b"Serial Number: Not Specified\n", b"Serial Number: Not Specified\n"),
        (b'{"serial_number":"Z1F2ABCD"}', b'{"serial_number":"00000001"}'),
        (b"Serial Number: 132091234567\n", b"Serial Number: 999999999991\n"),
        (b"password=abcd1234", b"password=REDACTED"),
        (b"Authorization: Bearer abcdefgh12", b"Authorization: Bearer REDACTED"),
        (b"token_file: /etc/nodeproof/tokens", b"token_file: /etc/nodeproof/tokens"),
        (b"https://user:pw@hooks.test/x?y=1 http://127.0.0.1:9/x", b"https://redacted.invalid http://127.0.0.1:9/x"),
        (b"/home/alice/run.py", b"/home/user1/run.py"),
        (b'acct="svc-x" session opened for user m.roe by root', b'acct="user1" session opened for user user2 by root'),
        (b"user=root user: nobody", b"user=root user: nobody"),
        (b"naa.5000c500a1b2c3d4", b"naa.eeeeeeeeeeeeeee1"),
        (b"a SHA-256 stays: " + b"0a1b" * 16, b"a SHA-256 stays: " + b"0a1b" * 16),
    ],
)
def test_forms(text: bytes, bare: bytes) -> None:
    redactor = Redactor()
    redactor.learn_from("", text)

    assert redactor.redact("", text) == bare


def test_a_host_name_is_replaced_as_a_word_and_within_its_domain() -> None:
    redactor = Redactor()
    redactor.learn("host", b"gpu07")
    redactor.learn("domain", b"hpc.site.test")

    bare = redactor.redact("", b"gpu07 gpu070 login.hpc.site.test mygpu07 GPU07:")

    assert bare == b"host1 gpu070 host2.example mygpu07 host1:"


def test_words_of_everybody_are_not_replaced_in_counters_and_names() -> None:
    redactor = Redactor()
    for word in (b"localhost", b"vm", b"node", b"12345", b"00000000", b"disk"):
        redactor.learn("host", word)

    assert redactor.redact("", b"vmstat localhost disk node0 12345") == b"vmstat localhost disk node0 12345"


def test_people_are_users_from_1000_on() -> None:
    passwd = b"root:x:0:0:root:/:/x\nann:x:1000:1000:Ann Ode,room:/h:/x\nnobody:x:65534:65534:n:/:/x\nbroken\n"

    assert list(names_of_users(passwd)) == [b"ann", b"Ann Ode"]


def test_serial_numbers_in_a_table_of_smbios_are_learned_and_its_uuid_is_blanked() -> None:
    system = bytes([1, 27, 1, 0, 1, 2, 0, 3]) + bytes(range(1, 17)) + bytes(3) + b"Maker\0Model\0SN-998877\0\0"
    module = bytes([17, 0x20, 2, 0]) + bytes(0x14) + bytes([1, 2]) + bytes(6) + b"MEM-SERIAL-1\0ASSET-7788\0\0"
    table = system + module + bytes([127, 4, 3, 0, 0, 0])
    redactor = Redactor()
    redactor.learn_from("/sys/firmware/dmi/tables/DMI", table)

    bare = redactor.redact("/sys/firmware/dmi/tables/DMI", table)

    assert list(smbios_serials("/x/DMI", table)) == [b"SN-998877", b"MEM-SERIAL-1", b"ASSET-7788"]
    assert len(bare) == len(table)
    assert b"SN-998877" not in bare
    assert b"MEM-SERIAL-1" not in bare
    assert bytes(range(1, 17)) not in bare
    assert b"Maker\0Model" in bare


def test_a_stand_in_is_nobodys_serial_number() -> None:
    redactor = Redactor()
    text = b"Serial Number: ABCDEFGHJ001\nSerial Number: SERIAL000001\nSerial Number: SERIAL000002\n"
    redactor.learn_from("", text)

    bare = redactor.redact("", text)

    assert bare.split(b"\n")[:3] == [
        b"Serial Number: SERIAL000003",
        b"Serial Number: SERIAL000004",
        b"Serial Number: SERIAL000005",
    ]
    assert redactor.leaks(bare) == []
