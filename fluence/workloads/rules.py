"""The table of workload rules, read and checked: an error names file, rule and field.

Owns: the schema of `rules.yaml` and finding the rule for an object. Does not own: what a rule leads to
(`fluence.workloads.sizing`, `fluence.workloads.adopt`, and `webhook.decide`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from fluence.contract import MAX_GROUP_SIZE, FluenceError
from fluence.workloads.shapes import OwnerRef, Path, api_group, lookup, parse_path, text

BUILTIN_NAME: Final = "rules.yaml"


class RulesError(FluenceError):
    """The table of rules is wrong; the text names file, rule and field."""


def _as_path(value: object) -> object:
    return parse_path(value) if isinstance(value, str) else value


FieldPath = Annotated[Path, BeforeValidator(_as_path)]
Name = Annotated[str, Field(min_length=1, pattern=r"^[A-Za-z0-9][-A-Za-z0-9.]*$")]
_Group = Annotated[str, Field(pattern=r"^([a-z0-9][-a-z0-9.]*)?$")]


class _Model(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=lambda field: field.replace("_", "-"),
        populate_by_name=True,
    )


class MemberCount(_Model):
    """A field that bounds the number of members."""

    path: FieldPath
    default: Annotated[int, Field(ge=1, le=MAX_GROUP_SIZE)] | None = None


class GangCondition(_Model):
    """What a field must say for the members to start together."""

    path: FieldPath
    equals: str


class LeaveAlone(_Model):
    """Objects of the kind that are never labelled."""

    annotations: tuple[str, ...] = Field(default=(), strict=False)
    owned_by: Annotated[tuple[Name, ...], Field(strict=False)] | Literal["any"] = ()


class PodsBelongTo(_Model):
    """The object that stands behind the one that controls a pod, found by its name alone."""

    kind: Name
    cut_label: Name


class Rule(_Model):
    """What one kind of workload looks like; the fields are explained at the top of `rules.yaml`."""

    kind: Name
    group: _Group
    version: Name
    resource: Name
    templates: Annotated[tuple[FieldPath, ...], Field(min_length=1, strict=False)]
    members: tuple[MemberCount, ...] = Field(default=(), strict=False)
    gang_when: GangCondition | None = None
    named_by: Literal["object", "pod"]
    leave_alone: LeaveAlone = LeaveAlone()
    pods_belong_to: PodsBelongTo | None = None

    @property
    def api_version(self) -> str:
        """The `apiVersion` of such an object."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def leaves_alone(self, obj: Mapping[str, Any], owner: OwnerRef | None) -> bool:
        """Whether `obj`, controlled by `owner`, must never be labelled."""
        for key in self.leave_alone.annotations:
            if lookup(obj, ("metadata", "annotations", key)) is not None:
                return True
        if owner is None:
            return False
        kinds = self.leave_alone.owned_by
        return kinds == "any" or owner.kind in kinds


class Rules:
    """A checked table."""

    def __init__(self, rules: Sequence[Rule], source: str) -> None:
        self.all = tuple(rules)
        self.source = source
        self._by_kind = {(rule.group, rule.kind): rule for rule in rules}

    def find(self, api_version: str, kind: str) -> Rule | None:
        """The rule for objects of this very version, if there is one."""
        rule = self._by_kind.get((api_group(api_version), kind))
        return rule if rule is not None and rule.api_version == api_version else None

    def counted_owner(self, owner: OwnerRef) -> Rule | None:
        """The rule that counts the pods of `owner`, whatever version its reference names (rule A8)."""
        rule = self._by_kind.get((owner.group, owner.kind))
        return rule if rule is not None and rule.named_by == "object" else None

    def of_kind(self, group: str, kind: str) -> Rule | None:
        """The rule of a kind in an API group."""
        return self._by_kind.get((group, kind))


_LIST: Final = TypeAdapter(tuple[Rule, ...])


def load_rules(source: str, content: str) -> Rules:
    """Read a table from YAML; `source` names it in errors. Raises RulesError."""
    try:
        found = yaml.load(content, Loader=_SAFE_LOADER)  # noqa: S506  (a safe loader, in C if there)
    except yaml.YAMLError as error:
        raise RulesError(f"{source}: {_one_line(error)}") from error
    if not isinstance(found, dict) or set(found) != {"rules"} or not isinstance(found["rules"], list):
        raise RulesError(f'{source}: the file must hold one key, "rules", with a list of rules')
    try:
        rules = _LIST.validate_python(tuple(found["rules"]))
    except ValidationError as error:
        raise RulesError(_explain(source, found["rules"], error)) from error
    _check_together(source, rules)
    return Rules(rules, source)


@functools.cache
def builtin_rules() -> Rules:
    """The table that is shipped with the package."""
    content = resources.files("fluence.workloads").joinpath(BUILTIN_NAME).read_text("utf-8")
    return load_rules(BUILTIN_NAME, content)


_SAFE_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _check_together(source: str, rules: Sequence[Rule]) -> None:
    """What no rule can be blamed for alone: doubled kinds, and references to kinds that are not there."""
    kinds: dict[tuple[str, str], int] = {}
    for number, rule in enumerate(rules, start=1):
        first = kinds.setdefault((rule.group, rule.kind), number)
        if first != number:
            raise RulesError(
                f'{source}: rule {number} ({rule.kind}): field "kind": rule {first} is already for '
                f'{rule.kind} of group "{rule.group}"'
            )
    for number, rule in enumerate(rules, start=1):
        target = rule.pods_belong_to
        if target is not None and (rule.group, target.kind) not in kinds:
            raise RulesError(
                f'{source}: rule {number} ({rule.kind}): field "pods-belong-to.kind": no rule is for '
                f'{target.kind} of group "{rule.group}"'
            )


def _explain(source: str, raw: Sequence[object], error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    index, *field = first["loc"]
    one = raw[index] if isinstance(index, int) else None
    kind = text(one.get("kind")) if isinstance(one, dict) else ""
    where = f"{source}: rule {int(index) + 1}" + (f" ({kind})" if kind else "")
    named = f': field "{".".join(str(part) for part in field)}"' if field else ""
    return f"{where}{named}: {first['msg'].removeprefix('Value error, ')}"


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)
