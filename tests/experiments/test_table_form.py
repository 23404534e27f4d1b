"""Tables: the best of each column among rows that can be compared, groups apart, names that need escaping."""

from __future__ import annotations

import pytest

from monai_margincal.experiments.table_form import Table

ROWS = (("a", "71.0 ± 1", "+0.30 [−0.10, +0.70]", "9"), ("b", "70.0", "(reference)", "3"), ("c", "75.0", "+4.00", "1"))
TABLE = Table(
    "t", ("objective", "mIoU", "Δ", "s"), ROWS, "Note.", highest=("mIoU", "Δ"), lowest=("s",), breaks=((2, "one seed only"),)
)  # fmt: skip


def test_the_best_are_those_of_the_first_group() -> None:
    assert TABLE.best == {(0, 1), (0, 2), (1, 3)}


def test_without_groups_all_rows_count() -> None:
    assert Table("t", TABLE.header, ROWS, highest=("mIoU",)).best == {(2, 1)}


def test_equal_cells_are_all_the_best_and_a_column_of_equals_has_none() -> None:
    rows = (("a", "2", "1"), ("b", "2", "1"), ("c", "1", "1"))
    assert Table("t", ("o", "x", "y"), rows, highest=("x", "y")).best == {(0, 1), (1, 1)}


def test_the_reference_is_the_best_where_all_others_are_behind() -> None:
    rows = (("a", "(reference)"), ("b", "−0.20 [−0.30, −0.10]"), ("c", "–"))
    assert Table("t", ("o", "Δ"), rows, highest=("Δ",)).best == {(0, 1)}


def test_markdown_marks_the_best_and_heads_the_groups() -> None:
    lines = TABLE.markdown().splitlines()
    assert lines[4:8] == [
        "| a | **71.0 ± 1** | **+0.30 [−0.10, +0.70]** | 9 |",
        "| b | 70.0 | (reference) | **3** |",
        "| *one seed only* |  |  |  |",
        "| c | 75.0 | +4.00 | 1 |",
    ]
    assert lines[-1] == "Note. Bold: best of its column in the first group, by however little."


def test_latex_marks_the_best_too() -> None:
    text = TABLE.latex()
    assert r"a & \textbf{71.0 $\pm$ 1} & \textbf{+0.30 [$-$0.10, +0.70]} & 9 \\" in text
    assert r"\emph{one seed only} & & & \\" in text


def test_text_is_escaped() -> None:
    table = Table("50 % & more", ("a_b", "c"), (("x|y", "<1>"),))
    assert r"50 \% \& more" in table.latex()
    assert r"x\|y" in table.markdown()


def test_a_row_of_another_length_cannot_be_marked() -> None:
    with pytest.raises(IndexError):
        _ = Table("t", ("a", "b"), (("only",),), highest=("b",)).best
