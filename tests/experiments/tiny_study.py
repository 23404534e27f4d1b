"""A study that trains in a second: bright discs on noise, two foreground classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nibabel
import numpy as np


def write_cases(folder: Path, number: int = 8, classes: int = 3) -> Path:
    """Volumes 12 x 14 x 3 with one block per class; returns the data folder."""
    for name in ("images", "labels"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for i in range(number):
        random = np.random.RandomState(i)
        label = np.zeros((12, 14, 3), np.uint8)
        for k in range(1, classes):
            x, y = random.randint(0, 8), random.randint(0, 9)
            label[x : x + 4, y : y + 4] = k
        image = label + random.normal(0, 0.3, label.shape)
        nibabel.save(nibabel.Nifti1Image(image.astype(np.float32), np.eye(4)), folder / "images" / f"case{i}.nii.gz")
        nibabel.save(nibabel.Nifti1Image(label, np.eye(4)), folder / "labels" / f"case{i}.nii.gz")
    return folder


def tiny_config(data: Path) -> dict[str, Any]:
    """Two tasks (slices, volumes), three objectives, two seeds."""
    network = {
        "_target_": "monai.networks.nets.UNet",
        "spatial_dims": 2,
        "in_channels": 1,
        "out_channels": 3,
        "channels": [4, 4],
        "strides": [2],
        "dropout": 0.1,
    }
    slices = {
        "data": "@data",
        "training": 3,
        "validation": 2,
        "test": 3,
        "class_names": ["background", "a", "b"],
        "transform": "@transform",
        "augmentation": [
            {"_target_": "monai.transforms.RandShiftIntensityd", "keys": "image", "offsets": 0.1, "prob": 0.5}
        ],
        "slice_axis": 2,
        "sample_size": [16, 16],
        "network": network,
        "optimizer": {"_target_": "torch.optim.AdamW", "lr": 0.01},
        "batch_size": 2,
        "pretraining_steps": 3,
        "steps": 2,
        "validate_every": 1,
    }
    volumes = {
        **slices,
        "slice_axis": None,
        "sample_size": [16, 16, 4],
        "augmentation": None,
        "network": {**network, "spatial_dims": 3},
        "batch_size": 1,
    }
    margins = {"_target_": "monai_margincal.losses.MarginCalibrationLoss", "class_counts": "@class_counts"}
    return {
        "title": "Tiny",
        "seeds": [0, 1],
        "data": {"_target_": "monai_margincal.datasets.folder_datalist", "root": str(data)},
        "transform": [
            {
                "_target_": "monai.transforms.LoadImaged",
                "keys": ["image", "label"],
                "image_only": True,
                "ensure_channel_first": True,
                "reader": "NibabelReader",
            }
        ],
        "tasks": {"slices": slices, "volumes": volumes},
        "objectives": {
            "ce": {"group": "baseline", "paper": "Cross-entropy", "loss": {"_target_": "torch.nn.CrossEntropyLoss"}},
            "margins": {"group": "published", "paper": "Ours", "tau_upsilon": [1, 1], "loss": margins},
            "bound": {
                "group": "ours",
                "label": "the bound",
                "tau_upsilon": [10, 1],
                "loss": margins,
                "controller": {"_target_": "monai_margincal.losses.iou_calibration.BoundWeights", "warmup": 1},
            },
        },
        "decoders": {
            "argmax": {"_target_": "monai_margincal.experiments.ArgmaxDecoder"},
            "offsets": {"_target_": "monai_margincal.experiments.ClassOffsetDecoder"},
        },
        "blocks": [{"tasks": ["slices"]}, {"tasks": ["volumes"], "seeds": [0], "objectives": ["ce", "bound"]}],
    }
