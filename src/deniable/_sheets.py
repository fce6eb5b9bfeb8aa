r"""One table per object: HTML for notebooks, LaTeX, Arrow, pandas and polars are all written from it.

Sheet      headings and cells for people, lines above and below them, and columns of full numbers for programs
Shown      the base of everything that has a sheet
Safety     labels are the respondents' texts: HTML and LaTeX escape them, and control characters never reach a page

>>> print(Sheet(["Shares"], ["answer", "share"], [["50 % & more", "0.5"]]).latex())
\begin{tabular}{lr}
\toprule
answer & share \\
\midrule
50 \% \& more & 0.5 \\
\bottomrule
\end{tabular}
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from io import BytesIO
from itertools import chain
from typing import Any, ClassVar
from warnings import catch_warnings, simplefilter

from deniable._extras import require
from deniable._plain import escaped
from deniable.errors import MissingExtra

MOST_LINES = 20
"""Number of rows and columns of a matrix that a notebook shows."""

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}"}
_SPECIAL |= {">": r"\textgreater{}", '"': r"\textquotedbl{}"} | {one: f"\\{one}" for one in "&%$#_{}"}


def tex(text: str) -> str:
    r"""Text for LaTeX: nothing in it is a command.

    >>> tex(r"a_b & \input{x}")
    'a\\_b \\& \\textbackslash{}input\\{x\\}'
    """
    return "".join(_SPECIAL.get(one, one) for one in escaped(text))


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: for people as cells of text, for programs as columns."""

    above: Sequence[str]
    """Lines above the table: the finding first."""
    head: Sequence[str]
    """The headings."""
    body: Sequence[Sequence[str]]
    """The cells, row by row; the first one names its row."""
    below: Sequence[str] = ()
    """Remarks."""
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """The same for programs: one list per column, with numbers in full."""
    marked: int | None = None
    """The row that stands out, if one does."""

    @classmethod
    def matrix(
        cls,
        above: Sequence[str],
        corner: str,
        names: tuple[Sequence[str], Sequence[str]],
        cell: Callable[[int, int], str],
    ) -> Sheet:
        """Names of rows and columns, and a text for each pair of them; of a large matrix its beginning."""
        rows, columns = (list(known[:MOST_LINES]) for known in names)
        body = [[name, *(cell(i, j) for j in range(len(columns)))] for i, name in enumerate(rows)]
        whole = f"{len(names[0]):,} x {len(names[1]):,}"
        cut = len(rows) < len(names[0]) or len(columns) < len(names[1])
        return cls(
            above, [corner, *columns], body, [f"the first {len(rows)} x {len(columns)} of {whole}"] if cut else []
        )

    def html(self, picture: str = "") -> str:
        """A table for notebooks, with a picture below it."""

        def line(cells: Sequence[str], tag: str = "td") -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(escaped(one))}</{tag}>" for one in cells) + "</tr>"

        lines = [line(cells, "th" if place == self.marked else "td") for place, cells in enumerate(self.body)]
        caption = "<br>".join(escape(escaped(one)) for one in self.above)
        notes = "".join(f"<p>{escape(escaped(one))}</p>" for one in self.below)
        return f"<table><caption>{caption}</caption>{line(self.head, 'th')}{''.join(lines)}</table>{notes}{picture}"

    def latex(self) -> str:
        """A tabular in the style of booktabs, without lines above and below it."""
        lines = [" & ".join(map(tex, cells)) + r" \\" for cells in (self.head, *self.body)]
        columns = "l" + "r" * (len(self.head) - 1)
        whole = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
        return "\n".join([*whole, r"\end{tabular}"])

    def arrow(self) -> Any:
        """The columns as a pyarrow table."""
        return require("pyarrow", "files").table({name: list(column) for name, column in self.columns.items()})


def as_pandas(arrow: Any) -> Any:
    """A pandas frame of a pyarrow table."""
    require("pandas", "frames")
    return arrow.to_pandas()


def as_polars(arrow: Any) -> Any:
    """A polars frame of a pyarrow table."""
    return require("polars", "frames").DataFrame(arrow)


class Shown:
    """What has a sheet, and so a table in notebooks, in LaTeX and for data frames."""

    __slots__ = ()
    pictured: ClassVar[bool] = False
    """Whether a notebook shows the `plot` below the table."""

    def sheet(self) -> Sheet:
        """The table that all forms are written from."""
        raise NotImplementedError

    def to_arrow(self) -> Any:
        """A pyarrow table."""
        return self.sheet().arrow()

    def to_pandas(self) -> Any:
        """A pandas data frame."""
        return as_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """A polars data frame."""
        return as_polars(self.to_arrow())

    def to_latex(self) -> str:
        """A LaTeX tabular; it needs the package booktabs."""
        return self.sheet().latex()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """The table in a notebook, with its picture where matplotlib is installed."""
        return self.sheet().html(self._picture() if self.pictured else "")

    def _picture(self) -> str:
        try:
            pyplot = require("matplotlib.pyplot", "plot")
        except MissingExtra:
            return ""
        drawn = self.plot()  # type: ignore[attr-defined]
        figure = next(chain(getattr(drawn, "flat", ()), [drawn])).figure
        image = BytesIO()
        with catch_warnings():
            simplefilter("ignore", UserWarning)  # letters that the font of the picture does not have
            figure.savefig(image, format="png", dpi=80, bbox_inches="tight")
        pyplot.close(figure)  # a notebook would show an open one again
        return f'<img alt="" src="data:image/png;base64,{b64encode(image.getvalue()).decode()}">'
