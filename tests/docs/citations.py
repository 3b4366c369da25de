"""Find the ids of rules and cases that a text cites, and the ids that a page of docs/ explains."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Rules have one or two digits, so that A100 (a GPU), S603 (a check of ruff) or C901 are none. Cases have two
#: digits, those of the first collection up to three.
_RULE = r"(?:A[1-9]|(?:IA|NA|NF|PR|TS|[BDEFIMPRSTVW])[1-9][0-9]?)[a-z]?"
_CASE = r"(?:C1[0-9]{2}|[CN][0-9]{2})"
#: No part of a word, path, number or key: not P-256, `$R1`, x/C10, R1.2 or C10-based names.
_ID = re.compile(rf"(?<![\w.$/#%=@-])(?:{_RULE}|{_CASE})(?![\w]|[.:/][\w]|=)")
_RANGE = re.compile(rf"({_RULE}) (?:to|through) ({_RULE})(?!\w)")
_PARTS = re.compile(r"([A-Z]+)([0-9]+)")
_EXPLAINED = re.compile(rf'<a id="[a-z0-9]+"></a>(?:\*\*)?({_RULE}|{_CASE})(?!\w)')


def ids_in(text: str) -> set[str]:
    """Every id that `text` cites; "R1 to R8" cites all eight."""
    found = {match.group() for match in _ID.finditer(text)}
    for match in _RANGE.finditer(text):
        first, last = (_PARTS.match(side) for side in match.groups())
        if first and last and first[1] == last[1]:
            found |= {f"{first[1]}{number}" for number in range(int(first[2]), int(last[2]) + 1)}
    return found


def explained_in(page: str) -> set[str]:
    """The ids that a page explains: each stands behind an anchor of its own."""
    return set(_EXPLAINED.findall(page))


def citing_text(path: Path) -> str:
    """The part of a file in which ids are cited: comments, docstrings, names of test cases, prose."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return "\n".join([*_comments(text), *docstrings(ast.parse(text)), *_case_names(ast.parse(text))])
    if path.suffix == ".md":
        return re.sub(r"`[^`\n]*`", "", re.sub(r"(?ms)^ *```.*?^ *```", "", text))
    return "\n".join(_hash_comments(text))


def docstrings(tree: ast.AST) -> Iterator[str]:
    """The docstrings of a module, its classes and its functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def other_strings(tree: ast.AST) -> Iterator[str]:
    """Every string that is no docstring, with the fixed parts of f-strings."""
    own = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in own:
            yield node.value


def _comments(source: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and "noqa" not in token.string:
            yield token.string.lstrip("#: ")


def _case_names(tree: ast.AST) -> Iterator[str]:
    """What `pytest.param(..., id="C41 members are missing")` calls its case; a dash may follow the id."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "id" and isinstance(node.value, ast.Constant):
            yield str(node.value.value).replace("-", " ")


def _hash_comments(text: str) -> list[str]:
    """Comments of YAML, TOML, shell and make, and of helm templates."""
    return [*re.findall(r"(?m)(?:^|\s)#(.*)$", text), *re.findall(r"(?s)\{\{-? ?/\*(.*?)\*/", text)]
