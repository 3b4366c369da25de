"""Errors of the development cluster: each is one sentence for the person at the terminal."""

from groups.errors import FluenceError


class DevclusterError(FluenceError):
    """An error that a person can act on: a name is taken, a binary is missing, a process does not start."""


class ComponentFailed(DevclusterError):
    """A process of the cluster ended or did not become ready; the text ends with the end of its log."""


class PortTaken(ComponentFailed):
    """Another program took a port after we chose it and before our process bound it: choose again."""
