"""The root of every error that this project raises on purpose."""

from __future__ import annotations


class FluenceError(Exception):
    """Everything that this project raises on purpose; its text is a sentence for the user."""


class ContractError(FluenceError):
    """A label or name breaks a rule of the contract: the text names key, value and rule."""
