"""Markdown tables."""


def markdown_table(header: list[str], rows: list[list], left: int = 1) -> str:
    """A Markdown table.

    Args:
      header: names of the columns.
      rows: cells, shown with str().
      left: how many columns are text, aligned to the left; the rest are numbers.
    """
    rule = ["---"] * left + ["--:"] * (len(header) - left)
    lines = (" | ".join(map(str, row)) for row in (header, rule, *rows))
    return "\n".join(f"| {line} |" for line in lines)
