"""The objects that `helm install` creates for the three processes."""

from itertools import chain
from typing import Any

import pytest
import yaml

from devcluster.paths import CHART
from fluence import settings
from tests.chart.conftest import PROCESSES, Helm, Render, Rendered
from webhook.registration import chart_template

_MODELS = {
    "webhook": settings.WebhookSettings,
    "controller": settings.ControllerSettings,
    "scheduler": settings.SchedulerSettings,
}


def flags_of(pod: dict[str, Any]) -> dict[str, str]:
    pairs = (argument.removeprefix("--").split("=", 1) for argument in pod["containers"][0]["args"][1:])
    return {name.replace("-", "_"): value for name, value in pairs}


def test_helm_lint_reports_nothing(helm: Helm) -> None:
    ended = helm.run("lint", "--strict", str(CHART))
    assert ended.returncode == 0, ended.stdout
    assert "[WARNING]" not in ended.stdout


def test_every_object_has_a_name_of_this_release_and_the_common_labels(chart: Rendered) -> None:
    ours = [one for one in chart.objects if one["kind"] != "CustomResourceDefinition"]
    assert len({(one["kind"], one["metadata"]["name"]) for one in ours}) == len(ours)
    for one in ours:
        assert one["metadata"]["name"].startswith("fluence")
        assert one["metadata"]["labels"]["app.kubernetes.io/part-of"] == "fluence"


@pytest.mark.parametrize("process", PROCESSES)
def test_the_arguments_of_each_process_are_its_settings(chart: Rendered, process: str) -> None:
    pod = chart.pod(process)
    assert pod["containers"][0]["args"][0] == process
    flags = flags_of(pod)
    assert set(flags) <= set(_MODELS[process].model_fields)
    found = settings.load(_MODELS[process], flags)
    assert (found.namespace, found.scheduler_name) == ("fluence-system", "fluence")


@pytest.mark.parametrize("process", PROCESSES)
def test_pods_meet_the_restricted_profile(chart: Rendered, process: str) -> None:
    pod = chart.pod(process)
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize("process", PROCESSES)
def test_pods_are_probed_limited_and_placed_by_the_default_scheduler(chart: Rendered, process: str) -> None:
    """A scheduler that had to schedule its own pod would never start."""
    pod = chart.pod(process)
    [container] = pod["containers"]
    assert pod["schedulerName"] == "default-scheduler"
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "probes"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "probes"}
    probes = [port["containerPort"] for port in container["ports"] if port["name"] == "probes"]
    assert probes == [int(flags_of(pod)["probe_port"])]
    assert {"cpu", "memory"} == set(container["resources"]["requests"])
    assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("process", PROCESSES)
def test_services_add_no_environment_variables(chart: Rendered, process: str) -> None:
    assert chart.pod(process)["enableServiceLinks"] is False


def test_selectors_match_the_pods_of_one_process_only(chart: Rendered) -> None:
    for deployment in chart.of("Deployment"):
        wanted = deployment["spec"]["selector"]["matchLabels"].items()
        matching = [
            one["metadata"]["name"]
            for one in chart.of("Deployment")
            if wanted <= one["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert matching == [deployment["metadata"]["name"]]


def test_the_service_reaches_the_port_that_the_webhook_listens_on(chart: Rendered) -> None:
    service = chart.one("Service", "fluence-webhook")
    pod = chart.pod("webhook")
    [port] = service["spec"]["ports"]
    ports = {one["name"]: one["containerPort"] for one in pod["containers"][0]["ports"]}
    assert ports[port["targetPort"]] == int(flags_of(pod)["port"])
    labels = chart.one("Deployment", "fluence-webhook")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def test_the_registration_is_the_one_generated_from_the_table_of_rules() -> None:
    assert (CHART / "templates" / "webhook-registration.yaml").read_text() == chart_template()


def test_the_registration_uses_the_service_unless_a_url_is_given(render: Render) -> None:
    def clients(*options: str) -> list[dict[str, Any]]:
        registration = render(*options).one("MutatingWebhookConfiguration", "fluence")
        return [one["clientConfig"] for one in registration["webhooks"]]

    service = {"name": "fluence-webhook", "namespace": "fluence-system", "path": "/mutate", "port": 443}
    assert all(one == {"service": service} for one in clients())
    url = "https://127.0.0.1:9443/mutate"
    assert all(one == {"url": url} for one in clients(f"--set=webhook.url={url}"))


def test_no_webhook_is_registered_without_replicas(render: Render) -> None:
    """With policies instead of it, each creation would wait for a webhook that does not run."""
    none, elsewhere = "--set=webhook.replicas=0", "--set=webhook.url=https://127.0.0.1:9443/mutate"
    assert not render(none).of("MutatingWebhookConfiguration")
    assert len(render(none, elsewhere).of("MutatingWebhookConfiguration")) == 1


def test_the_webhook_is_not_called_for_pods_of_its_own_namespace(render: Render) -> None:
    """Case C134: otherwise our own pods could be created only while our webhook runs."""
    registration = render(namespace="elsewhere").one("MutatingWebhookConfiguration", "fluence")
    for one in registration["webhooks"]:
        [expression] = one["namespaceSelector"]["matchExpressions"]
        assert expression["operator"] == "NotIn"
        assert {"elsewhere", "kube-system"} <= set(expression["values"])


def test_objects_are_created_without_the_webhook_unless_the_administrator_forbids_it(render: Render) -> None:
    """Case C135."""

    def policies(*options: str) -> set[str]:
        registration = render(*options).one("MutatingWebhookConfiguration", "fluence")
        return {one["failurePolicy"] for one in registration["webhooks"]}

    assert policies() == {"Ignore"}
    assert policies("--set=webhook.failurePolicy=Fail") == {"Fail"}


def test_each_process_can_have_no_replicas(render: Render) -> None:
    options = [f"--set={process}.replicas=0" for process in PROCESSES]
    deployments = render(*options).of("Deployment")
    assert [one["spec"]["replicas"] for one in deployments] == [0, 0, 0]


def test_another_scheduler_name_reaches_all_processes_and_the_registration(render: Render) -> None:
    rendered = render("--set=schedulerName=gangs")
    for process in PROCESSES:
        assert flags_of(rendered.pod(process))["scheduler_name"] == "gangs"
    registration = rendered.one("MutatingWebhookConfiguration", "fluence")
    for condition in chain.from_iterable(one["matchConditions"] for one in registration["webhooks"]):
        assert '== "gangs"' in condition["expression"]


def test_the_image_tag_is_the_version_of_the_chart_by_default(render: Render) -> None:
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]

    def images(*options: str) -> set[tuple[str, str]]:
        rendered = render(*options)
        containers = [rendered.pod(process)["containers"][0] for process in PROCESSES]
        return {(one["image"], one["imagePullPolicy"]) for one in containers}

    assert images() == {(f"fluence:{version}", "IfNotPresent")}
    other = ["image.repository=here/fluence", "image.tag=x", "image.pullPolicy=Never"]
    assert images(*[f"--set={one}" for one in other]) == {("here/fluence:x", "Never")}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("webhook.replica=2", "replica"),
        ("schedulername=x", "schedulername"),
        ("webhook.failurePolicy=Perhaps", "failurePolicy"),
        ("webhook.url=http://127.0.0.1/", "url"),
        ("webhook.timeoutSeconds=60", "timeoutSeconds"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("schedulerName=default-scheduler", "schedulerName"),
    ],
)
def test_illegal_values_are_refused_by_name(helm: Helm, value: str, said: str) -> None:
    assert said in helm.refuses(f"--set={value}")


def test_another_release_has_names_of_its_own(render: Render) -> None:
    rendered = render(release="second", namespace="there")
    names = {one["metadata"]["name"] for one in rendered.objects}
    assert all(name.startswith("second-fluence") for name in names)
    for process in PROCESSES:
        name = f"second-fluence-{process}"
        pod = rendered.one("Deployment", name)["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == name
        assert flags_of(pod)["namespace"] == "there"
    webhook = flags_of(rendered.one("Deployment", "second-fluence-webhook")["spec"]["template"]["spec"])
    assert webhook["service"] in names
    assert webhook["webhook_configuration"] in names
