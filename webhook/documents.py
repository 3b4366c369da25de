"""Manifests as text: several YAML or JSON documents in, YAML out.

Owns: what a document is and the line on which it begins, for error messages. Does not own: labels.
A value must be the same for kubectl before and after. Python's YAML, our output, and the Go YAML of kubectl
differ: for the last, an unquoted 1e3 is a number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from groups.errors import FluenceError


class ManifestError(FluenceError):
    """A file that cannot be read as manifests; the text names file and line."""


@dataclass(frozen=True)
class Document:
    """One object of a file, and the line on which it begins."""

    source: str
    line: int
    value: dict[str, Any]


def read_documents(source: str, content: str) -> list[Document]:
    """The objects in `content`; empty documents are left out. Raises ManifestError."""
    found = _read_json(content)
    if found is None:
        found = _read_yaml(source, content)
    return [Document(source, line, _plain(source, line, value)) for line, value in found if value is not None]


def write_documents(values: Iterable[object]) -> str:
    """YAML, one document for each value."""
    return yaml.dump_all(
        values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31 - 1, explicit_start=True
    )


def _read_json(content: str) -> list[tuple[int, Any]] | None:
    """JSON texts one after the other, as kubectl accepts them; None if it is not JSON.

    YAML should include JSON, but its parser refuses tabs.
    """
    if not content.lstrip().startswith("{"):
        return None
    decoder = json.JSONDecoder()
    found = []
    position = 0
    while begin := _NOT_SPACE.search(content, position):
        try:
            value, position = decoder.raw_decode(content, begin.start())
        except (json.JSONDecodeError, RecursionError):
            return None
        found.append((content.count("\n", 0, begin.start()) + 1, value))
    return found


_NOT_SPACE: Final = re.compile(r"[^ \t\r\n]")


def _read_yaml(source: str, content: str) -> list[tuple[int, Any]]:
    try:
        return list(_yaml_documents(content))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        # What is missing at the end is reported on the line after it.
        last = content.rstrip().count("\n") + 1
        where = f", line {min(mark.line + 1, last)}" if mark is not None else ""
        raise ManifestError(f"{source}{where}: this is not YAML: {problem}") from error
    except (ValueError, RecursionError, TypeError) as error:
        raise ManifestError(f"{source}: this is not YAML that Kubernetes understands: {error}") from error


def _yaml_documents(content: str) -> Iterator[tuple[int, Any]]:
    loader = _Loader(content)
    try:
        while loader.check_node():
            node = loader.get_node()
            yield node.start_mark.line + 1, loader.construct_document(node)
    finally:
        loader.dispose()


def _plain(source: str, line: int, value: object) -> dict[str, Any]:
    """`value` as JSON would hold it.

    This also copies what YAML anchors share. Otherwise labels that are written once for selector and template
    would be one dict, and a label added to the template would change the selector.
    """
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ManifestError(
            f"{source}, line {line}: the document holds what JSON cannot ({error})"
        ) from error
    if not isinstance(plain, dict):
        raise ManifestError(f"{source}, line {line}: the document is no Kubernetes object, which is a map")
    return plain


def _without(resolvers: dict[Any, Any], tag: str) -> dict[Any, Any]:
    return {key: [(t, r) for t, r in rules if t != tag] for key, rules in resolvers.items()}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time
    """Times stay text, as in JSON."""


_Loader.yaml_implicit_resolvers = _without(
    yaml.SafeLoader.yaml_implicit_resolvers, "tag:yaml.org,2002:timestamp"
)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # chosen at run time
    """Quotes strings that some YAML reader could read as another type."""

    def ignore_aliases(self, data: object) -> bool:
        """Write every value out."""
        return True


#: Numbers for some YAML reader: 1e3, 0o17, 1_000, 12:30, .5; and the booleans of YAML 1.1.
_AMBIGUOUS: Final = re.compile(r"[-+.]?[0-9][-+0-9a-fA-FxXoO_.:]*|[yYnN]|[-+]?\.(inf|Inf|INF|nan|NaN|NAN)")


def _text(dumper: Any, value: str) -> Any:
    style = '"' if _AMBIGUOUS.fullmatch(value) else ("|" if "\n" in value else None)
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def items_of(value: dict[str, Any]) -> Sequence[Any] | None:
    """The items where `value` is a list of objects (List, PodList, ...), else None."""
    kind, items = value.get("kind"), value.get("items")
    return items if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list) else None
