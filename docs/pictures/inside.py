"""Draws the pictures of the page about the architecture: python docs/pictures/inside.py."""

from __future__ import annotations

from svg import BLUE, BROWN, FAINT, GREEN, ORANGE, RED, VIOLET, Drawing, write_all


def processes() -> Drawing:
    drawing = Drawing(680, 300, "Three kinds of process: the driver, Spark's Python workers, and the slots")
    drawing.box(10, 20, 660, 64, BLUE)
    drawing.text(24, 44, "driver: your program", anchor="start", bold=True)
    drawing.text(
        24, 66, "draws the job, orders epochs, decides about checkpoints and restarts", anchor="start", size=12
    )
    drawing.box(10, 120, 420, 70, ORANGE)
    drawing.text(24, 144, "Spark's Python workers: one per task", anchor="start", bold=True)
    for level in range(3):
        drawing.box(30 + 130 * level, 154, 100, 26, ORANGE, fill=0.25)
        drawing.text(80 + 130 * level, 172, f"level {level}", size=12)
        if level:
            drawing.arrow(2 + 130 * level, 167, 28 + 130 * level, 167)
    drawing.text(440, 172, "Spark's shuffle between levels", anchor="start", size=11.5)
    drawing.box(10, 226, 660, 64, GREEN)
    drawing.text(24, 250, "slots: resident processes, one per unit of parallelism", anchor="start", bold=True)
    drawing.text(24, 272, "your functions, their state and timers; sources and sinks", anchor="start", size=12)
    drawing.arrow(220, 86, 220, 116)
    drawing.text(230, 106, "one Spark job per epoch", anchor="start", size=12)
    drawing.arrow(220, 192, 220, 222)
    drawing.arrow(200, 222, 200, 192)
    drawing.text(230, 212, "blobs of records", anchor="start", size=12)
    drawing.arrow(630, 86, 630, 222)
    drawing.text(622, 110, "deploy, notify, close", anchor="end", size=12)
    return drawing


def epoch() -> Drawing:
    drawing = Drawing(
        680, 250, "An epoch passes the levels one after the other; the boundary between two epochs is the barrier"
    )
    for number in range(2):
        left = 30 + 325 * number
        drawing.text(left + 140, 22, f"epoch {number + 7}", bold=True)
        for level, (name, colour) in enumerate([("source, map", BLUE), ("count per key", ORANGE), ("sink", GREEN)]):
            x, y = left + 88 * level, 40 + 44 * level
            for subtask in range(2):
                drawing.box(x, y + 20 * subtask, 84, 16, colour, fill=0.3, round_=2)
            drawing.text(x + 92, y + 24, name, anchor="start", size=11)
    drawing.line(338, 30, 338, 210, RED, width=2.5, dash="6 4")
    drawing.text(338, 228, "barrier: every subtask has processed the same part of the input", RED, size=12.5)
    drawing.text(338, 245, "a checkpoint captures the state here", RED, size=11.5)
    return drawing


def barrier() -> Drawing:
    drawing = Drawing(680, 190, "From the trigger to the commit: a checkpoint exists when its metadata does")
    steps = [
        ("trigger", "the coordinator", BLUE),
        ("capture", "stops the stream", RED),
        ("write", "beside the stream", ORANGE),
        ("_metadata", "the commit point", GREEN),
        ("notify", "sinks commit", VIOLET),
    ]
    for number, (name, below, colour) in enumerate(steps):
        x = 14 + 133 * number
        drawing.box(x, 40, 112, 52, colour)
        drawing.text(x + 56, 62, name, bold=True)
        drawing.text(x + 56, 80, below, size=11)
        if number:
            drawing.arrow(x - 18, 66, x - 3, 66)
    drawing.line(14, 130, 412, 130, FAINT, width=6)
    drawing.text(213, 152, "a crash here: the checkpoint before this one counts", size=12)
    drawing.line(420, 130, 666, 130, GREEN, width=6)
    drawing.text(543, 152, "a crash here: this one counts,", size=12)
    drawing.text(543, 168, "sinks commit again, idempotently", size=12)
    return drawing


def key_groups() -> Drawing:
    drawing = Drawing(
        680, 220, "Keys belong to key groups, and ranges of key groups to subtasks: rescaling moves whole groups"
    )
    for row, (count, top) in enumerate([(2, 40), (3, 150)]):
        drawing.text(10, top - 12, f"parallelism {count}", anchor="start", bold=True)
        for group in range(12):
            subtask = group * count // 12
            colour = (BLUE, ORANGE, GREEN)[subtask]
            drawing.box(14 + 54.5 * group, top, 48, 30, colour, fill=0.3, round_=3)
            drawing.text(38 + 54.5 * group, top + 19, str(group), size=11)
            if row and group * 2 // 12 != subtask:
                drawing.arrow(38 + 54.5 * group, 74, 38 + 54.5 * group, top - 4, BROWN)
    drawing.text(668, 26, "key -> hash -> key group: fixed for ever", anchor="end", size=12)
    drawing.text(340, 205, "colour: the subtask that has the group. Arrows: groups that move", size=12)
    return drawing


def drawings() -> dict[str, Drawing]:
    """Return the pictures by their names."""
    return {f"inside-{part.__name__}": part() for part in (processes, epoch, barrier, key_groups)}


if __name__ == "__main__":
    write_all(drawings())
