"""Picture files: matplotlib without a display, imported when one is asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deniable._extras import require
from deniable.errors import SpecError


def save_figure(path: Path, draw: Callable[[], Any]) -> None:
    """Draw with `draw`, which returns axes, and write the file."""
    matplotlib = require("matplotlib", "plot")
    matplotlib.use("Agg")
    pyplot = require("matplotlib.pyplot", "plot")
    # Labels are anybody's text: no formulas between dollar signs, no warning about a missing glyph.
    with matplotlib.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure = draw().figure
        try:
            known = figure.canvas.get_supported_filetypes()
            if path.suffix[1:].lower() not in known:
                raise SpecError(f"a picture cannot be written as {path.name!r}: call it .png, .svg or .pdf")
            figure.savefig(path, dpi=150, bbox_inches="tight")
        finally:
            pyplot.close(figure)
