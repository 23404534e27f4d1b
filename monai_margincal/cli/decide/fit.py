"""Fit one offset per class on the saved logits and labels of validation cases.

A case has a file of logits (.npy or .npz, channel first; or an image such as NIfTI, channel last) and a label on the same voxels,
matched by name. Logits, not probabilities, and of cases that the network was not trained on. Two cases at least, better twenty;
offsets whose gain on cases that they were not chosen on is within two standard errors stay 0.

  margincal decide fit validation --names background lesion --output decision.json
  margincal decide fit . --logits "out/{case}.npy" --labels "truth/{case}.nii.gz" --output decision.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..answer import Answer, add_json_argument
from .show import OFFSET_KEYS, offset_data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the sub-verb."""
    parser.add_argument("root", metavar="DIR", help="folder of the logits and labels")
    parser.add_argument(
        "--logits", metavar="PATTERN", default="logits/{case}.npy", help="template of the files of logits below DIR"
    )
    parser.add_argument(
        "--labels", metavar="PATTERN", default="labels/{case}.*", help="template of the labels below DIR"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="JSON file to write; an older one of offsets is replaced"
    )
    parser.add_argument(
        "--num-classes",
        type=int,
        metavar="N",
        help="by default as many as the logits have channels, 2 where it is one",
    )
    parser.add_argument(
        "--names", nargs="+", dest="class_names", metavar="NAME", help="class names in the order of the ids"
    )
    parser.add_argument("--score", choices=("iou", "dice"), default="iou", help="what is to become largest")
    parser.add_argument(
        "--per-case", action="store_true", help="the mean of the cases' scores, not the score of all voxels together"
    )
    parser.add_argument("--ignore-index", type=int, metavar="ID", help="label of voxels that are left out")
    parser.add_argument("--folds", type=int, metavar="N", default=5, help="parts of the cross-fit")
    parser.add_argument(
        "--groups", metavar="FILE", help="CSV file that says which cases belong together, such as those of a patient"
    )
    parser.add_argument("--group-column", metavar="NAME", help="its column of groups, where the header leaves a choice")
    parser.add_argument(
        "--group-pattern",
        metavar="PATTERN",
        help="instead of a file, what case names look like, {group} the patient: '{group}_*'",
    )
    parser.add_argument(
        "--weights",
        metavar="FILE",
        help="file of the weights that gave the logits: noted, and compared by inference and bake",
    )
    parser.add_argument("--note", metavar="TEXT", help="a sentence about the cases, kept in the file")
    add_json_argument(parser, OFFSET_KEYS)


def run(arguments: argparse.Namespace) -> Answer:
    """Read the cases one by one, fit, write."""
    from tqdm import tqdm

    from ...datasets import folder_datalist
    from ...datasets.groups import members_of_groups
    from ...decisions import ClassOffsets
    from ...decisions.fit import fit_votes
    from ...decisions.offsets_summary import summary_lines
    from ...decisions.saved_logits import saved_case
    from ...decisions.votes import AllVotes, Votes

    ClassOffsets.expect_replaceable(arguments.output)
    known = _known(arguments)
    items = folder_datalist(
        arguments.root,
        arguments.logits,
        arguments.labels,
        groups=arguments.groups,
        group_column=arguments.group_column,
        group_pattern=arguments.group_pattern,
    )
    if len(members_of_groups(items)) < 2:
        what = "one case" if len(items) == 1 else f"{len(items)} cases of one group"
        raise ValueError(f"{arguments.root}: found {what}, expected two or more: the gain is measured on others")
    votes = None
    for item in tqdm(items, desc="looking at cases", unit="case", disable=None):
        logits, labels = saved_case(item["image"], item["label"])
        if votes is None:
            votes = Votes(arguments.num_classes or max(2, len(logits)), arguments.ignore_index)
            ClassOffsets([0.0] * votes.num_classes, arguments.class_names)  # says now if the names are too few
        votes.add(logits, labels, item["image"], item.get("group", ""))
    assert votes is not None  # there are items
    offsets = fit_votes(
        AllVotes(votes),
        arguments.score,
        not arguments.per_case,
        folds=arguments.folds,
        class_names=arguments.class_names,
        known=known,
    )
    offsets.to_json(arguments.output)
    return Answer("\n".join(summary_lines(offsets)), offset_data(offsets), written=[arguments.output])


def _known(arguments: argparse.Namespace) -> dict[str, str]:
    known = {} if arguments.note is None else {"note": arguments.note}
    if arguments.weights is not None:
        from ...workflows.chosen_offsets import digest_of_file

        digest = digest_of_file(arguments.weights)
        if digest is None:
            state = "no weights" if Path(arguments.weights).is_file() else "no such file"
            raise ValueError(f"{arguments.weights}: found {state}, expected a state dict of plain tensors")
        known["weights"] = digest
    return known
