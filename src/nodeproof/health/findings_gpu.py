"""Findings about GPUs: what is wrong with a card whatever the points say.

An idle card's slower link, a power limit that is reached, and a fabric that a card does not belong to are no faults, and no rule
looks at them.
"""

from nodeproof.health.limits import grown, state
from nodeproof.health.rules import DAY_S, HOUR_S, Compare, FindingRule, How, Limit, Probe
from nodeproof.model.health import Severity

__all__ = ["RULES"]

_WARNING, _CRITICAL = Severity.WARNING, Severity.CRITICAL
_CARD = ("gpu_id",)
_READ_LOG = "Read the kernel log (journalctl -k -g 'NVRM|amdgpu')"


def _card_state(value: float, *, enter: int) -> Limit:
    return state("gpu", "card_state", *_CARD, equal=value, enter=enter)


RULES: tuple[FindingRule, ...] = (
    FindingRule(
        "gpu",
        "lost",
        _CRITICAL,
        _card_state(3, enter=1),
        "GPU {gpu_id} is lost: it fell off the bus, or its driver gave it up",
        "The driver says so itself, or lists other cards and not this one, which is on the bus or was there before.",
        f"{_READ_LOG}; restart the node; reseat or replace the card when it stays away.",
    ),
    FindingRule(
        "gpu",
        "reset_required",
        _CRITICAL,
        _card_state(2, enter=1),
        "GPU {gpu_id} must be reset before it can be used",
        "The driver refuses work on it after a fault; readings of it are not to be had until then.",
        f"{_READ_LOG}; end what uses it and reset it (nvidia-smi -i ID -r), or restart the node.",
    ),
    FindingRule(
        "gpu",
        "silent",
        _CRITICAL,
        _card_state(1, enter=2),
        "GPU {gpu_id} does not answer: its driver hangs",
        "Calls about this card do not come back in time, twice in a row.",
        f"{_READ_LOG}; tasks in state D name the place; restart the node when it stays so.",
    ),
    FindingRule(
        "gpu",
        "driver_down",
        _CRITICAL,
        state("gpu", "driver_up", "vendor", equal=0, enter=2),
        "{vendor} GPUs are on the PCI bus, and their driver does not answer",
        "The driver is not loaded, or fails.",
        f"{_READ_LOG}; load or reinstall the driver.",
    ),
    FindingRule(
        "gpu",
        "pcie_width",
        _WARNING,
        state("gpu", "pcie_degraded", *_CARD, where=(("aspect", "width"),), enter=3),
        "GPU {gpu_id} runs on fewer PCIe lanes than card and slot allow",
        "The number of lanes does not change with load: contacts, riser or slot have lost some.",
        "Reseat card and riser, clean the contacts, compare with the other slots (lspci -vv, LnkSta against LnkCap).",
    ),
    FindingRule(
        "gpu",
        "pcie_generation",
        _WARNING,
        state("gpu", "pcie_degraded", *_CARD, where=(("aspect", "generation"),), enter=3),
        "GPU {gpu_id} works, and its PCIe link runs at a lower generation than card and slot allow",
        "A working card runs its link at full speed; an idle one may not, and is not judged.",
        "Look for corrected PCIe errors, reseat the card, look at the slot's setting in the firmware.",
    ),
    FindingRule(
        "gpu",
        "pcie_replays",
        _WARNING,
        grown("gpu", "pcie_replays", HOUR_S, *_CARD, more_than=1000),
        "GPU {gpu_id}: {value} PCIe packets had to be sent again within 1 h",
        "Packets come damaged: the link is bad, and slows down.",
        "Reseat card and riser; look for corrected errors in the kernel log.",
    ),
    FindingRule(
        "gpu",
        "nvlinks_down",
        _CRITICAL,
        state("gpu", "nvlink_active_share", *_CARD, equal=0),
        "GPU {gpu_id}: none of its NVLinks is up",
        "The card has links, and every one of them is down: it cannot reach the other cards.",
        "See fabric manager and switch (systemctl status nvidia-fabricmanager, nvidia-smi nvlink -s), then reset the cards.",
    ),
    FindingRule(
        "gpu",
        "nvlink_missing",
        _WARNING,
        Limit(Probe("gpu", ("nvlink_active_share",), (), _CARD), Compare.BELOW, 100, enter=3),
        "GPU {gpu_id}: only {value} % of its NVLinks are up",
        "Fewer links are up than this card had, or than its neighbours of the same kind have.",
        "nvidia-smi nvlink -s -i ID names the links; reset the cards, then look at bridge, switch and baseboard.",
    ),
    FindingRule(
        "gpu",
        "nvlink_errors",
        _WARNING,
        grown("gpu", "nvlink_errors", HOUR_S, *_CARD, "link", where=(("kind", "recovery"),)),
        "GPU {gpu_id}: NVLink {link} had to be brought up again {value} times within 1 h",
        "A link lost its synchronisation under way; what was on it had to be sent again, or is lost.",
        "Reset the cards; when it comes again, look at bridge, switch and baseboard.",
    ),
    FindingRule(
        "gpu",
        "fabric_failed",
        _CRITICAL,
        state("gpu", "fabric_state", *_CARD, equal=3, enter=2),
        "GPU {gpu_id} could not join the NVLink fabric",
        "It belongs to a fabric and its registration failed. A card that belongs to none is not judged.",
        "See the fabric manager and its log (systemctl status nvidia-fabricmanager).",
    ),
    FindingRule(
        "gpu",
        "fabric_pending",
        _WARNING,
        state("gpu", "fabric_state", *_CARD, equal=1, enter=3),
        "GPU {gpu_id} waits for the NVLink fabric",
        "Registration goes on for longer than a start takes: nothing that needs NVLink works meanwhile.",
        "See whether the fabric manager runs (systemctl status nvidia-fabricmanager).",
    ),
    FindingRule(
        "gpu",
        "thermal_slowdown",
        _WARNING,
        state("gpu", "throttle_reason", *_CARD, where=(("reason", "hw_thermal"),), enter=3),
        "GPU {gpu_id} is slowed down by its hardware because it is too hot",
        "The card protects itself; it is slower than its neighbours, and jobs wait for it.",
        "Look at fans, air flow, inlet temperature and the card's heat sink.",
    ),
    FindingRule(
        "gpu",
        "power_brake",
        _WARNING,
        state("gpu", "throttle_reason", *_CARD, where=(("reason", "hw_power_brake"),), enter=3),
        "GPU {gpu_id} is slowed down because the chassis asked for it (power brake)",
        "Power supplies or the rack's limit force the card down.",
        "Look at power supplies, their redundancy and the power limit of the node.",
    ),
    FindingRule(
        "gpu",
        "row_remap_failure",
        _CRITICAL,
        state("gpu", "row_remap_failure", *_CARD, enter=1),
        "GPU {gpu_id}: a bad row of memory could not be replaced",
        "The spare rows of that bank are used up.",
        "Exchange the card.",
    ),
    FindingRule(
        "gpu",
        "row_remap_pending",
        _WARNING,
        state("gpu", "row_remap_pending", *_CARD, enter=2),
        "GPU {gpu_id}: a bad row of memory waits to be replaced at the next reset",
        "The fault is known, and the memory behind it is in use until the card is reset.",
        "End what uses the card and reset it (nvidia-smi -i ID -r).",
    ),
    FindingRule(
        "gpu",
        "retired_pages_pending",
        _WARNING,
        state("gpu", "retired_pages_pending", *_CARD, enter=2),
        "GPU {gpu_id}: bad pages of memory wait to be taken out of use at the next reset",
        "The fault is known, and the memory behind it is in use until the card is reset.",
        "End what uses the card and reset it (nvidia-smi -i ID -r).",
    ),
    FindingRule(
        "gpu",
        "retired_pages_many",
        _CRITICAL,
        Limit(Probe("gpu", ("retired_pages",), (), _CARD, How.VALUE), Compare.AT_LEAST, 60, enter=2, leave_s=0),
        "GPU {gpu_id}: {value} pages of memory were taken out of use",
        "From 60 retired pages on the maker exchanges a card; at 64 no more can be retired.",
        "Exchange the card.",
    ),
    FindingRule(
        "gpu",
        "sram_threshold",
        _CRITICAL,
        state("gpu", "sram_threshold_exceeded", *_CARD, enter=1),
        "GPU {gpu_id}: its on-chip memory had more errors than its maker lets pass",
        "The card counts uncorrected errors of its on-chip memory over its life, and says itself that it is due.",
        "Exchange the card.",
    ),
    FindingRule(
        "gpu",
        "uncorrected_memory_errors",
        _CRITICAL,
        grown("gpu", "ecc_volatile_errors", DAY_S, *_CARD, "place", where=(("kind", "uncorrected"), ("place", "sram"))),
        "GPU {gpu_id}: {value} uncorrected errors of its on-chip memory within 24 h",
        "What the card computed then may be wrong.",
        "Reset the card and run gpu_burn; exchange it when they come again.",
    ),
)
