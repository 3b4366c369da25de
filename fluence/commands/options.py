"""Command-line options made from the models in `fluence.settings`, so that a setting stands in one place."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer
from pydantic.fields import FieldInfo

from fluence.settings import Settings, flag_of, load

S = TypeVar("S", bound=Settings)

EPILOG: Final = (
    "Every option can also come from a variable (FLUENCE_PROBE_PORT for --probe-port) or from the YAML file "
    "of --config (probe_port: 8081). A flag wins over a variable, a variable over the file."
)
_METAVARS: Final = {int: "N", Path: "PATH", tuple: "A,B,..."}


def with_settings(model: type[S]) -> Callable[[Callable[[S], None]], Callable[..., None]]:
    """Turn `command(settings)` into a typer command with an option for each setting of `model`."""

    def decorate(command: Callable[[S], None]) -> Callable[..., None]:
        def run(config: Path | None = None, **given: str | None) -> None:
            flags = {name: value for name, value in given.items() if value is not None}
            command(load(model, flags, config))

        parameters = [_config_option(), *(_option(*item) for item in model.model_fields.items())]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _config_option() -> inspect.Parameter:
    info = typer.Option("--config", metavar="FILE", help="A YAML file with settings.", show_default=False)
    return _parameter("config", Annotated[Path | None, info])


def _option(name: str, field: FieldInfo) -> inspect.Parameter:
    default = field.default
    shown = "" if default is None or default == () else f"  [default: {default}]"
    # Text, whatever the setting's type: the model checks it, with one sentence for every source.
    info = typer.Option(
        flag_of(name), metavar=_metavar(field), help=f"{field.description}{shown}", show_default=False
    )
    return _parameter(name, Annotated[str | None, info])


def _metavar(field: FieldInfo) -> str:
    kinds: tuple[Any, ...] = (field.annotation,)
    if isinstance(field.annotation, types.UnionType):
        kinds = typing.get_args(field.annotation)
    for kind in kinds:
        if (found := _METAVARS.get(typing.get_origin(kind) or kind)) is not None:
            return found
    return "TEXT"


def _parameter(name: str, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
