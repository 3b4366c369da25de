"""Which gangs wait for which claims and volumes, so that a change of one concerns only them."""

from __future__ import annotations

from collections.abc import Iterable

from groups.objects import Key, key_of
from scheduler.pods import CachedPod


class ClaimUsers:
    """From a claim to the gangs whose waiting members name it, counted by member."""

    def __init__(self) -> None:
        self._gangs: dict[Key, dict[Key, int]] = {}

    def add(self, gang: Key, pod: CachedPod) -> None:
        """A member that waits names these claims."""
        for claim in claims_of(pod):
            gangs = self._gangs.setdefault(claim, {})
            gangs[gang] = gangs.get(gang, 0) + 1

    def remove(self, gang: Key, pod: CachedPod) -> None:
        """The same member waits no more."""
        for claim in claims_of(pod):
            gangs = self._gangs.get(claim, {})
            if gangs.get(gang, 0) > 1:
                gangs[gang] -= 1
            else:
                gangs.pop(gang, None)
                if not gangs:
                    self._gangs.pop(claim, None)

    def of(self, claim: Key) -> Iterable[Key]:
        """The gangs that wait for a claim."""
        return list(self._gangs.get(claim, ()))

    def __len__(self) -> int:
        return len(self._gangs)


def claims_of(pod: CachedPod) -> Iterable[Key]:
    """The claims that a pod names, those of its generic ephemeral volumes included (rule V5)."""
    for volume in pod.volumes:
        if volume.persistent_volume_claim is not None:
            yield key_of(pod.metadata.namespace, volume.persistent_volume_claim.claim_name)
        else:
            yield key_of(pod.metadata.namespace, f"{pod.metadata.name}-{volume.name}")
