"""Workloads built in: programs of their own that load this machine and prove what they computed.

Each is started as ``python -m nodeproof.stress.workloads.NAME`` (``stream``, ``hpl``, ``hpcg``, ``cpu_sdc``,
``memory_pattern``) and needs the extra ``nodeproof[stress]`` (numpy, scipy, numba); no compiler, no MPI. It keeps to the CPUs
and the memory that affinity and cgroups leave it, pins one thread to each CPU, and lets each thread touch its part of the
data first, so that memory lies on that CPU's node. ``gpu_burn`` needs the extra ``nodeproof[gpu]`` (torch) instead, and has a
process for each device. Signals have their default meaning: SIGTERM ends it at once.

On standard output stand, line by line:

* the result in the shape of the official program, under a heading that says that this is nodeproof's own implementation;
* ``nodeproof-heartbeat {...}`` whenever there was progress, at least every two seconds (`heartbeat.Heartbeat`). It is written
  only when ``done`` has grown: silence is a program that does not get on;
* ``nodeproof-result {...}`` once, at the end: the same figures and what was run, as JSON.

With ``--json`` only the last two are written. Exit status: 0 ran to its end, whatever the validation said; 2 wrong
arguments; 69 cannot run here (an extra, memory or CPUs are lacking; the reason is on standard error); 70 failed itself.
A validation that fails is said in the official program's words and in the result, as it has always been.
"""
