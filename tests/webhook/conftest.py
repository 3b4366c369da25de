"""The real helm, for what the registration looks like once the chart is rendered."""

from tests.chart.conftest import helm

__all__ = ["helm"]
