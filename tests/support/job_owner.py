"""An owner of one contained job, to be killed by tests: ``job_owner.py FOLDER SPEC``.

SPEC is a JSON object: ``argv``, ``limits``, ``use_cgroup``, ``lock``. Prints one line with the numbers of the keeper and of the
program when that is ready, then waits for its end; TERM and INT cancel, as the command line does. Ends with the kind of the end.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from nodeproof.host.containment import Containment
from nodeproof.host.job_lock import JobLock
from nodeproof.model.process import Limits


def say(fact: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(fact) + "\n")
    sys.stdout.flush()


def main() -> None:
    folder, spec = Path(sys.argv[1]), json.loads(sys.argv[2])
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    lock = JobLock(str(folder / "job.lock"))
    lock.acquire(spec["token"], str(folder / "output.log.job.json"))
    job = Containment(use_cgroup=spec["use_cgroup"]).start(
        spec["argv"],
        cwd=str(folder),
        output_path=str(folder / "output.log"),
        limits=Limits(**spec["limits"]),
        token=spec["token"],
        keep_fds=[lock.fd],
    )
    while spec["wait_for"].encode() not in job.tail():
        time.sleep(0.005)
    say({"owner": os.getpid(), "keeper": job.keeper_pid, "program": job.pid})
    ended = None
    while ended is None:
        ended = job.cancel(reason="told to stop") if stop.is_set() else job.wait(0.02)
    job.close()
    lock.release()
    say({"kind": ended.kind, "empty": ended.empty})


main()
