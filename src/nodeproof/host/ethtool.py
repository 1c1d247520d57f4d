"""What a network driver says of its port, through the ioctl that ethtool(8) uses.

The call waits for the lock of the network configuration: it belongs in the background. It speaks of interfaces in the network
namespace of this process. A recorded machine, a moved root without a process 1, has its answers in ``/ethtool/<interface>``.
"""

import array
import fcntl
import socket
import struct

from nodeproof.errors import Absence, NoData
from nodeproof.host.files import FileTree, absence_of

__all__ = ["link_settings"]

_SIOCETHTOOL = 0x8946
_GLINKSETTINGS = 0x4C
_NAME_BYTES = 16
_HEADER_BYTES = 48
_WORDS_AT = 15
_MAX_WORDS = 127
"""struct ethtool_link_settings: its length, where it holds the length of a map (a signed byte), and the most that can be."""


def link_settings(files: FileTree, interface: str) -> bytes:
    """The answer to ``ETHTOOL_GLINKSETTINGS``, for ``sources.ethtool_link``. Raises NoData."""
    if files.root and not files.can_read("/proc/1/net/dev"):
        return files.read(f"/ethtool/{interface}")
    name = interface.encode()
    if len(name) >= _NAME_BYTES:
        raise NoData(Absence.UNSUPPORTED, f"{interface}: the name is too long to ask for")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
            # The kernel answers a question for maps of no length with the length it has, negated; the second question gets it.
            length = -int.from_bytes(_ask(channel, name, 0)[_WORDS_AT : _WORDS_AT + 1], "little", signed=True)
            if length > 0:
                return _ask(channel, name, length)
    except OSError as error:
        raise absence_of(error, f"ethtool {interface}") from None
    raise NoData(Absence.UNSUPPORTED, f"ethtool {interface}: the kernel knows no maps of link modes")


def _ask(channel: socket.socket, name: bytes, length: int) -> bytes:
    answer = array.array("B", bytes(_HEADER_BYTES + 3 * 4 * _MAX_WORDS))
    struct.pack_into("=I11xb", answer, 0, _GLINKSETTINGS, length)
    # struct ifreq: the name, then a pointer to the question in a union of 24 bytes.
    fcntl.ioctl(channel, _SIOCETHTOOL, struct.pack(f"{_NAME_BYTES}sP16x", name, answer.buffer_info()[0]))
    return answer.tobytes()
