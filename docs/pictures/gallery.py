"""Draws the output of the programs of the gallery: python docs/pictures/gallery.py. It runs them, in this process."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType

from svg import BLUE, BROWN, FAINT, GREEN, INK, ORANGE, RED, SERIES, VIOLET, Drawing, bars, write_all

from ekorn.testing import on_local_engine

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def spans(title: str, rows: list[tuple[str, list[tuple[float, float, str]]]], end: float, unit: str) -> Drawing:
    """Draw spans of time, one row for each name: start, end and text."""
    drawing = Drawing(640, 40 * len(rows) + 70, title)
    drawing.text(12, 22, title, size=14, anchor="start", bold=True)
    for number, (name, found) in enumerate(rows):
        y = 40 + 40 * number
        drawing.text(70, y + 18, name, anchor="end")
        for start, stop, text in found:
            left, right = 85 + 535 * start / end, 85 + 535 * stop / end
            drawing.box(left, y, max(6.0, right - left), 26, SERIES[number % len(SERIES)], fill=0.25)
            drawing.text(left + 4, y + 17, text, anchor="start", size=11)
    y = 52 + 40 * len(rows)
    drawing.line(85, y - 8, 620, y - 8)
    for tick in range(0, int(end) + 1, 10):
        drawing.text(85 + 535 * tick / end, y + 10, f"{tick} {unit}" if not tick else str(tick), size=11)
    return drawing


def sessions() -> Drawing:
    found = program("sessions").visits()
    rows = [
        (who, [(first, last, f"{len(pages)} pages") for name, first, last, pages in found if name == who])
        for who in sorted({name for name, *_ in found})
    ]
    return spans("visits, found by pauses of ten minutes", rows, 50, "min")


def top_pages() -> Drawing:
    found = program("top_pages").best_pages()
    rows = [(f"minute {minute}  {page}", count, SERIES[minute % 3]) for minute, best in found for page, count in best]
    return bars("the three best pages of each minute", rows, " views")


def enrichment() -> Drawing:
    module = program("enrichment")
    found = module.enriched()
    names = [*module.NAMES.values(), "unknown"]
    rows = [(name, sum(each == name for _, each, _ in found), RED if name == "unknown" else BLUE) for name in names]
    return bars("orders by the name that the service gave", rows, " orders")


def change_capture() -> Drawing:
    module = program("change_capture")
    with tempfile.TemporaryDirectory() as folder:
        module.copy_table(Path(folder, "copy.db"))
        rows = [(f"row {row}", price, GREEN) for row, price in module.table(Path(folder, "copy.db"))]
    return bars(f"the copy after {len(module.arriving())} changes", rows)


def rule_alerts() -> Drawing:
    module = program("rule_alerts")
    drawing = Drawing(640, 240, "readings above 80 degrees raise alerts")
    drawing.text(12, 22, drawing.title, size=14, anchor="start", bold=True)
    alerts = {(machine, minute) for machine, minute, *_ in module.found_alerts()}

    def at(minute: int, degrees: int) -> tuple[float, float]:
        return 50 + 19.5 * minute, 215 - 4 * (degrees - 45)

    drawing.line(*at(0, 80), *at(29, 80), RED, dash="5 4")
    drawing.text(350, at(0, 80)[1] - 6, "rule: hot, 80", RED, size=12)
    for number, machine in enumerate(module.MACHINES):
        readings = [each for each in map(module.reading, range(module.READINGS)) if each[0] == machine]
        drawing.path([at(minute, degrees) for _, minute, degrees in readings], SERIES[number], 1.5)
        for _, minute, degrees in readings:
            alerting = (machine, minute) in alerts
            drawing.dot(*at(minute, degrees), RED if alerting else SERIES[number], 5 if alerting else 2.5)
        drawing.text(46, at(0, readings[0][2])[1] + 4, machine, SERIES[number], anchor="end", size=12)
    return drawing


def deduplication() -> Drawing:
    module = program("deduplication")
    found, dropped = module.unique()
    rows = [("arrived", len(module.arriving()), BLUE), ("passed", len(found), GREEN), ("dropped", dropped, FAINT)]
    return bars("events and their repetitions", rows, " events")


def scoring() -> Drawing:
    found, _ = program("scoring").scored()
    rows = [
        (f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f}", sum(int(score * 10) == tenth for _, score in found), VIOLET)
        for tenth in range(10)
    ]
    return bars("customers by how likely they are to buy", rows)


def silent_sensors() -> Drawing:
    module = program("silent_sensors")
    drawing = Drawing(640, 190, "sensors that fall silent for ten seconds, and come back")
    drawing.text(12, 22, drawing.title, size=14, anchor="start", bold=True)
    found = module.alerts()
    for number, sensor in enumerate(("attic", "cellar", "garden")):
        y = 60 + 40 * number
        drawing.text(70, y + 4, sensor, anchor="end")
        drawing.line(85, y, 625, y, FAINT)
        for second, name in module.READINGS:
            if name == sensor:
                drawing.dot(85 + 7.5 * second, y, BLUE, 3)
        for name, second, what in found:
            if name == sensor:
                drawing.dot(85 + 7.5 * second, y, RED if what == "silent" else GREEN, 7, hollow=True)
                drawing.text(85 + 7.5 * second, y - 11, what, RED if what == "silent" else GREEN, size=11)
    for second in range(0, 71, 10):
        drawing.text(85 + 7.5 * second, 178, f"{second} s", size=11)
    return drawing


def funnel() -> Drawing:
    module = program("funnel")
    steps = module.came_to(module.attempts())
    drawing = Drawing(640, 44 + 46 * len(steps), "how far visitors come within an hour")
    drawing.text(12, 22, drawing.title, size=14, anchor="start", bold=True)
    for number, (step, count) in enumerate(steps):
        width = 420 * count / steps[0][1]
        y = 40 + 46 * number
        drawing.box(350 - width / 2, y, width, 34, SERIES[number], fill=0.3)
        drawing.text(350, y + 22, str(count), bold=True)
        drawing.text(100, y + 22, step, anchor="end")
    return drawing


def backfill() -> Drawing:
    module = program("backfill")
    with tempfile.TemporaryDirectory() as folder:
        module.write_history(Path(folder))
        found = module.revenue(Path(folder))
    switch = int(module.sale(module.IN_FILES).split(",")[0]) // module.DAY_MS
    drawing = Drawing(640, 250, "revenue per day: from files, then live")
    drawing.text(12, 22, drawing.title, size=14, anchor="start", bold=True)
    for day, cents in found:
        x, height = 50 + 48 * day, round(cents / 400, 1)
        colour = BROWN if day < switch else (ORANGE if day == switch else BLUE)
        drawing.box(x, 200 - height, 38, height, colour, fill=0.4, round_=2)
        drawing.text(x + 19, 216, str(day), size=11)
    drawing.text(60 + 24 * switch, 240, "from files", BROWN, size=12)
    drawing.text(70 + 48 * switch, 240, "both", ORANGE, size=12)
    drawing.text(120 + 48 * (switch + 2), 240, "live", BLUE, size=12)
    drawing.line(40, 200, 630, 200, INK)
    return drawing


def trade_candles() -> Drawing:
    found = program("trade_candles").candles()
    drawing = Drawing(640, 250, "candles of one minute")
    drawing.text(12, 22, drawing.title, size=14, anchor="start", bold=True)
    symbols = sorted({candle["symbol"] for candle in found})
    for number, candle in enumerate(found):
        colour = GREEN if candle["last"] >= candle["opening"] else RED
        x = 60 + 39 * number

        def y(cents: int) -> float:
            return round(212 - (cents - 4_690) / 4.2, 1)

        drawing.line(x, y(candle["highest"]), x, y(candle["lowest"]), colour)
        top, bottom = y(max(candle["opening"], candle["last"])), y(min(candle["opening"], candle["last"]))
        drawing.box(x - 10, top, 20, max(2.0, round(bottom - top, 1)), colour, fill=0.5, round_=1)
        drawing.text(x, 232, str(candle["window_start"] // 60_000), size=11)
    for number, symbol in enumerate(symbols):
        drawing.text(138 + 195 * number, 246, symbol, size=12, bold=True)
    return drawing


def batch_scoring() -> Drawing:
    found, _, _ = program("batch_scoring").scored()
    rows = [
        (f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f}", sum(int(s * 10) == tenth for s in found.values()), VIOLET)
        for tenth in range(10)
    ]
    return bars("twenty thousand customers by how likely they are to buy", rows)


def drawings() -> dict[str, Drawing]:
    """Return the pictures by their names."""
    parts = [sessions, top_pages, enrichment, change_capture, rule_alerts, deduplication, scoring, silent_sensors]
    parts += [funnel, backfill, trade_candles, batch_scoring]
    with on_local_engine():
        return {f"gallery-{part.__name__}": part() for part in parts}


if __name__ == "__main__":
    write_all(drawings())
