"""What each process can be told: one model for each, filled from flags, environment and a YAML file.

Owns: names, defaults, descriptions and rules of the settings, where a value comes from (a flag wins over
a variable FLUENCE_<NAME>, and that over the file), and the sentence about a mistake. Does not own: the flags
themselves (`fluence.commands.options` makes them from these models), or what a setting does.

The names form one flat list for all processes, so that one file or environment can serve all three; what
another process alone understands is passed over, and what none understands is refused.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from groups.contract import SCHEDULER_NAME
from groups.errors import FluenceError

PREFIX: Final = "FLUENCE_"
#: Variables with this prefix steer the tests of this project and are never settings.
_TESTS_PREFIX: Final = "FLUENCE_TEST_"
#: What Kubernetes (and Docker) put into a container's environment for a Service called fluence-anything.
_SERVICE_LINK: Final = re.compile(
    r"\w+_SERVICE_(HOST|PORT(_\w+)?)=.*|\w+_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?=.*"
    r"|\w+_PORT=(tcp|udp|sctp)://.*"
)
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

S = TypeVar("S", bound="Settings")


class SettingsError(FluenceError):
    """A setting is unknown or wrong; the text names where it stands, its value and the rule."""


def _label(value: str) -> str:
    if not _DNS_LABEL.fullmatch(value):
        raise ValueError('it must be 1 to 63 characters of a-z, 0-9 and "-", with no "-" at either end')
    return value


def _name(value: str) -> str:
    if not _DNS_NAME.fullmatch(value) or len(value) > 253:
        raise ValueError('it must be a lower-case DNS name: a-z, 0-9, "-" and "."')
    return value


def _not_the_default(value: str) -> str:
    if value == "default-scheduler":
        raise ValueError("that one belongs to Kubernetes' own scheduler: choose another name")
    return value


def _split(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Port = Annotated[int, Field(ge=0, le=65535)]
Label = Annotated[str, AfterValidator(_label)]
Name = Annotated[str, AfterValidator(_name)]
# NoDecode: pydantic-settings would want JSON in the variable.
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


class Settings(BaseSettings):
    """What all three processes can be told."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True, validate_default=False
    )

    #: The values of the file, given by `load` for the time of one construction.
    _file: ClassVar[Mapping[str, Any]] = {}

    kubeconfig: Path | None = Field(
        None, description="The way to the API server; else $KUBECONFIG, the pod's account, ~/.kube/config."
    )
    namespace: Label = Field("fluence-system", description="Where Fluence's own Secret and Leases are.")
    scheduler_name: Annotated[Name, AfterValidator(_not_the_default)] = Field(
        SCHEDULER_NAME, description="Pods with this spec.schedulerName are ours."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="How much to log: debug, info, warning or error."
    )
    probe_host: str = Field(
        "0.0.0.0",  # noqa: S104  (kubelet and Prometheus call from outside the pod)
        description="Address for /healthz, /readyz and /metrics.",
    )
    probe_port: Port = Field(8081, description="Port for /healthz, /readyz and /metrics; 0 takes a free one.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then the environment, then the file."""
        return init_settings, env_settings, InitSettingsSource(settings_cls, dict(cls._file))


_RULES_HELP: Final = "A YAML file with rules of your own for kinds of workloads: see docs/webhook.md."


class WebhookSettings(Settings):
    """What the webhook can be told."""

    host: str = Field(
        "0.0.0.0",  # noqa: S104  (the API server calls from another machine)
        description="Address for reviews.",
    )
    port: Port = Field(8443, description="Port for reviews (HTTPS); 0 takes a free one.")
    hosts: Names = Field(
        (), description="Names and addresses for the certificate, with commas; else those of the Service."
    )
    service: Label = Field("fluence-webhook", description="The Service by which the API server calls.")
    cert_dir: Path | None = Field(
        None, description="Serve tls.crt and tls.key of this folder instead of the Secret's."
    )
    rules: Path | None = Field(None, description=_RULES_HELP)
    tls_secret: Name = Field("fluence-webhook-tls", description="The Secret that holds the certificate.")
    webhook_configuration: Name = Field(
        "fluence", description="The MutatingWebhookConfiguration that gets the caBundle."
    )
    drain_seconds: Annotated[float, Field(ge=0, le=60)] = Field(
        5.0, description="How long to go on serving, unready, after a signal to stop."
    )


class ControllerSettings(Settings):
    """What the controller can be told."""

    probe_port: Port = Field(8082, description="Port for /healthz, /readyz and /metrics; 0 takes a free one.")
    rules: Path | None = Field(None, description=_RULES_HELP)
    controller_lease: Name = Field("fluence-controller", description="The Lease by which it leads.")
    lease_seconds: Annotated[int, Field(ge=3, le=3600)] = Field(
        15, description="How long a dead leader blocks the next one."
    )


class SchedulerSettings(Settings):
    """What the scheduler can be told."""

    probe_port: Port = Field(8083, description="Port for /healthz, /readyz and /metrics; 0 takes a free one.")
    scheduler_lease: Name = Field("fluence-scheduler", description="The Lease by which it leads.")
    lease_seconds: Annotated[int, Field(ge=3, le=3600)] = Field(
        15, description="How long a dead leader blocks the next one."
    )


_MODELS: Final[tuple[type[Settings], ...]] = (WebhookSettings, ControllerSettings, SchedulerSettings)
KNOWN: Final = frozenset(name for model in _MODELS for name in model.model_fields)


def flag_of(name: str) -> str:
    """How a setting is called on the command line."""
    return f"--{name.replace('_', '-')}"


def variable_of(name: str) -> str:
    """How a setting is called in the environment."""
    return PREFIX + name.upper()


def load(model: type[S], flags: Mapping[str, str], config: Path | None = None) -> S:
    """The settings of one process; SettingsError with one sentence for the first mistake.

    `flags` holds what was given on the command line; `config` is the YAML file, else the one that
    FLUENCE_CONFIG names, if any.
    """
    _refuse_unknown_variables(os.environ)
    if config is None and (named := os.environ.get(variable_of("config"))):
        config = Path(named)
    file = {} if config is None else read_file(config)
    # A class of its own for this one construction: pydantic-settings asks the class for its sources.
    bound: type[S] = type(model.__name__, (model,), {"_file": file, "__module__": model.__module__})
    try:
        # Through **Any: a flag's text is checked like a variable's.
        given: dict[str, Any] = dict(flags)
        return bound(**given)
    except ValidationError as error:
        raise SettingsError(_sentence(error, flags, config)) from error


def read_file(path: Path) -> dict[str, Any]:
    """The settings in a YAML file, by name."""
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror}): correct --config") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise SettingsError(f"{path} is not YAML: {reason}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(f'{path} must hold settings, one a line, such as "log_level: debug"')
    settings = {str(key).replace("-", "_"): value for key, value in content.items()}
    for name in settings:
        if name not in KNOWN:
            raise SettingsError(f'"{name}" in {path} is not a setting{_closest(name, KNOWN)}')
    # A key without a value is as good as none.
    return {name: value for name, value in settings.items() if value is not None}


def _refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    known = {variable_of(name) for name in (*KNOWN, "config")}
    for name in sorted(environment):
        if name in known or not name.startswith(PREFIX) or name.startswith(_TESTS_PREFIX):
            continue
        if not _SERVICE_LINK.fullmatch(f"{name.removeprefix(PREFIX)}={environment[name]}"):
            raise SettingsError(f"the variable {name} is not a setting{_closest(name, known)}")


def _closest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, sorted(known), n=1)
    return f": did you mean {found[0]}?" if found else "; `fluence webhook --help` and its like list them all"


def _sentence(error: ValidationError, flags: Mapping[str, str], config: Path | None) -> str:
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "?"
    variable = next((key for key in os.environ if key.upper() == variable_of(name)), None)
    if name in flags:
        where = flag_of(name)
    elif variable is not None and os.environ[variable]:
        where = variable
    else:
        where = f'"{name}" in {config}'
    rule = first["msg"].removeprefix("Value error, ").replace("Input should", "it should")
    return f'{where} is "{first["input"]}": {rule}'
