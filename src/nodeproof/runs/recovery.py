"""What is left of a run whose owner died: the record that the owner could no longer write."""

import os
from typing import NamedTuple

import msgspec

from nodeproof.clock import rfc3339
from nodeproof.errors import RecordError
from nodeproof.host.owner import ProcessOwner
from nodeproof.model.run import (
    Cause,
    ExecutorMessage,
    Frame,
    Owner,
    RunRecord,
    RunStatus,
    Stage,
    StageEvent,
    Verdict,
    VerdictKind,
    exit_code,
    is_final,
)
from nodeproof.runs.open_run import DRAFT, LOG, held

__all__ = ["interrupted_record", "owner_is_dead", "read_draft", "read_log"]

_MAX_DRAFT_BYTES = 16 << 20


class _Left(NamedTuple):
    """What the log tells."""

    stage: Stage
    terminal: Frame | None
    elapsed_s: float
    warnings: list[str]


def read_draft(directory: str) -> RunRecord:
    """What was written at the start. Raises RecordError when there is none or it cannot be understood."""
    path = os.path.join(directory, DRAFT)
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(_MAX_DRAFT_BYTES), type=RunRecord)
    except OSError as error:
        raise RecordError(f"{path}: {os.strerror(error.errno or 0)}") from None
    except msgspec.MsgspecError as error:
        raise RecordError(f"{path} cannot be understood: {error}") from None


def owner_is_dead(draft: RunRecord, directory: str) -> bool:
    """Whether the process that wrote ``draft`` is gone; its lock decides where its number says nothing."""
    owner = draft.owner
    lives = None if owner is None else ProcessOwner(owner.pid, owner.start_ticks, owner.boot_id, owner.pid_namespace).lives()
    return not held(directory) if lives is None else not lives


def read_log(path: str) -> list[ExecutorMessage]:
    """Every message of a log; lines that cannot be understood (a crash cuts the last one) are passed over. Raises RecordError."""
    decoder = msgspec.json.Decoder(ExecutorMessage)
    messages = []
    try:
        with open(path, "rb") as file:
            for line in file:
                try:
                    messages.append(decoder.decode(line))
                except msgspec.MsgspecError:
                    continue
    except OSError as error:
        raise RecordError(f"{path}: {os.strerror(error.errno or 0)}") from None
    return messages


def interrupted_record(draft: RunRecord, directory: str, now_wall_s: float) -> RunRecord:
    """The record of a run that ended with its owner. A terminal frame that was sent stays what it was."""
    left = _left(os.path.join(directory, LOG))
    owner = draft.owner or Owner(0, 0, "")
    reason = f"process {owner.pid} that ran it came to an end in stage {left.stage}; this record was written afterwards"
    frame = left.terminal or Frame.stopped(
        RunStatus.CRASHED, "interrupted", reason, left.elapsed_s, cause=Cause(left.stage, "interrupted", (reason,))
    )
    verdict = frame.verdict or Verdict(VerdictKind.INCONCLUSIVE, reason)
    return msgspec.structs.replace(
        draft,
        recorded_at=now_wall_s,
        status=frame.status,
        verdict=verdict,
        exit_code=int(exit_code(frame.status, verdict.kind)),
        frame=frame,
        warnings=(*left.warnings, f"{reason} ({rfc3339(now_wall_s)})"),
        interrupted=left.stage,
    )


def _left(path: str) -> _Left:
    try:
        messages = read_log(path)
    except RecordError:
        return _Left(Stage.START, None, 0.0, [])
    stages = [message.event.stage for message in messages if isinstance(message.event, StageEvent)]
    finals = [message.frame for message in messages if message.frame is not None and is_final(message.frame)]
    return _Left(
        stage=stages[-1] if stages else Stage.START,
        terminal=finals[-1] if finals else None,
        elapsed_s=messages[-1].mono_s - messages[0].mono_s if messages else 0.0,
        warnings=[message.warning for message in messages if message.warning],
    )
