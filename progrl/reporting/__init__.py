"""Results for people: tables, figures, dialogues, and the report in one HTML file."""

from progrl.reporting.material import Material, StageTime
from progrl.reporting.page import render
from progrl.reporting.tables import markdown, results_table

__all__ = ["Material", "StageTime", "markdown", "render", "results_table"]
