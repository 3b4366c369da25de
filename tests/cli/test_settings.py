"""Settings come from flags, environment and file, and a mistake in any of them is told in one sentence."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluence import settings
from fluence.settings import (
    ControllerSettings,
    SchedulerSettings,
    Settings,
    SettingsError,
    WebhookSettings,
    load,
)

MODELS = [WebhookSettings, ControllerSettings, SchedulerSettings]
File = Callable[[str], Path]


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("FLUENCE_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path) -> File:
    def write(text: str) -> Path:
        path = tmp_path / "fluence.yaml"
        path.write_text(text)
        return path

    return write


def sentence_of(model: type[Settings], flags: dict[str, str], config: Path | None = None) -> str:
    with pytest.raises(SettingsError) as raised:
        load(model, flags, config)
    text = str(raised.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("model", MODELS)
def test_without_any_settings_the_defaults_hold(model: type[Settings]) -> None:
    found = load(model, {})
    assert (found.scheduler_name, found.namespace) == ("fluence", "fluence-system")


def test_three_processes_on_one_machine_do_not_meet_on_a_port() -> None:
    ports = [load(model, {}).probe_port for model in MODELS]
    assert len({*ports, load(WebhookSettings, {}).port}) == 4


@given(
    flag=st.none() | st.integers(1, 65535),
    variable=st.none() | st.integers(1, 65535),
    in_file=st.none() | st.integers(1, 65535),
)
def test_a_flag_wins_over_a_variable_and_that_over_the_file(
    tmp_path_factory: pytest.TempPathFactory, flag: int | None, variable: int | None, in_file: int | None
) -> None:
    config = tmp_path_factory.mktemp("settings") / "fluence.yaml"
    config.write_text("" if in_file is None else f"port: {in_file}\n")
    with pytest.MonkeyPatch.context() as patch:
        if variable is not None:
            patch.setenv("FLUENCE_PORT", str(variable))
        found = load(WebhookSettings, {} if flag is None else {"port": str(flag)}, config)
    assert found.port == next(one for one in (flag, variable, in_file, 8443) if one is not None)


def test_the_file_may_be_named_by_a_variable(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUENCE_CONFIG", str(file("log-level: debug\n")))
    assert load(SchedulerSettings, {}).log_level == "debug"


def test_names_in_a_list_come_with_commas_or_as_a_list(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(WebhookSettings, {"hosts": "127.0.0.1, localhost"}).hosts == ("127.0.0.1", "localhost")
    assert load(WebhookSettings, {}, file("hosts: [a, b]")).hosts == ("a", "b")
    monkeypatch.setenv("FLUENCE_HOSTS", "c,d")
    assert load(WebhookSettings, {}).hosts == ("c", "d")


def test_an_empty_variable_or_key_is_as_good_as_none(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUENCE_PORT", "")
    assert load(WebhookSettings, {}, file("kubeconfig:\n")).port == 8443


def test_one_file_serves_all_three_processes(file: File) -> None:
    config = file("port: 9443\nscheduler_lease: s\ncontroller_lease: c\n")
    assert load(WebhookSettings, {}, config).port == 9443
    assert load(SchedulerSettings, {}, config).scheduler_lease == "s"
    assert load(ControllerSettings, {}, config).controller_lease == "c"


def test_an_unknown_name_in_the_file_is_told_with_the_closest_one(file: File) -> None:
    config = file("scheduler_nam: other\n")
    text = sentence_of(SchedulerSettings, {}, config)
    assert "scheduler_nam" in text
    assert str(config) in text
    assert "did you mean scheduler_name?" in text


def test_an_unknown_variable_is_told_with_the_closest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUENCE_PROB_PORT", "8081")
    text = sentence_of(SchedulerSettings, {})
    assert "FLUENCE_PROB_PORT" in text
    assert "FLUENCE_PROBE_PORT" in text


def test_what_kubernetes_puts_into_a_container_for_a_service_is_no_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {
        "FLUENCE_WEBHOOK_SERVICE_HOST": "10.0.0.7",
        "FLUENCE_WEBHOOK_SERVICE_PORT": "443",
        "FLUENCE_WEBHOOK_SERVICE_PORT_WEBHOOK": "443",
        "FLUENCE_WEBHOOK_PORT": "tcp://10.0.0.7:443",
        "FLUENCE_WEBHOOK_PORT_443_TCP": "tcp://10.0.0.7:443",
        "FLUENCE_WEBHOOK_PORT_443_TCP_ADDR": "10.0.0.7",
    }.items():
        monkeypatch.setenv(name, value)
    load(WebhookSettings, {})


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("port", "abc", "integer"),
        ("port", "70000", "65535"),
        ("probe_port", "-1", "0"),
        ("log_level", "loud", "'debug', 'info', 'warning' or 'error'"),
        ("namespace", "Fluence_System", "a-z, 0-9"),
        ("scheduler_name", "My Scheduler", "lower-case DNS name"),
        ("scheduler_name", "default-scheduler", "choose another name"),
    ],
)
def test_a_wrong_value_is_told_with_its_place_and_its_rule(
    name: str, value: str, rule: str, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = file(f"{name}: {value}\n")
    in_file = sentence_of(WebhookSettings, {}, config)
    assert f'"{name}" in {config}' in in_file
    monkeypatch.setenv(settings.variable_of(name), value)
    in_environment = sentence_of(WebhookSettings, {}, config)
    assert settings.variable_of(name) in in_environment
    on_the_command_line = sentence_of(WebhookSettings, {name: value}, config)
    assert settings.flag_of(name) in on_the_command_line
    for text in (in_file, in_environment, on_the_command_line):
        assert f'"{value}"' in text
        assert rule in text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("port: [", "is not YAML", id="broken"),
        pytest.param("- port\n", "must hold settings", id="a list"),
        pytest.param("just words", "must hold settings", id="text"),
    ],
)
def test_a_file_that_holds_no_settings_is_told(content: str, said: str, file: File) -> None:
    assert said in sentence_of(WebhookSettings, {}, file(content))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    text = sentence_of(WebhookSettings, {}, tmp_path / "none.yaml")
    assert "none.yaml cannot be read" in text
    assert "--config" in text
