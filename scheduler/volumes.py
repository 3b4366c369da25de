"""Which claims of a pod carry rules that are not honoured yet: pure.

A claim bound to a volume that any node may use is no rule at all (a shared file system, say). Everything
else is named, so that the pod is refused aloud (rules V1 to V8).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from groups.objects import Key
from scheduler.objects import PersistentVolume, VolumeClaim
from scheduler.pods import CachedPod

_ZONE_LABELS: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


def unsupported_volumes(
    pod: CachedPod, claims: Mapping[Key, VolumeClaim], volumes: Mapping[Key, PersistentVolume]
) -> list[str]:
    """One name for each claim of the pod that decides about nodes in a way not honoured yet."""
    found = []
    for volume in pod.volumes:
        if volume.ephemeral is not None:
            found.append(f"ephemeral volume {volume.name}")
        elif volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            claim = claims.get(Key(f"{pod.metadata.namespace}/{name}"))
            if why := _objection(claim, volumes):
                found.append(f"volume claim {name} ({why})")
    return found


def _objection(claim: VolumeClaim | None, volumes: Mapping[Key, PersistentVolume]) -> str:
    if claim is None or claim.metadata.deletion_timestamp is not None:
        return "it does not exist"
    if claim.status.phase != "Bound":
        return "not bound yet; binding at placement is not supported"
    if "ReadWriteOncePod" in (claim.spec.access_modes or ()):
        return "ReadWriteOncePod"
    volume = volumes.get(Key(claim.spec.volume_name))
    if volume is None:
        return f"its volume {claim.spec.volume_name} does not exist"
    if volume.spec.node_affinity is not None or any(map(volume.metadata.label, _ZONE_LABELS)):
        return f"volume {claim.spec.volume_name} has a node affinity"
    if volume.spec.csi is not None:
        return f"volume {claim.spec.volume_name} is a CSI volume, whose attach limits are not counted"
    return ""
