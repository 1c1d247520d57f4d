"""``nodeproof stress cancel``: stop a job, whichever process started it."""

import argparse

from nodeproof.cli.stress_manager import make_manager, told
from nodeproof.stress.problems import JobNotFound

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    manager = make_manager(options)
    job_id = options.job
    if not job_id:
        newest = manager.latest()
        if newest is None or newest.status.is_final:
            raise JobNotFound("no stress job runs")
        job_id = newest.job_id
    manager.cancel(job_id, "cancelled by nodeproof stress cancel")
    print(f"stress job {job_id}: cancellation requested")
    return 0


run = told("cancel", _run)
