"""The identities of a cluster: its certificate authority, its users and their kubeconfigs.

Users authenticate by token. Each process has its own identity, so that RBAC is tested.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import secrets
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from devcluster.paths import ClusterFolder

ADMIN: Final = "admin"
#: user name and groups of each identity; `system:` users get their rights from the API server itself.
_USERS: Final[dict[str, tuple[str, str]]] = {
    ADMIN: (ADMIN, "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    # A fake kubelet of every node at once: no role of Kubernetes fits.
    "kwok": ("kwok", "system:masters"),
}
_HOSTS: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_LIFETIME: Final = dt.timedelta(days=365)


class Identities:
    """The files under `secrets/`, made once for each cluster."""

    def __init__(self, folder: ClusterFolder) -> None:
        self._folder = folder
        self.ca = folder.secrets / "ca.crt"
        self.certificate = folder.secrets / "server.crt"
        self.key = folder.secrets / "server.key"
        self.service_account_key = folder.secrets / "service-account.key"
        self.tokens = folder.secrets / "tokens.csv"

    def create(self, server: str) -> None:
        """Write keys, certificates, tokens and the kubeconfigs for the API server at `server`."""
        self._folder.secrets.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._certificates()
        self.service_account_key.write_bytes(_pem(ec.generate_private_key(ec.SECP256R1())))
        lines = []
        for number, (identity, (user, group)) in enumerate(_USERS.items(), start=1):
            token = secrets.token_urlsafe(24)
            lines.append(f'{token},{user},{number},"{group}"' if group else f"{token},{user},{number}")
            self.kubeconfig(identity, server, token)
        _write_private(self.tokens, "\n".join(lines) + "\n")

    def kubeconfig(self, identity: str, server: str, token: str, namespace: str = "default") -> Path:
        """Write the kubeconfig of one identity."""
        name = f"devcluster-{self._folder.name}"
        path = self._folder.kubeconfig if identity == ADMIN else self._folder.kubeconfig_of(identity)
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": name, "cluster": {"server": server, "certificate-authority": str(self.ca)}}
            ],
            "users": [{"name": identity, "user": {"token": token}}],
            "contexts": [
                {"name": name, "context": {"cluster": name, "user": identity, "namespace": namespace}}
            ],
            "current-context": name,
        }
        _write_private(path, yaml.safe_dump(content, sort_keys=False))
        return path

    def _certificates(self) -> None:
        now = dt.datetime.now(dt.UTC)
        authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "devcluster")])
        base = (
            x509.CertificateBuilder()
            .issuer_name(subject)
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + _LIFETIME)
        )
        ca = (
            base.subject_name(subject)
            .public_key(authority.public_key())
            .serial_number(x509.random_serial_number())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(authority, hashes.SHA256())
        )
        names = [x509.DNSName(host) for host in _HOSTS]
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        leaf = (
            base.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]))
            .public_key(server.public_key())
            .serial_number(x509.random_serial_number())
            .add_extension(x509.SubjectAlternativeName([*names, address]), critical=False)
            .sign(authority, hashes.SHA256())
        )
        self.ca.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        self.certificate.write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
        self.key.write_bytes(_pem(server))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write_private(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
