"""Figures and tables as files, to be kept with a run."""

import re
from importlib.resources import files
from pathlib import Path

from progrl.files import new_folder, write_text
from progrl.reporting.material import Material
from progrl.reporting.page import paper_figures
from progrl.reporting.paper_tables import paper_tables
from progrl.reporting.tables import advice_table, markdown


def write_artifacts(folder: Path, material: Material) -> None:
    """Write the paper's figures that have data as `figures/*.svg`, its tables as `tables/*.md`.

    The folder is new: what an earlier attempt left there goes.
    """
    with new_folder(folder) as made:
        for figure in paper_figures(material):
            if figure.chart is not None:
                write_text(made / "figures" / f"{_file(figure.title)}.svg", alone(figure.chart))
        for table in paper_tables(material):
            text = f"**Table {table.number}. {table.title}.** {table.caption}\n\n"
            path = made / "tables" / f"table-{table.number}.md"
            write_text(path, text + markdown(table.records()))
        if advice := material.advice:
            write_text(made / "tables" / "advice.md", markdown(advice_table(advice)))


def alone(chart: str) -> str:
    """A chart of the page as a file of its own, with the page's colours, light and dark."""
    style = files("progrl.reporting").joinpath("templates", "report.css").read_text("utf-8")
    opening, rest = str(chart).split(">", 1)
    opening = opening.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{opening}><style><![CDATA[{style}]]></style>{rest}\n"


def _file(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
