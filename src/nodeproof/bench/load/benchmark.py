"""The benchmark ``load``: sends a load and says what came of it, with every number's evidence in its samples."""

import time

import msgspec

from nodeproof import __version__
from nodeproof.bench.catalogue import LOAD
from nodeproof.bench.features import Features
from nodeproof.bench.load.frames import load_frame
from nodeproof.bench.load.measure import Cell, Measurement, discover_features
from nodeproof.bench.load.parameters import LOAD_PARAMETERS, LoadSettings
from nodeproof.errors import RunError
from nodeproof.model.run import Frame
from nodeproof.runs.benchmark import Descriptor, PluginMetadata
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.handle import PluginHandle
from nodeproof.runs.params import ParamSpec, ParamValues

__all__ = ["LoadBenchmark", "needed_target"]

_TURN_S = 1.0


class LoadBenchmark:
    """One run of it."""

    def __init__(self) -> None:
        self._handle: PluginHandle | None = None
        self._settings: LoadSettings | None = None
        self._features: Features | None = None
        self._measurement: Measurement | None = None
        self._cells: list[Cell] = []
        self._started_s = time.monotonic()

    def descriptor(self) -> Descriptor:
        """Of ``load``."""
        return LOAD

    def metadata(self) -> PluginMetadata:
        """Ours."""
        return PluginMetadata("Load generator for OpenAI-compatible endpoints", __version__, license="Apache-2.0", official=True)

    def parameters(self) -> tuple[ParamSpec, ...]:
        """See :mod:`nodeproof.bench.load.parameters`."""
        return LOAD_PARAMETERS

    def load(self, handle: PluginHandle) -> None:
        """Take the endpoint over."""
        needed_target(handle)
        self._handle = handle

    def configure(self, values: ParamValues) -> None:
        """Check that the parameters go together."""
        self._settings = LoadSettings(values)
        self._cells, self._features, self._measurement = [], None, None
        self._started_s = time.monotonic()

    def next(self) -> Frame:
        """First the questions about the endpoint, then a second of watching at a time."""
        handle, settings = self._handle, self._settings
        if handle is None or settings is None:
            raise RunError("load: next() before load() and configure()")
        target = needed_target(handle)
        if self._features is None:
            self._features = discover_features(
                handle, target, settings.api, settings.timeouts, ignore_eos=settings.values.text("ignore_eos")
            )
            return Frame.running("probe", self._elapsed_s())
        if self._measurement is None:
            number = len(self._cells)
            plan = settings.plan(target, self._features)
            plan = msgspec.structs.replace(plan, cell=number, seed=plan.seed + number)
            self._measurement = Measurement(handle, target, plan, f"cell{number}")
        cell = self._measurement.step(_TURN_S)
        if cell is not None:
            self._cells.append(cell)
            self._measurement = None
            if len(self._cells) == settings.repeats:
                return load_frame(self._cells, settings, self._elapsed_s())
        return Frame.running("load", self._elapsed_s(), progress=(len(self._cells), settings.repeats))

    def cleanup(self) -> None:
        """End the workers."""
        if self._measurement is not None:
            self._measurement.close()

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started_s


def needed_target(handle: PluginHandle) -> TargetEndpoint:
    """The endpoint of a run. Raises RunError when it has none."""
    if handle.target is None:
        raise RunError("this benchmark needs an endpoint: give --url and --model")
    return handle.target
