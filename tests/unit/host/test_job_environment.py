"""Only what is on the list gets through."""

from hypothesis import given
from hypothesis import strategies as st

from nodeproof.host.job_environment import ALLOWED_NAMES, ALLOWED_PREFIXES, allowed_environment


def test_what_gets_through() -> None:
    own = {
        "PATH": "/bin",
        "OMP_NUM_THREADS": "4",
        "OMPI_MCA_btl": "self",
        "LANG": "zh_CN.UTF-8",
        "LC_NUMERIC": "de_DE",
        "NOTIFY_SOCKET": "/run/notify",
        "AWS_SECRET_ACCESS_KEY": "x",
        "LD_PRELOAD": "/opt/evil.so",
        "LD_LIBRARY_PATH": "/opt/mpi/lib",
        "PYTHONSTARTUP": "x",
    }
    assert allowed_environment(own) == {
        "PATH": "/bin",
        "OMP_NUM_THREADS": "4",
        "OMPI_MCA_btl": "self",
        "LD_LIBRARY_PATH": "/opt/mpi/lib",
        "LC_ALL": "C",
        "LANG": "C",
    }


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=5)))
def test_nothing_else_ever_does(own: dict[str, str]) -> None:
    for name, value in allowed_environment(own).items():
        if name not in {"LC_ALL", "LANG"}:
            assert own[name] == value
            assert name in ALLOWED_NAMES or name.startswith(ALLOWED_PREFIXES)
