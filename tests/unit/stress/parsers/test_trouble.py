"""Why a program could not do its work."""

import pytest

from nodeproof.stress.parsers.trouble import find_trouble


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("terminate called after throwing an instance of 'std::bad_alloc'\nAborted (core dumped)", "out_of_memory"),
        ("xhpl: error while loading shared libraries: libopenblas.so.0: cannot open shared object file", "missing_library"),
        ("There are not enough slots available in the system", "config_error"),
        ("mpirun has detected an attempt to run as root.", "config_error"),
        ("Illegal instruction (core dumped)", "illegal_instruction"),
        ("mpirun noticed that process rank 0 exited on signal 11 (Segmentation fault).", "signal"),
        ("=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "aborted"),
        ("bash: line 1: /opt/xhpl: No such file or directory", "missing_file"),
    ],
)
def test_known_words(text: str, cause: str) -> None:
    trouble = find_trouble(text.encode(), "stdout")
    assert trouble is not None
    assert trouble.cause == cause
    assert trouble.evidence.line_no == 1


def test_the_specific_goes_before_the_general_wherever_it_stands() -> None:
    trouble = find_trouble(b"Aborted: MPI_ABORT was invoked\nstd::bad_alloc\n", "stdout")
    assert trouble is not None
    assert (trouble.cause, trouble.evidence.line_no) == ("out_of_memory", 2)


def test_silence_names_no_cause() -> None:
    assert find_trouble(b"all is well\n", "stdout") is None
