"""What ends in a sentence, and what needs its trace."""

from fluence.commands.errors import exit_code, sentences
from fluence.settings import SettingsError
from groups.errors import ContractError, FluenceError


def test_an_error_of_ours_is_its_sentence_on_one_line() -> None:
    assert sentences(FluenceError("the port\n  is taken")) == ["the port is taken"]


def test_errors_of_tasks_that_fail_alike_are_told_once() -> None:
    error = ExceptionGroup("tasks", [FluenceError("a"), ExceptionGroup("more", [ContractError("a")])])
    assert sentences(error) == ["a"]


def test_a_fault_of_ours_keeps_its_trace() -> None:
    assert sentences(ExceptionGroup("tasks", [FluenceError("a"), KeyError("b")])) is None


def test_wrong_settings_are_bad_usage_and_all_else_is_a_failure() -> None:
    assert exit_code(SettingsError("x")) == 2
    assert exit_code(FluenceError("x")) == 1
