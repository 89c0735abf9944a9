"""A plot of the shares that containers got against the shares they asked for, as SVG."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

from benchmarks.compute.scenario import ScenarioFigure

SIDE, EDGE = 480, 56  # pixels of the plotted square, and of the margin around it
STEP = 20
RADIUS = 4
LOOKS = {"curve": ("#1b6ca8", "alone"), "shapes": ("#d1495b", "other loads"), "tenants": ("#2e933c", "beside others")}
STYLE = "text{font:13px sans-serif;fill:#333}.grid{stroke:#ddd}.asked{stroke:#999;stroke-dasharray:4 4}"


def picture(rows: Sequence[ScenarioFigure], title: str) -> str:
    """Return the SVG text: a point for the median of each share, and a bar from its lowest to its highest round."""
    size = SIDE + 2 * EDGE
    shares = [row for row in rows if row.goal.asked is not None and row.part in LOOKS]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{size}" height="{size}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{size}" height="{size}" fill="#fff"/>',
        *_axes(),
        *(_point(row) for row in shares),
        *_legend({row.part for row in shares}),
        f'<text x="{EDGE}" y="{EDGE - 22}">{escape(title)}</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _x(percent: float) -> float:
    return round(EDGE + SIDE * percent / 100, 1)


def _y(percent: float) -> float:
    return round(EDGE + SIDE * (1 - percent / 100), 1)


def _line(begin: tuple[float, float], end: tuple[float, float], look: str) -> str:
    return f'<line x1="{_x(begin[0])}" y1="{_y(begin[1])}" x2="{_x(end[0])}" y2="{_y(end[1])}" {look}/>'


def _axes() -> list[str]:
    lines = []
    for percent in range(0, 101, STEP):
        lines += [
            _line((percent, 0), (percent, 100), 'class="grid"'),
            _line((0, percent), (100, percent), 'class="grid"'),
            f'<text x="{_x(percent)}" y="{_y(0) + 20}" text-anchor="middle">{percent}</text>',
            f'<text x="{_x(0) - 10}" y="{_y(percent) + 4}" text-anchor="end">{percent}</text>',
        ]
    middle = EDGE + SIDE / 2
    return [
        *lines,
        _line((0, 0), (100, 100), 'class="asked"'),
        f'<text x="{middle}" y="{_y(0) + 42}" text-anchor="middle">percent of the card asked</text>',
        f'<text transform="rotate(-90 16 {middle})" x="16" y="{middle}" text-anchor="middle">percent got</text>',
    ]


def _point(row: ScenarioFigure) -> str:
    colour, _ = LOOKS[row.part]
    asked, got = row.goal.asked or 0.0, row.median
    title = f"<title>{escape(row.name)}: {escape(row.figure)}, got {got:.1f}</title>"
    bar = _line((asked, min(row.rounds)), (asked, max(row.rounds)), f'stroke="{colour}"')
    point = f'<circle cx="{_x(asked)}" cy="{_y(got)}" r="{RADIUS}" fill="{colour}" fill-opacity="0.7">{title}</circle>'
    return bar + point


def _legend(parts: set[str]) -> list[str]:
    lines = []
    for place, part in enumerate(sorted(parts)):
        colour, word = LOOKS[part]
        y = EDGE + 20 + 20 * place
        lines.append(f'<circle cx="{EDGE + 16}" cy="{y}" r="{RADIUS}" fill="{colour}"/>')
        lines.append(f'<text x="{EDGE + 28}" y="{y + 4}">{word}</text>')
    return lines
