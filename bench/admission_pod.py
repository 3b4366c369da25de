"""The pod whose creation is measured: two containers with environment variables, as in usual manifests."""

from __future__ import annotations

from typing import Any


def pod(scheduler_name: str, labels: dict[str, str], **metadata: Any) -> dict[str, Any]:
    """Such a pod, before the API server's own plugins change it; `metadata` has its name."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "labels": {"app": "web", "team": "platform", **labels},
            "annotations": {"example.com/config": "x" * 400},
        },
        "spec": {
            "schedulerName": scheduler_name,
            "restartPolicy": "Always",
            "containers": [
                {
                    "name": f"c{number}",
                    "image": "registry.example.com/team/image:v1.2.3",
                    "resources": {"requests": {"cpu": "500m", "memory": "128Mi"}},
                    "env": [{"name": f"VARIABLE_{one}", "value": "some value"} for one in range(6)],
                }
                for number in range(2)
            ],
        },
    }
