"""Every benchmark that can be had here: ours and other people's, found the same way.

An entry point of the group ``nodeproof.benchmarks`` names a :class:`Descriptor`, or a tuple of them. One that cannot be loaded,
or wants an id that is taken, costs only itself: it is listed in :attr:`Registry.problems`.
"""

from collections.abc import Iterable, Iterator

from nodeproof.errors import NodeproofError, RunError
from nodeproof.host.entry_points import EntryPoint, offers
from nodeproof.runs.benchmark import Descriptor

__all__ = ["ENTRY_POINT_GROUP", "Registry", "discover"]

ENTRY_POINT_GROUP = "nodeproof.benchmarks"


class Registry:
    """Descriptors by id and alias."""

    def __init__(self) -> None:
        self._by_id: dict[str, Descriptor] = {}
        self._by_name: dict[str, tuple[Descriptor, str]] = {}
        """Descriptor and origin, by id and by every alias."""
        self.problems: list[str] = []
        """Why what was offered cannot be had, one line each."""

    def add(self, descriptor: Descriptor, origin: str) -> None:
        """Take ``descriptor`` in. Raises RunError, naming both, when its id or an alias is taken: all of it is left out."""
        names = (descriptor.id, *descriptor.aliases)
        for name in names:
            taken = self._by_name.get(name)
            if taken is not None:
                rivals = f"{origin} offers it, but {taken[1]} has that name already (for {taken[0].id})"
                raise RunError(f"benchmark {name}: {rivals}; remove one of them")
        if len(set(names)) != len(names):
            raise RunError(f"benchmark {descriptor.id} of {origin} has an alias twice")
        self._by_id[descriptor.id] = descriptor
        self._by_name |= dict.fromkeys(names, (descriptor, origin))

    def get(self, name: str) -> Descriptor:
        """The benchmark with this id or alias. Raises RunError that lists what there is."""
        found = self._by_name.get(name)
        if found is None:
            raise RunError(f"there is no benchmark {name[:80]!r}; there are {', '.join(sorted(self._by_id)) or 'none'}")
        return found[0]

    def origin(self, name: str) -> str:
        """Which distribution offers it. Raises RunError."""
        return self._by_name[self.get(name).id][1]

    def __iter__(self) -> Iterator[Descriptor]:
        return iter(sorted(self._by_id.values(), key=lambda descriptor: descriptor.id))

    def __len__(self) -> int:
        return len(self._by_id)


def discover(folders: Iterable[str] | None = None) -> Registry:
    """Everything that installed distributions offer; the module search path decides who comes first, as for imports."""
    registry = Registry()
    for point in offers(ENTRY_POINT_GROUP, folders):
        try:
            for descriptor in _descriptors(point):
                registry.add(descriptor, point.distribution)
        except NodeproofError as error:
            registry.problems.append(str(error))
    return registry


def _descriptors(point: EntryPoint) -> tuple[Descriptor, ...]:
    found = point.load()
    many = found if isinstance(found, tuple) else (found,)
    for entry in many:
        if not isinstance(entry, Descriptor):
            kind = type(entry).__name__
            raise RunError(f"plug-in {point.name} ({point.target} of {point.distribution}) is a {kind}, expected a Descriptor")
    return many
