"""Charts of a report as shapes on a plane: SVG text for HTML, and the same picture as PNG for Word.

A shape that stands for a value says where the value stands. Texts are escaped, nothing is fetched,
and there is no style and no script.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from markupsafe import Markup

from guardrail_service.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, QUIET, FIRST, SECOND, CUT = "#16202c", "#9aa5b1", "#0b4a8f", "#b35c00", "#c8102e"
DPI = 200
FONT_PX = 12


class ChartShape(NamedTuple):
    """One part of a picture.

    Attributes:
        kind: `line` from (x, y) to (x2, y2), `box` likewise, `dot` or `ring` with its middle at
            (x, y) and the radius x2, `text` that begins at (x, y), `upward` text likewise.
        colour: As `#rrggbb`.
        text: Of a text.
        places: File and pointer of each value that it shows.
        width: Of a line, in pixels.
    """

    kind: Literal["line", "box", "dot", "ring", "text", "upward"]
    x: float
    y: float
    x2: float = 0.0
    y2: float = 0.0
    colour: str = INK
    text: str = ""
    places: tuple[str, ...] = ()
    width: float = 1.0


@dataclass(frozen=True)
class Drawing:
    """A picture of `wide` by `high` pixels, from the upper left corner."""

    wide: int
    high: int
    shapes: tuple[ChartShape, ...]


def shown(text: str, longest: int) -> str:
    """Return a label that is short, and has no signs that only steer a renderer."""
    plain = "".join(sign if sign.isprintable() else "\ufffd" for sign in text)
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def svg_of(drawing: Drawing, alt: str) -> Markup:
    """Return a picture as SVG; the same drawing gives the same text."""
    head = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" height="{}" '
        'role="img" aria-label="{}" font-family="Arial, Liberation Sans, sans-serif" '
        'font-size="{}">'
    ).format(drawing.wide, drawing.high, drawing.wide, drawing.high, alt, FONT_PX)
    return head + Markup("").join(map(_tag, drawing.shapes)) + Markup("</svg>")


def _tag(shape: ChartShape) -> Markup:
    said: dict[str, Any]
    inner: Markup | None = None
    if shape.kind == "line":
        tag = "line"
        said = {"x1": shape.x, "y1": shape.y, "x2": shape.x2, "y2": shape.y2}
        said |= {"stroke": shape.colour, "stroke-width": shape.width}
    elif shape.kind == "box":
        tag = "rect"
        size = {"width": shape.x2 - shape.x, "height": shape.y2 - shape.y}
        said = {"x": shape.x, "y": shape.y, **size, "fill": shape.colour}
    elif shape.kind in ("dot", "ring"):
        tag = "circle"
        fill = shape.colour if shape.kind == "dot" else "#ffffff"
        said = {"cx": shape.x, "cy": shape.y, "r": shape.x2, "fill": fill}
        said |= {"stroke": shape.colour, "stroke-width": 2}
    else:
        tag, inner = "text", Markup.escape(shape.text)
        said = {"x": shape.x, "y": shape.y, "fill": shape.colour}
        if shape.kind == "upward":
            said["transform"] = f"rotate(-40 {shape.x:g} {shape.y:g})"
    if shape.places:
        said["data-places"] = "; ".join(shape.places)
    return _element(tag, said, inner)


def _element(tag: str, said: Mapping[str, Any], inner: Markup | None) -> Markup:
    parts = (
        Markup(' {}="{}"').format(name, f"{value:.6g}" if isinstance(value, float) else value)
        for name, value in said.items()
    )
    head = Markup("<{}{}").format(tag, Markup("").join(parts))
    return head + (Markup("/>") if inner is None else Markup(">{}</{}>").format(inner, tag))


def png_of(drawing: Drawing) -> bytes:
    """Return the same picture as PNG; the same bytes each time.

    Raises:
        MissingExtra: If matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("rag-guardrail-offline[plots]") from error
    figure = Figure(figsize=(drawing.wide / 96, drawing.high / 96), dpi=DPI)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, drawing.wide)
    axes.set_ylim(drawing.high, 0)
    axes.set_axis_off()
    for order, shape in enumerate(drawing.shapes):
        _draw(axes, shape, order)
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a font without a sign draws a box
        figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def _draw(axes: Axes, shape: ChartShape, order: int) -> None:
    from matplotlib.patches import Circle, Rectangle

    if shape.kind == "line":
        ends: Sequence[float] = (shape.x, shape.x2)
        axes.plot(
            ends, (shape.y, shape.y2), color=shape.colour, linewidth=0.75 * shape.width,
            solid_capstyle="butt", zorder=order,
        )  # fmt: skip
    elif shape.kind == "box":
        size = shape.x2 - shape.x, shape.y2 - shape.y
        axes.add_patch(Rectangle((shape.x, shape.y), *size, color=shape.colour, zorder=order))
    elif shape.kind in ("dot", "ring"):
        fill = shape.colour if shape.kind == "dot" else "#ffffff"
        axes.add_patch(
            Circle((shape.x, shape.y), shape.x2, facecolor=fill, edgecolor=shape.colour,
                   linewidth=1.5, zorder=order)
        )  # fmt: skip
    else:
        axes.text(
            shape.x, shape.y, shape.text, fontsize=0.75 * FONT_PX, color=shape.colour,
            rotation=40 if shape.kind == "upward" else 0, rotation_mode="anchor",
            verticalalignment="baseline", parse_math=False, zorder=order,
        )  # fmt: skip
