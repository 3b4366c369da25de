"""When the API server has to ask us about an object, in CEL, generated from the table of rules.

Owns: the condition of one rule. Does not own: the registration or the policies that carry it
(`webhook.registration`, `webhook.policies`).

An expression that fails counts as false under failurePolicy Ignore, so each step asks first whether the
field is there and no null (case C10). Objects of kinds that are built in cost less: the API server has
decoded them into types of its own, in which nothing on our way is null and labels are texts, and has filled
in the scheduler's name (rule W31). That counts, since it evaluates the condition for every pod of other
people (`make bench`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from groups.contract import GROUP_LABEL, SIZE_LABEL
from groups.workloads.rules import Rule
from groups.workloads.shapes import EACH_ITEM, WILDCARDS

#: What `contract.is_group_name` accepts; the length of a label value is the API server's own rule.
GROUP_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
#: Sizes that are surely right. Ten digits may exceed an int32: the webhook checks them.
SIZE_PATTERN: Final = "^[1-9][0-9]{0,8}$"
#: Names of the variables that stand for the items of a list or the keys of a map.
_VARIABLES: Final = "abcdefgh"


def condition(rule: Rule, scheduler_name: str) -> str:
    """CEL: some pod template asks for our scheduler and lacks a good label.

    Of a kind that is left as it is, only templates with a label of ours are of interest: to deny mistakes.
    """
    seen = _Seen(scheduler_name, rule.is_built_in)
    wanted = seen.labelled_at_all if rule.untouched is not None else seen.lacks_labels
    return "\n|| ".join(f"({seen.reach('object', one.path, wanted)})" for one in rule.templates)


@dataclass(frozen=True)
class _Seen:
    """How an expression sees an object: by its Go type, or as whatever its author wrote."""

    scheduler_name: str
    typed: bool

    def reach(self, start: str, path: Sequence[str], wanted: Callable[[str], str], depth: int = 0) -> str:
        """Some pod template at `path` below `start` asks for us and is `wanted`."""
        wildcard = next((number for number, step in enumerate(path) if step in WILDCARDS), None)
        if wildcard is None:
            template = _dotted((start, *path))
            return _all(*self.present(start, path), self.opted_in(template), wanted(template))
        variable = _VARIABLES[depth]
        holder = _dotted((start, *path[:wildcard]))
        # A list gives its items, a map its keys; either may be of an odd type.
        item = variable if path[wildcard] == EACH_ITEM else f"{holder}[{variable}]"
        inner = self.reach(item, path[wildcard + 1 :], wanted, depth + 1)
        found = f"{holder}.exists({variable}, {item} != null\n  && {inner})"
        return _all(*self.present(start, path[:wildcard]), found)

    def opted_in(self, template: str) -> str:
        """The template asks for our scheduler."""
        ours = f'{template}.spec.schedulerName == "{self.scheduler_name}"'
        if self.typed:
            return ours
        return _all(*self.present(template, ("spec",)), f"has({template}.spec.schedulerName)", ours)

    def lacks_labels(self, template: str) -> str:
        """The template has not both labels, each good at a glance."""
        labels = f"{template}.metadata.labels"
        good = _all(
            *self.present(template, ("metadata", "labels")),
            *self.good_label(labels, GROUP_LABEL, GROUP_PATTERN),
            *self.good_label(labels, SIZE_LABEL, SIZE_PATTERN),
        )
        return f"!({good})"

    def labelled_at_all(self, template: str) -> str:
        """The template has either label."""
        labels = f"{template}.metadata.labels"
        keys = " || ".join(f'"{key}" in {labels}' for key in (GROUP_LABEL, SIZE_LABEL))
        return _all(*self.present(template, ("metadata", "labels")), f"({keys})")

    def good_label(self, labels: str, key: str, pattern: str) -> Iterable[str]:
        """The label is there, a text, and matches."""
        yield f'"{key}" in {labels}'
        if not self.typed:
            yield f'type({labels}["{key}"]) == string'
        yield f'{labels}["{key}"].matches("{pattern}")'

    def present(self, start: str, path: Sequence[str]) -> Iterable[str]:
        """Each step of `path` below `start` is there and no null."""
        for length in range(1, len(path) + 1):
            step = _dotted((start, *path[:length]))
            yield f"has({step})" if self.typed else f"has({step}) && {step} != null"


def _dotted(path: Iterable[str]) -> str:
    return ".".join(path)


def _all(*conditions: str) -> str:
    return "\n  && ".join(conditions)
