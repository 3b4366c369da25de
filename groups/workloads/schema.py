"""The language of the table of rules: each field is explained at the top of `table/kubernetes.yaml`.

Owns: the shape of a rule, checked by pydantic. Does not own: reading files (`groups.workloads.rules`), or
what a rule leads to (`sizing`, `adopt`, and `webhook.decide`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from groups.contract import MAX_GROUP_SIZE
from groups.objects import OwnerReference
from groups.workloads.shapes import Path, lookup, parse_path


def _as_path(value: object) -> object:
    return parse_path(value) if isinstance(value, str) else value


def _as_template(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


def _as_count(value: object) -> object:
    """A number stands for itself."""
    return {"fixed": value} if isinstance(value, int) and not isinstance(value, bool) else value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


FieldPath = Annotated[Path, BeforeValidator(_as_path)]
Name = Annotated[str, Field(min_length=1, pattern=r"^[A-Za-z0-9][-A-Za-z0-9.]*$")]
#: Part of a group's name: without a dot, so that the first dot ends it (rule A1).
Word = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
GroupName = Annotated[str, Field(pattern=r"^([a-z0-9][-a-z0-9.]*)?$")]
Key = Annotated[str, Field(pattern=r"^([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")]
#: What fits into a warning of the API server beside the rest of a sentence (rule W12).
Sentence = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f]*$")]
_Number = Annotated[int, Field(ge=0, le=MAX_GROUP_SIZE)]
_list: Final = Field(default=(), strict=False)


class _Model(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=lambda field: field.rstrip("_").replace("_", "-"),
        populate_by_name=True,
    )


class Condition(_Model):
    """What a field must say; `default` is what counts where it is missing."""

    path: FieldPath
    equals: str | bool | int | None = None
    present: bool | None = None
    default: str | bool | int | None = None

    @model_validator(mode="after")
    def _one_question(self) -> Condition:
        if (self.equals is None) == (self.present is None):
            raise ValueError('a condition has one of "equals" and "present"')
        return self

    def holds(self, value: object) -> bool:
        """Whether it is so for the value found at its path."""
        if self.present is not None:
            return (value is not None) == self.present
        found = self.default if value is None else value
        # True is 1 to Python, but not to Kubernetes.
        return type(found) is type(self.equals) and found == self.equals


class Count(_Model):
    """How many pods: one of a fixed number, a field, or several counts put together."""

    fixed: _Number | None = None
    path: FieldPath | None = None
    default: _Number | None = None
    smallest: tuple[CountOf, ...] = _list
    largest: tuple[CountOf, ...] = _list
    product: tuple[CountOf, ...] = _list
    sum: tuple[CountOf, ...] = _list
    when: Condition | None = None
    then: CountOf | None = None
    else_: CountOf | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Count:
        ways = (self.smallest, self.largest, self.product, self.sum)
        given = sum(map(bool, ways)) + sum(one is not None for one in (self.fixed, self.path, self.when))
        if given != 1:
            raise ValueError("a count is one of: a number, path, smallest, largest, product, sum, when")
        if self.default is not None and self.path is None:
            raise ValueError('"default" goes with "path"')
        if (self.when is None) != (self.then is None) or (self.when is None) != (self.else_ is None):
            raise ValueError('"when", "then" and "else" go together')
        return self

    @property
    def parts(self) -> tuple[Count, ...]:
        """The counts that this one is put together from."""
        chosen = tuple(one for one in (self.then, self.else_) if one is not None)
        return (*self.smallest, *self.largest, *self.product, *self.sum, *chosen)

    def paths(self) -> Iterator[Path]:
        """Every path that it reads."""
        if self.path is not None:
            yield self.path
        if self.when is not None:
            yield self.when.path
        for part in self.parts:
            yield from part.paths()


CountOf = Annotated[Count, BeforeValidator(_as_count)]
Count.model_rebuild()
ONE: Final = Count(fixed=1)


class OwnGroup(_Model):
    """Pods of a template that form a group beside that of the object; with conditions, when one holds."""

    suffix: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")] | None = None
    suffix_from: FieldPath | None = None
    when: tuple[Condition, ...] = _list

    @model_validator(mode="after")
    def _one_suffix(self) -> OwnGroup:
        if (self.suffix is None) == (self.suffix_from is None):
            raise ValueError('a group of its own has one of "suffix" and "suffix-from"')
        return self


class Template(_Model):
    """Where pod templates are, and how many pods are made from each."""

    path: FieldPath
    pods: CountOf = ONE
    most: CountOf | None = None
    own_group: OwnGroup | None = None

    def paths(self) -> Iterator[tuple[str, Path]]:
        """Every path beside its own, with the field in which it stands."""
        yield from (("pods", path) for path in self.pods.paths())
        if self.most is not None:
            yield from (("most", path) for path in self.most.paths())
        if (own := self.own_group) is not None:
            if own.suffix_from is not None:
                yield "own-group.suffix-from", own.suffix_from
            yield from (("own-group.when", condition.path) for condition in own.when)


class LeaveAlone(_Model):
    """Objects of the kind that are never labelled."""

    annotations: tuple[Key, ...] = _list
    labels: tuple[Key, ...] = _list
    owned_by: Annotated[tuple[Name, ...], Field(strict=False)] | Literal["any"] = ()


class BelongsTo(_Model):
    """The object that stands behind one that controls a pod, as the pod's labels tell."""

    kind: Name
    group: GroupName
    #: Its name is the value of this label.
    name_label: Key | None = None
    #: Its name is that of the object in front of it, without "-" and the value of this label.
    cut_label: Key | None = None

    @model_validator(mode="after")
    def _one_label(self) -> BelongsTo:
        if (self.name_label is None) == (self.cut_label is None):
            raise ValueError('the name comes from one of "name-label" and "cut-label"')
        return self


class Team(_Model):
    """Pods that their labels put together, several teams for one workload."""

    #: The word of the kind whose teams they are, in the name of the group.
    word: Word
    name_label: Key
    number_label: Key
    number_from_name: bool = False
    size_annotation: Key


class Untouched(_Model):
    """A kind that is never labelled, and why."""

    because: Annotated[str, Field(min_length=1, max_length=300)]
    #: The warning to a user who names a group in one of its templates.
    if_grouped: Sentence | None = None


class Hint(_Model):
    """A warning about what is legal but will surprise: for groups larger than `above`, where `when` holds."""

    when: Condition
    above: _Number = 1
    text: Sentence


class Finish(_Model):
    """How the object's status tells that it will make no more pods, and whether it went well.

    `succeeded` names those of `conditions` and `phases` that tell of success.
    """

    conditions: tuple[Name, ...] = _list
    phase: FieldPath | None = None
    phases: tuple[Name, ...] = _list
    succeeded: tuple[Name, ...] = _list

    @model_validator(mode="after")
    def _succeeded_is_known(self) -> Finish:
        if unknown := set(self.succeeded) - {*self.conditions, *self.phases}:
            raise ValueError(f'"succeeded" names {sorted(unknown)}: neither a condition nor a phase of these')
        return self


#: A custom kind cannot be in them: its group must have a dot.
_BUILT_IN_GROUPS: Final = frozenset({"", "apps", "batch"})


class Rule(_Model):
    """What one kind of workload looks like."""

    kind: Name
    group: GroupName
    versions: Annotated[
        tuple[Name, ...], BeforeValidator(_as_list), Field(min_length=1, strict=False, alias="version")
    ]
    resource: Name
    word: Word = ""
    templates: tuple[Annotated[Template, BeforeValidator(_as_template)], ...] = _list
    at_most: CountOf | None = None
    gang_when: Condition | None = None
    named_by: Literal["object", "pod"] = "object"
    untouched: Untouched | None = None
    leave_alone: LeaveAlone = LeaveAlone()
    belongs_to: tuple[BelongsTo, ...] = _list
    teams: tuple[Team, ...] = _list
    hints: tuple[Hint, ...] = _list
    finished: Finish = Finish()

    @model_validator(mode="after")
    def _own_word(self) -> Rule:
        if not self.word:
            # Frozen: this is the one place that fills in a default that depends on another field.
            object.__setattr__(self, "word", self.kind.lower().replace(".", "-"))
        return self

    @property
    def has_parts(self) -> bool:
        """Whether parts of such an object may be groups of their own."""
        return any(template.own_group is not None for template in self.templates)

    @property
    def is_built_in(self) -> bool:
        """Whether every cluster serves the kind, with types of the API server's own; else it is custom."""
        return self.group in _BUILT_IN_GROUPS

    @property
    def is_counted(self) -> bool:
        """Whether the members of such an object are counted as one gang (rule A8)."""
        return self.named_by == "object" and self.untouched is None

    def leaves_alone(self, obj: Mapping[str, Any], owner: OwnerReference | None) -> str:
        """Why `obj`, controlled by `owner`, must never be labelled; empty where it may be."""
        for field, keys in (
            ("annotations", self.leave_alone.annotations),
            ("labels", self.leave_alone.labels),
        ):
            for key in keys:
                if lookup(obj, ("metadata", field, key)) is not None:
                    return f"its {field} hold {key}"
        kinds = self.leave_alone.owned_by
        if owner is not None and (kinds == "any" or owner.kind in kinds):
            return f'it is controlled by {owner.kind} "{owner.name}"'
        return ""


class OlderLabel(_Model):
    """Keys of other systems: of the group's name, and of its size. A label, or else an annotation."""

    group: Key
    size: Key | None = None
    of: str
