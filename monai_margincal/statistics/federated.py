"""Class counts over sites that cannot share labels, through NVFlare's federated statistics.

Each site counts its own labels; all that leaves it is one number per class. NVFlare adds the numbers up on its server. A site
needs the optional extra ``monai-margincal[federated]`` (NVFlare 2.7) to take part.

A site without NVFlare sends a counts JSON instead, and the files are merged: ``ClassCounts.from_json(a) + ...``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..counting.class_counts import ClassCounts
from ..counting.class_ids import declared_class_ids
from ..errors import naming_files
from ..extras import require
from .dataset_counts import count_labels

try:
    from nvflare.app_common.abstract.statistics_spec import DataType, Feature, Statistics
except ImportError:
    # the module stays importable, for its documentation and for reading results; only making a generator says what is missing
    DataType = Feature = Any
    Statistics = object

#: name of the data set under which NVFlare reports the counts
DATASET = "labels"
_PREFIX = "class "


class LabelCountStatistics(Statistics):
    """NVFlare statistics generator: every class is a feature, its voxels are the feature's ``count``.

    Name it in a job's ``config_fed_client.json``; see ``docs/federated.md`` for a whole job.

    Args:
        data: label files as a pattern or path; ``{site}`` in it stands for the name of the site.
        num_classes: number of classes including background; all sites must declare the same classes.
        ids: the label values, if they have gaps.
        ignore_index: label value that belongs to no class.

    Raises:
        ValueError: no classes are declared: sites that find different ids would not add up.
        ImportError: NVFlare is not installed.
    """

    def __init__(
        self,
        data: str,
        num_classes: int | None = None,
        ids: Sequence[int] | None = None,
        ignore_index: int | None = None,
    ) -> None:
        if Statistics is object:
            require(
                "nvflare.app_common.abstract.statistics_spec", extra="federated", purpose="counting with other sites"
            )
        super().__init__()
        declared = declared_class_ids(num_classes, ids)
        if declared is None:
            raise ValueError("neither num_classes nor ids is given, expected the same declared classes at every site")
        self.data = data
        self.ids = declared
        self.ignore_index = ignore_index
        self._counts: ClassCounts | None = None

    def initialize(self, fl_ctx: Any) -> None:
        """Count the labels of this site."""
        site = fl_ctx.get_identity_name()
        self._counts = count_labels(
            self.data.format(site=site), ids=self.ids, ignore_index=self.ignore_index, progress=False
        )

    def features(self) -> dict[str, list[Feature]]:
        """One feature per class."""
        return {DATASET: [Feature(f"{_PREFIX}{class_id}", DataType.INT) for class_id in self.ids]}

    def count(self, dataset_name: str, feature_name: str) -> int:
        """Voxels of a class at this site."""
        if self._counts is None:
            raise RuntimeError("count was asked for before initialize")
        return self._counts.count_of(int(feature_name.removeprefix(_PREFIX)))


def read_federated_counts(path: str | os.PathLike[str]) -> ClassCounts:
    """The class counts over all sites from the file that NVFlare's JSON writer left on the server.

    Args:
        path: the JSON file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not such a result, or a site's count is missing from a total.
    """
    with naming_files(path, "cannot be read, expected the result of a label count job", raises=ValueError):
        counts = _totals(path, json.loads(Path(path).read_text(encoding="utf-8")))
    if not counts:
        raise ValueError(f"{path}: found no class, expected the result of a label count job")
    return ClassCounts(counts, source="raw label files of all sites (NVFlare)")


def _totals(path: str | os.PathLike[str], content: Any) -> dict[int, int]:
    """Voxels per id over all sites."""
    if not isinstance(content, dict):
        raise ValueError(f"{path}: found a {type(content).__name__}, expected an object with one entry per class")
    counts = {}
    for feature, statistics in content.items():
        if not feature.startswith(_PREFIX):
            raise ValueError(f"{path}: found the feature {feature!r}, expected '{_PREFIX}<id>'")
        per_site = statistics.get("count", {})
        values = {site: int(of_site[DATASET]) for site, of_site in per_site.items()}
        if "Global" not in values:
            raise ValueError(f"{path}: found no total for {feature!r}, expected one under 'Global'")
        total = values.pop("Global")
        if sum(values.values()) != total:
            raise ValueError(
                f"{path}: {feature!r} adds up to {sum(values.values())} over the sites, but the total is {total}"
            )
        counts[int(feature.removeprefix(_PREFIX))] = total
    return counts
