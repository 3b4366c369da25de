"""`fluence webhook`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fluence.commands.options import with_settings
from fluence.settings import WebhookSettings

if TYPE_CHECKING:
    from fluence.probes import Probes


@with_settings(WebhookSettings)
def webhook(settings: WebhookSettings) -> None:
    """Label workloads of ours with group and size as they are created.

    Serves AdmissionReviews by HTTPS. Without --cert-dir it makes its own certificate, keeps it in a Secret
    and publishes the authority in its MutatingWebhookConfiguration; /readyz says no until that is done.

    \b
    In a cluster:     fluence webhook --namespace fluence-system
    On this machine:  fluence webhook --kubeconfig ~/.kube/config --host 127.0.0.1 --hosts 127.0.0.1
    With own files:   fluence webhook --cert-dir /etc/webhook-tls
    """
    # Imported here: FastAPI and uvicorn would slow down `fluence label` and `fluence version`.
    import webhook.server
    import webhook.settings
    from fluence.commands.process import run_process
    from groups.workloads.rules import read_rules
    from webhook.app import Readiness

    told = webhook.settings.WebhookSettings(
        host=settings.host,
        port=settings.port,
        scheduler_name=settings.scheduler_name,
        namespace=settings.namespace,
        cert_dir=settings.cert_dir,
        tls_secret=settings.tls_secret,
        webhook_configuration=settings.webhook_configuration,
        hosts=settings.hosts,
        service=settings.service,
        kubeconfig=settings.kubeconfig,
        rules=read_rules(settings.rules),
        drain_s=settings.drain_seconds,
    )

    async def work(probes: Probes) -> None:
        readiness = Readiness()

        def not_ready() -> Sequence[str]:
            return [] if readiness.ready else [readiness.why]

        probes.not_ready = not_ready
        await webhook.server.serve(told, readiness)

    run_process("webhook", settings, work)
