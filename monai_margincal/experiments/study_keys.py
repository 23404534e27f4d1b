"""What a study file may say: every key, whether it must be given, and what it means. The reference page is made from this."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BLOCK_KEYS", "GIVEN", "OBJECTIVE_KEYS", "STUDY_KEYS", "TASK_KEYS", "Key"]


class Key(NamedTuple):
    """A key of a study file: whether it must be given, and what it means."""

    is_needed: bool
    meaning: str


#: the file itself; any other entry is free for `@` references
STUDY_KEYS = {
    "title": Key(False, "heading of the report"),
    "seeds": Key(True, "list of integers; a seed draws training cases, initial weights, data order and dropout"),
    "tasks": Key(True, "name -> task"),
    "objectives": Key(True, "name -> objective"),
    "decoders": Key(True, "name -> component that makes classes of logits; objectives are ranked by the first one"),
    "blocks": Key(
        True,
        "list of blocks: what is trained, in this order; within a block all objectives of the first seed come first",
    ),
}

#: ids that the file may refer to without having them
GIVEN = {
    "config_dir": "folder of the file",
    "class_counts": "`ClassCounts` of a cell's training cases, after the transform",
    "num_classes": "number of classes",
}

TASK_KEYS = {
    "title": Key(False, "what the report calls the task"),
    "data": Key(True, 'component that returns a data list of {"image", "label", "case"}'),
    "training": Key(True, 'number or share of cases drawn by the cell\'s seed, case names, or "rest"'),
    "validation": Key(True, 'number or share of cases drawn by split_seed, case names, or "training"'),
    "test": Key(False, "number or share of cases drawn by split_seed, or case names; this or folds"),
    "folds": Key(
        False,
        "instead of test: split_seed deals the cases into so many folds, each a test once; their cases are pooled",
    ),
    "split_seed": Key(False, "draws validation and test, or the folds; 0 by default"),
    "class_names": Key(True, "background first"),
    "transform": Key(
        True,
        "list of deterministic MONAI dictionary transforms: image (C, *spatial), label (1, *spatial) of class indices",
    ),
    "augmentation": Key(False, "list of random MONAI dictionary transforms"),
    "slice_axis": Key(False, "spatial axis whose slices are the samples of a 2-D network; without it, volumes"),
    "sample_size": Key(
        True, "spatial size of a training sample; smaller images are extended, larger ones cropped at random"
    ),
    "network": Key(True, "component"),
    "optimizer": Key(True, "component, called with the parameters"),
    "batch_size": Key(True, "samples of a step"),
    "pretraining_steps": Key(
        True,
        "steps of cross-entropy, shared by all objectives; the most there may be where `pretraining_until` is given",
    ),
    "pretraining_until": Key(
        False, "{points, gain} of `Standstill`: until the validation score stands still, at a constant rate"
    ),
    "steps": Key(True, 'steps of fine-tuning; "scratch" does pretraining_steps + steps'),
    "validate_every": Key(False, "steps between two points of the validation curve"),
}

OBJECTIVE_KEYS = {
    "loss": Key(True, "component"),
    "controller": Key(False, "component or list of them, called with the loss, that change it while it trains"),
    "label": Key(False, "what tables and figures call the objective; by default its name"),
    "group": Key(False, 'for the report: "baseline" is one that others are compared with'),
    "paper": Key(False, "for the report: the row of the paper's tables"),
    "tau_upsilon": Key(False, "for the report: the row of the paper's sensitivity table"),
}

#: what a block leaves out stands for all; for protocols it is "finetune"
BLOCK_KEYS = {
    "tasks": Key(False, "list of names"),
    "objectives": Key(False, "list of names"),
    "protocols": Key(
        False, '"finetune": after pre-training with cross-entropy; "scratch": with the objective from the start'
    ),
    "seeds": Key(False, "list of integers"),
}
