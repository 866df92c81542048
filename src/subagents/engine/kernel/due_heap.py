"""What is due next, among many: a look costs what is due, and nothing for what is not."""

import heapq
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

SPARE: Final = 64
"""So many replaced entries may always lie around."""


class DueHeap(Generic[K]):
    """At most one due time per key, the earliest first; in milliseconds of any one clock."""

    def __init__(self) -> None:
        self.due_ms: dict[K, int] = {}
        """What is known, to be read."""
        self._heap: list[tuple[int, K]] = []
        """Also what was replaced or dropped since; that is passed over when its time comes."""

    def put(self, key: K, due_ms: int) -> bool:
        """Set when the key is due; True = nothing is due before it."""
        if self.due_ms.get(key) == due_ms:
            return False
        self.due_ms[key] = due_ms
        heapq.heappush(self._heap, (due_ms, key))
        if len(self._heap) > 2 * len(self.due_ms) + SPARE:
            self._rebuild()
        return self._heap[0][0] == due_ms

    def drop(self, key: K) -> None:
        """The key is not due any more, if it was."""
        self.due_ms.pop(key, None)

    def clear(self) -> None:
        """Nothing is due."""
        self.due_ms.clear()
        self._heap.clear()

    def shift(self, by_ms: int) -> None:
        """The clock was set: everything is due so much later."""
        self.due_ms = {key: due + by_ms for key, due in self.due_ms.items()}
        self._rebuild()

    @property
    def next_ms(self) -> int | None:
        """When the first one is due; None = there is none."""
        heap = self._heap
        while heap and self.due_ms.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def take(self, now_ms: int) -> Iterator[K]:
        """Each key that is due by then, earliest first; it is in here no longer."""
        while (due := self.next_ms) is not None and due <= now_ms:
            _, key = heapq.heappop(self._heap)
            del self.due_ms[key]
            yield key

    def _rebuild(self) -> None:
        self._heap = [(due, key) for key, due in self.due_ms.items()]
        heapq.heapify(self._heap)
