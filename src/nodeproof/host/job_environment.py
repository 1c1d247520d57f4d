"""What of our own environment a contained program gets: only what programs that compute need.

An allow-list, because the list of what must not get through has no end: the service manager's sockets, secrets, ``LD_PRELOAD``,
Python's own variables. Whoever needs more for one program gives it by name.
"""

from collections.abc import Mapping

__all__ = ["ALLOWED_NAMES", "ALLOWED_PREFIXES", "allowed_environment"]

ALLOWED_NAMES = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TMPDIR",
        "TZ",
        "TERM",
        "LD_LIBRARY_PATH",
        "MALLOC_ARENA_MAX",
        "XDG_RUNTIME_DIR",
    }
)
ALLOWED_PREFIXES = (
    "OMP_",
    "GOMP_",
    "KMP_",
    "OPENBLAS_",
    "GOTO_",
    "MKL_",
    "BLIS_",
    "NUMBA_",
    "MPI_",
    "MPICH_",
    "OMPI_",
    "PMIX_",
    "PRTE_",
    "I_MPI_",
    "HYDRA_",
    "MV2_",
    "UCX_",
    "FI_",
    "CUDA_",
    "NVIDIA_",
    "NCCL_",
    "HIP_",
    "ROCR_",
    "HSA_",
    "ASCEND_",
    "HCCL_",
)
"""Threading and linear algebra libraries, MPI launchers and transports, accelerators."""


def allowed_environment(own: Mapping[str, str]) -> dict[str, str]:
    """The part of ``own`` that a program gets, with the language of messages set to C, so that they can be parsed."""
    allowed = {key: value for key, value in own.items() if key in ALLOWED_NAMES or key.startswith(ALLOWED_PREFIXES)}
    return {**allowed, "LC_ALL": "C", "LANG": "C"}
