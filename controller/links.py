"""Which groups depend on an owner, counted so that a link ends once all of its reasons have ended."""

from __future__ import annotations

from groups.objects import Key


class Links:
    """From the uid of an owner to the keys of groups."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[Key, int]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def of(self, uid: str) -> list[Key]:
        """The groups that `uid` is linked to."""
        return list(self._keys.get(uid, ()))

    def add(self, uid: str, key: Key) -> None:
        """Link; an empty uid stands for no owner."""
        if uid:
            keys = self._keys.setdefault(uid, {})
            keys[key] = keys.get(key, 0) + 1

    def remove(self, uid: str, key: Key) -> None:
        """Take one link back."""
        keys = self._keys.get(uid)
        if keys is None or key not in keys:
            return
        keys[key] -= 1
        if not keys[key]:
            del keys[key]
        if not keys:
            del self._keys[uid]
