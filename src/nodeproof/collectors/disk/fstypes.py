"""File-system types, as data: which have space worth watching, and which may hang."""

from enum import Enum

__all__ = ["IMAGES", "NETWORK", "TMPFS", "VIRTUAL", "Watch", "in_memory", "watch"]

VIRTUAL = frozenset(
    {
        # memory and the kernel's own
        "tmpfs", "devtmpfs", "ramfs", "rootfs", "hugetlbfs", "proc", "sysfs", "devpts", "devfs", "usbfs", "usbdevfs", "mqueue",
        "cgroup", "cgroup2", "cpuset", "securityfs", "selinuxfs", "smackfs", "apparmorfs", "pstore", "efivarfs", "bpf",
        "configfs",
        "debugfs", "tracefs", "fusectl", "binfmt_misc", "nsfs",
        "pidfs", "sockfs", "pipefs", "bdev", "anon_inodefs", "dax", "drm",
        "functionfs", "resctrl", "secretmem", "guest_memfd", "openpromfs", "ibmasmfs", "ipathfs", "binder", "xenfs",
        # served by programs for programs
        "autofs", "nfsd", "rpc_pipefs", "fuse.lxcfs", "fuse.gvfsd-fuse", "fuse.portal", "fuse.snapfuse", "fuse.rootlesskit",
        "fuse.sysbox-fs",
    }
)  # fmt: skip
"""No space of their own. An automount point is among them: asking it would mount what nobody asked for."""

TMPFS = "tmpfs"
_PRIVATE = (
    b"/proc/", b"/sys/", b"/run/user/", b"/run/credentials/", b"/run/containerd/", b"/run/docker/", b"/run/netns", b"/run/lock/",
    b"/var/lib/kubelet/", b"/var/lib/docker/", b"/var/lib/containers/", b"/var/lib/containerd/",
)  # fmt: skip
"""Folders in which a session, a service or a container has its own: hundreds of them, and their owner's business."""

IMAGES = frozenset({"squashfs", "iso9660", "erofs", "cramfs", "romfs", "composefs"})
"""Read-only images: always full, and that means nothing."""

NETWORK = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "9p", "virtiofs", "ceph", "lustre", "gpfs", "beegfs",
        "panfs", "orangefs", "pvfs2", "glusterfs", "ocfs2", "gfs2", "wekafs", "fuseblk", "fuse", "prl_fs", "vboxsf", "vmhgfs",
    }
)  # fmt: skip
"""Somebody else must answer, who may be dead: a server, a cluster, a program. Every other ``fuse.*`` counts as well."""


class Watch(Enum):
    """How a file system is watched."""

    NOT = "not"
    LOCAL = "local"
    ALONE = "alone"
    """In a call of its own: it may hang."""


def watch(fstype: str, mount_point: bytes) -> Watch:
    """How to watch a file system of this type mounted there.

    An overlay shows the numbers of the disk below it once more, for each container; only as the root of our own container it
    stands for space that would not be seen otherwise.
    """
    if fstype in VIRTUAL or fstype in IMAGES or (fstype in {"overlay", "aufs", "fuse.fuse-overlayfs"} and mount_point != b"/"):
        return Watch.NOT
    return Watch.ALONE if fstype in NETWORK or fstype.startswith("fuse.") else Watch.LOCAL


def in_memory(fstype: str, mount_point: bytes) -> bool:
    """Whether it is a file system in memory that programs of the whole node share."""
    return fstype == TMPFS and not mount_point.startswith(_PRIVATE)
