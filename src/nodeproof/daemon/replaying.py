"""Reading a recorded machine with the collectors of this nodeproof."""

from nodeproof.collectors.services.identity import collect_hw_specs
from nodeproof.config.schema import Config
from nodeproof.daemon.assembly import assemble
from nodeproof.daemon.once import Observation, observe_once
from nodeproof.daemon.runtime import IDENTITIES
from nodeproof.host.replay import ReplayMachine

__all__ = ["replay_host"]


def replay_host(root: str, config: Config, looks: int) -> Observation:
    """What the collectors that ``config`` switches on bring of the machine recorded in ``root``.

    Raises RecordError and ConfigError.
    """
    machine = ReplayMachine(root)
    try:
        with machine.open_gate():
            collect_hw_specs(machine, IDENTITIES)  # as it was when it was recorded: what is asked first wakes slow sources
        collectors = [entry.collector for entry in assemble(config, machine) if entry.enabled]
        return observe_once(collectors, machine, looks=looks)
    finally:
        machine.close()
