"""The address of the API server and our credentials: read by kubernetes-asyncio, refreshed by us.

Owns: finding and reading a kubeconfig or the pod's service account, the Authorization header, the TLS
context. Does not own: connections.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import yaml
from kubernetes_asyncio import config as loading
from kubernetes_asyncio.client import Configuration

from kube.errors import ConfigError

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")

Loader = Callable[[], Awaitable[Configuration]]


def _in_cluster_loader() -> Loader:
    async def load() -> Configuration:
        found = Configuration()
        try:
            loading.load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
        except (loading.ConfigException, OSError) as error:
            raise ConfigError(f"the pod's service account cannot be used: {error}") from error
        return found

    return load


def _kubeconfig_loader(path: Path) -> Loader:
    async def load() -> Configuration:
        found = Configuration()
        try:
            await loading.load_kube_config(
                config_file=str(path), client_configuration=found, persist_config=False
            )
        except (loading.ConfigException, OSError, yaml.YAMLError, TypeError, KeyError) as error:
            raise ConfigError(f"kubeconfig {path} cannot be used: {error}") from error
        return found

    return load


def find_loader(kubeconfig: Path | None) -> Loader:
    """How to reach the API server: the given file, or $KUBECONFIG, or the pod's account, or ~/.kube/config.

    Raises ConfigError if the file is missing or none of them exists.
    """
    if kubeconfig is None and (named := os.environ.get("KUBECONFIG")):
        kubeconfig = Path(named.split(os.pathsep)[0])
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise ConfigError(
                f"kubeconfig {kubeconfig} does not exist: give the path of one with --kubeconfig "
                "or in KUBECONFIG"
            )
        return _kubeconfig_loader(kubeconfig)
    if _SERVICE_ACCOUNT.exists():
        return _in_cluster_loader()
    home = Path("~/.kube/config").expanduser()
    if home.is_file():
        return _kubeconfig_loader(home)
    raise ConfigError(
        "no way to an API server: not in a pod, no KUBECONFIG, no ~/.kube/config; "
        "give a file with --kubeconfig"
    )


class Credentials:
    """A loaded configuration that can be read again when the server refuses it (case C74)."""

    def __init__(self, load: Loader, loaded: Configuration) -> None:
        self._load = load
        self._loaded = loaded

    @classmethod
    async def find(cls, kubeconfig: Path | None) -> Credentials:
        """Find and read the configuration, or raise ConfigError."""
        load = find_loader(kubeconfig)
        return cls(load, await load())

    @property
    def server(self) -> str:
        """The address of the API server, without a slash at its end."""
        return str(self._loaded.host).rstrip("/")

    async def authorization(self) -> str | None:
        """The Authorization header; a pod's token is read again each minute by the library."""
        token = await self._loaded.get_api_key_with_prefix("BearerToken")
        return str(token) if token else None

    async def refresh(self) -> None:
        """Read everything again, after the server refused our credentials."""
        self._loaded = await self._load()

    def tls(self) -> ssl.SSLContext:
        """A TLS context with the server's authority and, if there is one, our client certificate."""
        found = self._loaded
        try:
            context = ssl.create_default_context(cafile=found.ssl_ca_cert)
            if found.cert_file:
                context.load_cert_chain(found.cert_file, keyfile=found.key_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"the certificates for {self.server} cannot be read: {error}") from error
        if not found.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
