"""The settings of the webhook's process; the command line fills them in."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from groups.contract import SCHEDULER_NAME
from groups.workloads.rules import Rules, builtin_rules
from webhook.decide import SYSTEM_NAMESPACES, Policy


@dataclass(frozen=True)
class WebhookSettings:
    """Where to listen, where the certificate comes from, whom to label."""

    host: str = "0.0.0.0"  # noqa: S104  (the API server calls from another machine)
    port: int = 8443
    scheduler_name: str = SCHEDULER_NAME
    #: The release namespace: its pods are left alone, and it holds the Secret.
    namespace: str = "fluence-system"
    #: A folder with tls.crt and tls.key, as a mounted Secret has them. With it nothing is asked of the
    #: API server: whoever writes the files also writes the caBundle.
    cert_dir: Path | None = None
    tls_secret: str = "fluence-webhook-tls"  # noqa: S105  (the name of one)
    webhook_configuration: str = "fluence"
    #: The names by which the API server calls us; empty: those of the Service.
    hosts: tuple[str, ...] = ()
    service: str = "fluence-webhook"
    kubeconfig: Path | None = None
    rules: Rules = field(default_factory=builtin_rules)
    #: How long to try to get the certificate and to register it.
    startup_deadline_s: float = 60.0
    #: How long to go on serving, unready, after the signal to stop: until then the API server
    #: may still be sent here.
    drain_s: float = 5.0
    #: How long requests may take to end after that.
    graceful_shutdown_s: int = 10

    @property
    def subject_names(self) -> tuple[str, ...]:
        """What the serving certificate must be valid for (case C125)."""
        return self.hosts or service_names(self.service, self.namespace)

    @property
    def policy(self) -> Policy:
        """Whom to label."""
        return Policy(
            scheduler_name=self.scheduler_name,
            skipped_namespaces=frozenset((*SYSTEM_NAMESPACES, self.namespace)),
            rules=self.rules,
        )


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """The DNS names of a Service; the API server uses the one that ends in `.svc` (rule W27)."""
    return (
        f"{service}.{namespace}.svc",
        service,
        f"{service}.{namespace}",
        f"{service}.{namespace}.svc.cluster.local",
    )
