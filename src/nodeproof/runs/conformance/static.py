"""Cases about what a benchmark is, and about the parts of its contract that need no executor."""

import shutil
import tempfile

from nodeproof.errors import NodeproofError, ParamError
from nodeproof.model.run import Frame, is_final
from nodeproof.runs.benchmark import PluginMetadata, drive
from nodeproof.runs.conformance.subject import Case, ConformanceError, Subject, expect, plugin_handle
from nodeproof.runs.frames import sound_frame
from nodeproof.runs.params import ParamValues

__all__ = ["STATIC_CASES"]


def _descriptor(subject: Subject) -> None:
    first, second = subject.descriptor.build(), subject.descriptor.build()
    expect(first is not second, "a fresh object from each build()")
    for built in (first, second):
        expect(built.descriptor() == subject.descriptor, "the built object to name the descriptor that it was built from")


def _metadata(subject: Subject) -> None:
    metadata = subject.descriptor.build().metadata()
    expect(isinstance(metadata, PluginMetadata), "PluginMetadata", type(metadata).__name__)
    expect(metadata.description and metadata.version, "a description and a version in the metadata", metadata)
    expect(metadata == subject.descriptor.build().metadata(), "the same metadata from every object")


def _parameters(subject: Subject) -> None:
    specs = subject.descriptor.build().parameters()
    keys = [spec.key for spec in specs]
    expect(len(set(keys)) == len(keys), "each parameter key once", keys)
    for spec in specs:
        expect(spec.label and spec.help and spec.domain_hint(), "label, help and domain of every parameter", spec.key)
    try:
        defaults = ParamValues.defaults(specs)
        defaults.validate_against(specs)
        again = ParamValues.from_overrides(specs, defaults.to_strings().items())
    except ParamError as error:
        raise ConformanceError(f"expected legal defaults, saw {error}") from None
    expect(again == defaults, "defaults that survive being written as text", f"{again} for {defaults}")
    for key, _ in subject.descriptor.threshold_params:
        expect(key in keys, "every threshold parameter among the parameters", key)


def _cleanup_of_an_unloaded_object(subject: Subject) -> None:
    try:
        subject.descriptor.build().cleanup()
    except Exception as error:
        raise ConformanceError(f"expected cleanup() of an object that was never loaded to do nothing, saw {error!r}") from error


def _configure_again(subject: Subject) -> None:
    """A run that is configured anew in its middle is a whole run; its frames can be written and read."""
    home = tempfile.mkdtemp(prefix="nodeproof-conformance-")
    benchmark = subject.descriptor.build()
    try:
        benchmark.load(plugin_handle(home, subject.target, subject.descriptor.id))
        benchmark.configure(subject.values())
        benchmark.next()
        benchmark.configure(subject.values())
        items = list(drive(benchmark))
    except (NodeproofError, OSError) as error:
        raise ConformanceError(f"expected a run that can be configured again, saw {error!r}") from error
    finally:
        benchmark.cleanup()
        shutil.rmtree(home, ignore_errors=True)
    last = items[-1]
    if not isinstance(last, Frame):
        raise ConformanceError(f"expected a terminal frame at the end, saw {last!r}")
    expect(is_final(last), "a terminal frame at the end", last.status)
    for item in items:
        if isinstance(item, Frame):
            expect(not sound_frame(item).warnings, "finite metrics in every frame", sound_frame(item).warnings)


STATIC_CASES = (
    Case("descriptor", "build() makes fresh objects that name their descriptor", _descriptor),
    Case("metadata", "metadata say what it is and in which version", _metadata),
    Case("parameters", "parameters are unique, explained, and legal at their defaults", _parameters),
    Case("cleanup-unloaded", "cleanup() may be called on an object that was never loaded", _cleanup_of_an_unloaded_object),
    Case("configure-again", "configure() forgets what an earlier configuration left", _configure_again),
)
