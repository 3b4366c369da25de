"""Wait for what PodGroups say."""

from __future__ import annotations

from devcluster.api import Object
from tests.support.world import SOON_S, World


async def until_group(world: World, name: str) -> Object:
    """Wait for a PodGroup that has been stamped."""

    async def stamped() -> Object | None:
        group = await world.pod_group(name)
        return group if group and group.get("status", {}).get("creationTime") else None

    return await world.wait_for(stamped, what=f"PodGroup {name} is there and stamped") or {}


async def until_counts(world: World, name: str, *, deadline_s: float = SOON_S, **counts: int) -> Object:
    """Wait until a PodGroup counts its members so."""

    async def counted() -> Object | None:
        group = await world.pod_group(name)
        status = (group or {}).get("status", {})
        return group if all(status.get(key) == value for key, value in counts.items()) else None

    return await world.wait_for(counted, deadline_s=deadline_s, what=f"{name} counts {counts}") or {}
