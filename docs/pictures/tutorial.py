"""Draws the pictures of the tutorial: python docs/pictures/tutorial.py."""

from __future__ import annotations

from svg import BLUE, BROWN, FAINT, GREEN, INK, ORANGE, RED, SERIES, VIOLET, Drawing, write_all

SECONDS = [1, 4, 2, 6, 5, 9, 7, 10, 3, 12]  # the payments of chapter 3, in the order of their arrival
BEHIND = 4


def chain(title: str, boxes: list[tuple[str, str, str]], width: int = 640) -> Drawing:
    """Draw boxes in a row with arrows between them: a name, a line below it, a colour."""
    drawing = Drawing(width, 110, title)
    step = (width - 20) / len(boxes)
    for number, (name, below, colour) in enumerate(boxes):
        x = 10 + step * number
        drawing.box(x, 28, step - 40, 50, colour)
        drawing.text(x + (step - 40) / 2, 50, name, bold=True)
        drawing.text(x + (step - 40) / 2, 67, below, size=11)
        if number:
            drawing.arrow(x - 36, 53, x - 4, 53)
    return drawing


def stream() -> Drawing:
    drawing = chain(
        "Records flow from a source through operators to a sink",
        [
            ("source", "from_collection", BLUE),
            ("filter", "at least 10.00", ORANGE),
            ("map", "as text", ORANGE),
            ("sink", "print", GREEN),
        ],
    )
    for number in range(3):
        drawing.dot(130 + 9 * number, 95, BLUE, 3)
    drawing.text(330, 99, "one record after another, from left to right", size=11.5)
    return drawing


def key_by() -> Drawing:
    drawing = Drawing(640, 200, "key_by sends all records with the same key to the same subtask")
    names = ["ada", "ben", "ada", "ben", "ada"]
    drawing.box(20, 70, 130, 60, BLUE)
    drawing.text(85, 95, "source", bold=True)
    drawing.text(85, 113, ", ".join(names[:3]) + " ...", size=11)
    for row, (subtask, keys, colour) in enumerate(
        [("subtask 0", "all of ada", ORANGE), ("subtask 1", "all of ben", VIOLET)]
    ):
        y = 20 + 100 * row
        drawing.box(400, y, 210, 60, colour)
        drawing.text(505, y + 26, f"reduce, {subtask}", bold=True)
        drawing.text(505, y + 45, keys, size=11.5)
        drawing.arrow(156, 95 + 10 * row, 394, y + 30, colour)
        for number in range(3 - row):
            at = 0.25 + 0.25 * number
            drawing.dot(156 + 238 * at, 95 + 10 * row + (y + 30 - 95 - 10 * row) * at, colour)
    drawing.text(270, 24, "key_by(account)", bold=True)
    return drawing


def keyed_state() -> Drawing:
    drawing = Drawing(640, 190, "Each key has its own state, next to the function that uses it")
    drawing.box(240, 15, 370, 160, ORANGE, fill=0.06)
    drawing.text(425, 36, "one subtask: function and state in one process", bold=True)
    drawing.box(260, 70, 120, 60, ORANGE)
    drawing.text(320, 96, "function", bold=True)
    drawing.text(320, 114, "key: ada", size=11.5)
    for row, (key, value) in enumerate(
        [("ada", "count 2, total 3000"), ("ben", "count 1, total 60000"), ("cem", "count 0")]
    ):
        y = 55 + 38 * row
        current = row == 0
        drawing.box(430, y, 165, 28, GREEN if current else FAINT)
        drawing.text(440, y + 18, f"{key}: {value}", anchor="start", size=11.5)
    drawing.arrow(384, 95, 426, 72, GREEN)
    for x, name in [(40, "ben"), (100, "ada"), (165, "ada")]:
        drawing.dot(x, 100, GREEN if name == "ada" else VIOLET, 9)
        drawing.text(x, 126, name, size=11.5)
    drawing.arrow(182, 100, 254, 100)
    return drawing


def out_of_order() -> Drawing:
    drawing = Drawing(640, 210, "Payments by the time they were made and the order in which they arrive")
    drawing.text(10, 40, "made at", anchor="start", bold=True)
    drawing.text(10, 180, "arrive", anchor="start", bold=True)
    drawing.arrow(80, 50, 630, 50)
    drawing.arrow(80, 170, 630, 170)
    for arrived, second in enumerate(SECONDS):
        x_made, x_arrived = 95 + 42 * second, 110 + 52 * arrived
        early = any(later < second for later in SECONDS[arrived + 1 :])
        behind = any(before > second for before in SECONDS[:arrived])
        colour = RED if second == 3 else (ORANGE if behind else BLUE)
        drawing.line(x_made, 56, x_arrived, 164, colour, width=1, dash="" if behind or early else "3 3")
        drawing.dot(x_made, 50, colour)
        drawing.dot(x_arrived, 170, colour)
        drawing.text(x_made, 36, str(second), size=12)
        drawing.text(x_arrived, 194, str(second), size=12)
    return drawing


def watermark() -> Drawing:
    drawing = Drawing(
        640, 320, "The watermark follows the highest time at a distance of four seconds; one payment is behind it"
    )
    left, bottom, step, unit = 60, 280, 56, 20

    def y(second: float) -> float:
        return bottom - unit * second

    drawing.arrow(left, bottom, 630, bottom)
    drawing.arrow(left, bottom, left, 15)
    drawing.text(345, 308, "order of arrival")
    drawing.text(16, 14, "event time", anchor="start", size=12)
    for second in range(0, 13, 2):
        drawing.text(left - 10, y(second) + 4, str(second), anchor="end", size=11)
        drawing.line(left, y(second), 625, y(second), FAINT, width=0.5)
    highest, steps = 0, [(float(left), y(0))]
    for arrived, second in enumerate(SECONDS):
        x = left + 30 + step * arrived
        level = max(0, highest - BEHIND)
        steps += [(x, steps[-1][1]), (x, y(max(0, max(highest, second) - BEHIND)))]
        late = second < level
        drawing.dot(x, y(second), RED if late else BLUE, 7)
        drawing.text(
            x + 12,
            y(second) + 4,
            f"{second}" + (" late" if late else ""),
            RED if late else INK,
            anchor="start",
            size=12,
        )
        highest = max(highest, second)
    steps.append((625, steps[-1][1]))
    drawing.path(steps, ORANGE, 2.5)
    drawing.text(500, y(8) - 4, "watermark", ORANGE, bold=True)
    return drawing


def windows() -> Drawing:
    drawing = Drawing(640, 300, "Tumbling, sliding and session windows over the same payments")
    times = [1, 2, 4, 9, 11, 20, 23, 27]

    def x(second: float) -> float:
        return 90 + 17.5 * second

    def row(top: float, name: str, spans: list[tuple[float, float, float]]) -> None:
        drawing.text(10, top + 30, name, anchor="start", bold=True)
        for number, (start, end, shift) in enumerate(spans):
            drawing.box(x(start) + 1, top + shift, x(end) - x(start) - 2, 26, SERIES[number % 4], fill=0.15)
        for second in times:
            drawing.dot(x(second), top + 66, BLUE, 5)
        drawing.line(90, top + 66, 630, top + 66, FAINT, width=1)

    row(5, "tumbling", [(0, 10, 26), (10, 20, 26), (20, 30, 26)])
    row(95, "sliding", [(0, 10, 0), (5, 15, 30), (10, 20, 0), (15, 25, 30), (20, 30, 0)])
    row(185, "session", [(1, 16, 26), (20, 30.5, 26)])
    drawing.text(x(8.5), 229, "gap of 5 without payments ends it", size=11)
    for second in range(0, 31, 5):
        drawing.text(x(second), 285, str(second), size=11)
    return drawing


def timer() -> Drawing:
    drawing = Drawing(640, 170, "A timer is set by a record, and fires when the watermark passes it")
    drawing.arrow(30, 110, 620, 110)
    drawing.text(600, 132, "event time", size=12)
    drawing.dot(90, 110, BLUE, 8)
    drawing.text(90, 140, "tiny payment", size=12)
    drawing.text(90, 156, "second 40", size=11)
    drawing.path([(90, 98), (90, 50), (500, 50), (500, 96)], ORANGE, 1.8)
    drawing.text(295, 42, "register_event_time_timer(time + one minute)", ORANGE, size=12.5)
    drawing.dot(500, 110, ORANGE, 8, hollow=True)
    drawing.text(500, 140, "on_timer", size=12, bold=True)
    drawing.text(500, 156, "second 100", size=11)
    drawing.arrow(200, 90, 440, 90, BROWN)
    drawing.text(320, 82, "watermark advances", BROWN, size=11.5)
    return drawing


def checkpoint() -> Drawing:
    drawing = Drawing(640, 250, "A checkpoint holds the state and the position that belongs to it")
    for number in range(12):
        x = 40 + 50 * number
        drawing.box(x, 30, 42, 26, BLUE if number < 6 else FAINT)
        drawing.text(x + 21, 48, str(number), size=12)
    drawing.text(10, 20, "input", anchor="start", bold=True)
    drawing.line(336, 20, 336, 150, ORANGE, width=2.5, dash="6 4")
    drawing.text(344, 78, "position 6", ORANGE, anchor="start", bold=True)
    drawing.box(120, 95, 170, 48, GREEN)
    drawing.text(205, 116, "state", bold=True)
    drawing.text(205, 133, "of payments 0 to 5", size=11.5)
    drawing.arrow(205, 147, 205, 178, GREEN)
    drawing.arrow(336, 152, 300, 178, ORANGE)
    drawing.box(120, 182, 260, 44, BROWN)
    drawing.text(250, 209, "checkpoint: state and position", bold=True)
    drawing.arrow(384, 204, 470, 204, RED)
    drawing.text(478, 196, "after a failure:", RED, anchor="start", size=12.5)
    drawing.text(478, 214, "this state, read on at 6", RED, anchor="start", size=12.5)
    return drawing


def two_phase() -> Drawing:
    drawing = Drawing(
        640, 200, "Records are written to a hidden file, which gets its name when the checkpoint is complete"
    )
    for number, (name, below, colour) in enumerate(
        [
            (".part-0.inprogress", "records go to a hidden file", BLUE),
            ("pending", "the checkpoint notes the file", ORANGE),
            ("part-0", "complete: the file gets its name", GREEN),
        ]
    ):
        x = 15 + 212 * number
        drawing.box(x, 40, 180, 56, colour)
        drawing.text(x + 90, 64, name, bold=True)
        drawing.text(x + 90, 84, below, size=11)
        if number:
            drawing.arrow(x - 28, 68, x - 4, 68)
    drawing.text(105, 26, "write", size=12)
    drawing.text(317, 26, "checkpoint: prepare", size=12)
    drawing.text(529, 26, "commit", size=12)
    drawing.path([(105, 104), (105, 150), (300, 150)], RED, 1.6)
    drawing.text(310, 146, "failure before the checkpoint:", RED, anchor="start", size=12)
    drawing.text(310, 163, "the file is deleted, its records come again", RED, anchor="start", size=12)
    return drawing


def fraud() -> Drawing:
    return chain(
        "Payments flow from a topic through the detector to another topic",
        [
            ("payments", "topic of Kafka", BLUE),
            ("map", "json.loads", ORANGE),
            ("detector", "state, timers", ORANGE),
            ("alerts", "topic, exactly once", GREEN),
        ],
    )


def drawings() -> dict[str, Drawing]:
    """Return the pictures by their names."""
    parts = [stream, key_by, keyed_state, out_of_order, watermark, windows, timer, checkpoint, two_phase, fraud]
    return {part.__name__: part() for part in parts}


if __name__ == "__main__":
    write_all(drawings())
