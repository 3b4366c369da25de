"""Errors of the development cluster: each is one sentence for the person at the terminal."""

from groups.errors import FluenceError


class DevclusterError(FluenceError):
    """Something a person can act on: a name taken, a binary missing, a process that will not start."""


class ComponentFailed(DevclusterError):
    """A process of the cluster ended or did not become ready; the text ends with what it last said."""


class PortTaken(ComponentFailed):
    """Somebody took a port between our choosing it and the process's binding it: choose again."""
