"""The table of workload rules, read and checked: an error names file, rule and field.

Owns: reading the shipped table and an administrator's file beside it, and finding the rule for an object.
Does not own: the language (`groups.workloads.schema`), or what a rule leads to.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path as FilePath
from typing import Any, Final

import yaml
from pydantic import TypeAdapter, ValidationError

from groups.errors import FluenceError
from groups.names import JOB, POD
from groups.objects import OwnerReference
from groups.workloads.schema import BelongsTo, OlderLabel, Rule
from groups.workloads.shapes import WILDCARDS, Path, show_path, text

__all__ = ["Rule", "Rules", "RulesError", "builtin_rules", "load_rules", "read_rules"]

#: The shipped table, in the order in which it is listed and registered.
BUILTIN: Final = ("kubernetes.yaml", "groups.yaml", "training.yaml", "ray.yaml", "others.yaml", "labels.yaml")
_RULES: Final = TypeAdapter(tuple[Rule, ...])
_LABELS: Final = TypeAdapter(tuple[OlderLabel, ...])
_SAFE_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class RulesError(FluenceError):
    """The table of rules is wrong; the text names file, rule and field."""


class Rules:
    """A checked table."""

    def __init__(self, rules: Iterable[tuple[str, Rule]], older: Iterable[OlderLabel] = ()) -> None:
        self._by_kind: dict[tuple[str, str], Rule] = {}
        self._sources: dict[tuple[str, str], str] = {}
        for source, rule in rules:
            self._by_kind[rule.group, rule.kind] = rule
            self._sources[rule.group, rule.kind] = source
        self.all = tuple(self._by_kind.values())
        self.older = tuple(older)
        self._check_words()

    def _check_words(self) -> None:
        """Each kind has a word of its own, for groups of two kinds must not have one name (rule A1)."""
        seen: dict[str, Rule] = {}
        # An administrator's rules come last: they are the ones to be changed.
        for rule in sorted(self.all, key=lambda one: self.source_of(one) not in BUILTIN):
            where = f'{self.source_of(rule)}: rule ({rule.kind}): field "word": "{rule.word}" is'
            if (first := seen.setdefault(rule.word, rule)) is not rule:
                raise RulesError(
                    f"{where} the word of {_called(first)} already, in {self.source_of(first)}: write one "
                    "that no other kind has"
                )
            if rule.word == POD and (rule.group, rule.kind) != ("", "Pod"):
                raise RulesError(f"{where} kept for pods: write one that no other kind has")
        for rule in self.all:
            for number, team in enumerate(rule.teams):
                same = seen.get(team.word)
                # Else "a.b" could be an object of that kind, or the team "b" of the object "a".
                if team.word in (JOB, POD) or (same is not None and same.untouched is None):
                    raise RulesError(
                        f'{self.source_of(rule)}: rule ({rule.kind}): field "teams.{number}.word": '
                        f'"{team.word}" must not be the word of a kind that is in a group itself'
                    )

    def find(self, api_version: str, kind: str) -> Rule | None:
        """The rule for objects of this very version, if there is one."""
        group, _, version = api_version.rpartition("/")
        rule = self._by_kind.get((group, kind))
        return rule if rule is not None and version in rule.versions else None

    def of_kind(self, group: str, kind: str) -> Rule | None:
        """The rule of a kind in an API group."""
        return self._by_kind.get((group, kind))

    def source_of(self, rule: Rule) -> str:
        """The file that a rule comes from."""
        return self._sources[rule.group, rule.kind]

    def counted_owner(self, owner: OwnerReference) -> Rule | None:
        """The rule that counts the pods of `owner`, whatever version its reference names (rule A8)."""
        rule = self._by_kind.get((owner.group, owner.kind))
        return rule if rule is not None and rule.is_counted else None

    def behind(self, rule: Rule, owner: OwnerReference | None) -> tuple[BelongsTo, Rule] | None:
        """How an object of `rule` that `owner` controls belongs to it, and the rule that counts `owner`."""
        if owner is None:
            return None
        for link in rule.belongs_to:
            if (link.group, link.kind) == (owner.group, owner.kind):
                target = self.counted_owner(owner)
                return (link, target) if target is not None else None
        return None

    def extended(self, other: Rules) -> Rules:
        """This table with the rules of another: those for the same kind take the place of ours."""
        both = {**_items(self), **_items(other)}
        return Rules(both.values(), (*other.older, *self.older))


def _called(rule: Rule) -> str:
    return f"{rule.kind} of {rule.group or 'the core group'}"


def _items(rules: Rules) -> dict[tuple[str, str], tuple[str, Rule]]:
    return {(rule.group, rule.kind): (rules.source_of(rule), rule) for rule in rules.all}


def load_rules(source: str, content: str) -> Rules:
    """Read a table from YAML; `source` names it in errors. Raises RulesError."""
    try:
        found = yaml.load(content, Loader=_SAFE_LOADER)  # noqa: S506  (a safe loader, in C if there)
    except (yaml.YAMLError, ValueError) as error:
        raise RulesError(f"{source}: {_one_line(error)}") from error
    keys = {"rules", "older-labels"}
    if not isinstance(found, dict) or not found or not set(found) <= keys:
        raise RulesError(f'{source}: the file must hold "rules", a list of rules, or "older-labels", or both')
    for key, value in found.items():
        if not isinstance(value, list):
            raise RulesError(f'{source}: "{key}" must be a list')
    rules = _checked(_RULES, source, "rule", found.get("rules", []))
    older = _checked(_LABELS, source, "older label", found.get("older-labels", []))
    _check_each(source, rules)
    return Rules(((source, rule) for rule in rules), older)


def read_rules(file: FilePath | None) -> Rules:
    """The shipped table, with the rules of an administrator's file if there is one. Raises RulesError."""
    if file is None:
        return builtin_rules()
    return builtin_rules().extended(read_rules_file(file))


def read_rules_file(file: FilePath) -> Rules:
    """The rules of one file alone. Raises RulesError."""
    try:
        content = file.read_text("utf-8")
    except OSError as error:
        raise RulesError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RulesError(f"{file} is not UTF-8 text") from error
    rules = load_rules(str(file), content)
    _check_links(builtin_rules().extended(rules))
    return rules


@functools.cache
def builtin_rules() -> Rules:
    """The table that is shipped with the package."""
    folder = resources.files("groups.workloads").joinpath("table")
    table = Rules(())
    for name in BUILTIN:
        table = table.extended(load_rules(name, folder.joinpath(name).read_text("utf-8")))
    _check_links(table)
    return table


def _checked(kind: TypeAdapter[Any], source: str, what: str, raw: Sequence[object]) -> Any:
    try:
        return kind.validate_python(tuple(raw))
    except ValidationError as error:
        raise RulesError(_explain(source, what, raw, error)) from error


def _check_each(source: str, rules: Sequence[Rule]) -> None:
    """What the schema cannot say: doubled kinds, templates that must be there, wildcards that must agree."""
    seen: dict[tuple[str, str], int] = {}
    for number, rule in enumerate(rules, start=1):
        where = f"{source}: rule {number} ({rule.kind}): field"
        if (first := seen.setdefault((rule.group, rule.kind), number)) != number:
            raise RulesError(
                f'{where} "kind": rule {first} is already for {rule.kind} of group "{rule.group}"'
            )
        if not rule.templates and rule.untouched is None:
            raise RulesError(f'{where} "templates": a kind that is not "untouched" has at least one')
        for position, template in enumerate(rule.templates):
            for field, path in template.paths():
                if not _agrees(path, template.path):
                    raise RulesError(
                        f'{where} "templates.{position}.{field}": the wildcards of "{show_path(path)}" are '
                        f'not those with which "{show_path(template.path)}" begins'
                    )
        for field, path in _paths_of_the_object(rule):
            if WILDCARDS.intersection(path):
                raise RulesError(f'{where} "{field}": "{show_path(path)}" may have no wildcard here')


def _agrees(path: Path, template: Path) -> bool:
    last = max((number for number, step in enumerate(path, start=1) if step in WILDCARDS), default=0)
    return path[:last] == template[:last]


def _paths_of_the_object(rule: Rule) -> Iterable[tuple[str, Path]]:
    if rule.at_most is not None:
        yield from (("at-most", path) for path in rule.at_most.paths())
    if rule.gang_when is not None:
        yield "gang-when", rule.gang_when.path
    yield from ((f"hints.{number}.when", hint.when.path) for number, hint in enumerate(rule.hints))
    if rule.finished.phase is not None:
        yield "finished.phase", rule.finished.phase


def _check_links(table: Rules) -> None:
    """Objects that others belong to must have a rule of their own, by which they are counted."""
    for rule in table.all:
        for number, link in enumerate(rule.belongs_to):
            if table.of_kind(link.group, link.kind) is None:
                raise RulesError(
                    f'{table.source_of(rule)}: rule ({rule.kind}): field "belongs-to.{number}.kind": no rule '
                    f'is for {link.kind} of group "{link.group}"'
                )


def _explain(source: str, what: str, raw: Sequence[object], error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    index, *field = first["loc"]
    one = raw[index] if isinstance(index, int) else None
    kind = text(one.get("kind")) if isinstance(one, Mapping) else ""
    where = f"{source}: {what} {int(index) + 1}" + (f" ({kind})" if kind else "")
    named = f': field "{".".join(str(part) for part in field)}"' if field else ""
    return f"{where}{named}: {first['msg'].removeprefix('Value error, ')}"


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)
