"""Tables of groups as people have them: spreadsheets, BIDS, other columns, mistakes."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared import SHARED, needs_shared

from monai_margincal.datasets import read_group_table


def table(folder, text, encoding="utf-8"):
    path = folder / "cases.csv"
    path.write_bytes(text.encode(encoding))
    return path


words = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Z")), min_size=1, max_size=8)


@given(content=st.dictionaries(words, words, min_size=1), separator=st.sampled_from(",;\t"))
def test_what_csv_writes_is_read_back(tmp_path_factory, content, separator):
    path = tmp_path_factory.mktemp("table") / "cases.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator).writerows([("case", "group"), *content.items()])
    assert read_group_table(path) == content


@needs_shared
def test_real_table():
    """Three columns begin with a name of a patient's, one is `patient_id`."""
    found = read_group_table(SHARED / "data" / "lidc_nodules" / "cases.csv")
    assert len(found) == 798
    assert len(set(found.values())) == 439
    assert found["LIDC-IDRI-0004_R_1"] == "LIDC-IDRI-0004"
    textures = read_group_table(SHARED / "data" / "lidc_nodules" / "cases.csv", "texture_class")
    assert set(textures.values()) == {"1", "2", "3"}


@pytest.mark.parametrize(
    ("text", "column", "found"),
    [
        ("case,group\na,007\nb,7x\n", None, {"a": "007", "b": "7x"}),
        ("group,case\np,a\n", None, {"a": "p"}),  # by name, not by place
        ("name,who\na,p\n", None, {"a": "p"}),  # nothing to choose
        ("case,age,Patient_ID\na,50,p\n", None, {"a": "p"}),
        ("case,age,who\na,50,p\n", "who", {"a": "p"}),
        ("case,patient,subject\na,p,s\n", "subject", {"a": "s"}),
        ("participant_id\tage\tgroup\nsub-01\t9\tp\n", None, {"sub-01": "p"}),
        ("case;patient\r\na;p\r\n\r\nb;q\r\n", None, {"a": "p", "b": "q"}),
        ("case , patient\n a , p \n", None, {"a": "p"}),
        ('case,patient\n"a, left","Müller"\n', None, {"a, left": "Müller"}),
        ("case,patient\na,p\na,p\n", None, {"a": "p"}),
    ],
)
def test_forms(tmp_path, text, column, found):
    assert read_group_table(table(tmp_path, text), column) == found


def test_the_mark_of_a_spreadsheet_is_no_part_of_the_header(tmp_path):
    assert read_group_table(table(tmp_path, "case,patient\na,p\n", "utf-8-sig")) == {"a": "p"}


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        (
            "case,age,who\na,50,p\n",
            None,
            r"columns \['age', 'who'\], expected `group_column` to name the one of the groups",
        ),
        ("case,patient,subject\na,p,s\n", None, r"columns \['patient', 'subject'\], expected `group_column`"),
        ("case,age,who\na,50,p\n", "patient", r"no column 'patient', expected one of \['age', 'who'\]"),
        ("case,age\na,50\n", "case", r"no column 'case', expected one of \['age'\]"),
        ("case,patient\na,p\nb,\n", None, r"no 'patient' in line 3 \(b,\), expected one for every row"),
        ("case,patient\n,p\n", None, r"no 'case' in line 2"),
        (
            "case,patient\na,p\nb,q\na,q\n",
            None,
            r"case 'a' in 'patient' 'p' \(line 2\) and 'q' \(line 4\), expected one group",
        ),
        ("case,patient\na\n", None, "1 cells in line 2, expected 2 as in the header"),
        ("case,patient\n", None, "no rows below a header, expected a CSV file"),
        ("", None, "no rows below a header"),
        ("case\na\n", None, "one column, 'case', expected a CSV file"),
        ("case,patient,case\na,p,b\n", None, r"columns \['case', 'patient', 'case'\], expected each name once"),
        ('case,patient\n"a,p\n', None, "unexpected end of data, expected a CSV file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, column, message):
    path = table(tmp_path, text)
    with pytest.raises(ValueError, match=message) as raised:
        read_group_table(path, column)
    assert str(raised.value).startswith(f"{path}: found ")


def test_no_table(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv: no such file, expected a CSV file"):
        read_group_table(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="expected a CSV file"):
        read_group_table(tmp_path)
    with pytest.raises(ValueError, match="expected a CSV file"):
        read_group_table(table(tmp_path, "case,patient\nä,p\n", "latin-1"))
