"""How much better than the paper's profile the others are, pair by pair of runs."""

from pathlib import Path

from matplotlib.figure import Figure

from reporting.palette import COLOURS
from reporting.png import write_png
from reproduction.scores import mean_score
from reproduction.sheet import Picture

UNITS = {"accuracy": (100, "points of accuracy"), "loss": (1, "nats of loss")}


def draw(gains: dict[tuple[str, str], dict], folder: Path, name: str) -> Picture:
    """Draws a panel for each task and model, a line for each profile.

    Args:
      gains: {(task, model): {(profile, metric): a number for each pair of runs}}, above
        0 where the profile is better than the paper's.
      folder: where to write the PNG.
      name: of the PNG, with its ending.
    """
    columns = min(2, len(gains))
    lines = -(-len(gains) // columns)
    figure = Figure(figsize=(5 * columns, 3.2 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).flat
    told = []
    for axis, ((task, model), profiles) in zip(axes, gains.items(), strict=False):
        means, units = {}, ""
        for place, ((profile, metric), values) in enumerate(profiles.items()):
            factor, units = UNITS[metric]
            values = [factor * value for value in values]
            means[profile] = mean_score(values).mean
            axis.plot(
                values,
                [place] * len(values),
                "o",
                color=COLOURS[2],
                markerfacecolor="none",
            )
            axis.plot(means[profile], place, "D", color=COLOURS[0])
        axis.axvline(0, color="black", linewidth=1)
        axis.set_yticks(range(len(means)), means)
        axis.invert_yaxis()
        axis.set_title(f"{model}, {task}", fontsize=10)
        axis.set_xlabel(f"better by, {units}")
        axis.grid(alpha=0.3)
        best, worst = max(means, key=means.get), min(means, key=means.get)
        told.append(
            f"{model} on {task}, {units}: from {means[worst]:+.3g} with {worst} to "
            f"{means[best]:+.3g} with {best}."
        )
    for axis in list(axes):  # panels without a model
        axis.remove()
    write_png(figure, folder / name)
    caption = (
        "How much better than the paper's profile the others are on validation data. "
        "A circle is a pair of runs with one seed, a diamond their mean."
    )
    return Picture(name, caption, " ".join(told))
