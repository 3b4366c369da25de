"""The process around the matching core: caches, queue loop, binding, conditions, events."""
