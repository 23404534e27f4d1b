"""What a kind of output is: when it is written, from what, and which of its files a failed scan may have left."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch

from ..datasets.case_files import case_file

#: name of a kind -> its class; filled by the definition of the classes
KINDS: dict[str, type[Output]] = {}


@dataclass(frozen=True)
class Destination:
    """Where the results of a run go, and what they are about.

    Args:
        output_dir: folder of all results.
        data_root_dir: folder of the data set; a scan's subfolder below it is kept below ``output_dir``.
        class_names: names of the classes by id; the first is the background.
        image_key: key of the prepared image.
    """

    output_dir: str | os.PathLike[str]
    data_root_dir: str | os.PathLike[str] = ""
    class_names: tuple[str, ...] = ("background", "foreground")
    image_key: str = "image"


class Output(ABC):
    """A kind of output. A subclass that sets ``kind`` is known by that name as soon as it is defined.

    Args:
        destination: where the results go.
        options: those of the kind.

    Raises:
        ValueError: on definition: the name is already another kind's.

    Example:
        >>> from monai_margincal.outputs.kind import KINDS, Output
        >>> class Voxels(Output):
        ...     kind = "voxels"
        ...     def save(self, items, key):
        ...         print(int(items[key].sum()), "voxels")
        >>> KINDS.pop("voxels")(Destination("eval")).save({"pred": torch.ones(1, 2, 2, 2)}, "pred")
        8 voxels
    """

    #: what users write to get it
    kind: ClassVar[str]
    #: on which grid the class map must lie when it is saved: the prepared image's or, after the inversion, the scan's own
    grid: ClassVar[Literal["network", "scan"]] = "scan"
    #: whether ``from_logits`` makes a map of the whole scan's logits, which then have to be kept
    needs_logits: ClassVar[bool] = False
    #: a file that says why a scan has failed, if the kind writes one
    reasons: Path | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" not in vars(cls):
            return
        known = KINDS.setdefault(cls.kind, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"two kinds of output are named {cls.kind!r}: {known.__module__} and {cls.__module__}")
        KINDS[cls.kind] = cls

    def __init__(self, destination: Destination) -> None:
        self.destination = destination

    def from_logits(self, logits: torch.Tensor) -> torch.Tensor:
        """Make the map that ``save`` finds under the key ``kind``; called where ``needs_logits`` is true.

        Args:
            logits: (K, X, Y, Z), on the network's grid.

        Returns:
            (1, X, Y, Z).
        """
        raise NotImplementedError(f"the output {self.kind!r} is not made from logits")

    @abstractmethod
    def save(self, items: Mapping[Any, Any], key: str) -> None:
        """Write what there is to write about a scan, completely or not at all.

        Args:
            items: the scan, with its class map (1, X, Y, Z) on ``grid``.
            key: key of the class map.
        """

    def note_failure(self, scan: str, reason: str) -> None:  # noqa: B027 (most kinds keep no record)
        """Note that a scan has no results; by default nothing is noted.

        Args:
            scan: its file or folder, or "in memory".
            reason: one line.
        """

    def finish(self) -> None:  # noqa: B027 (most kinds write a scan at a time)
        """Write what could not be written before the last scan; by default nothing is left. The next scan begins anew."""

    @classmethod
    def is_own(cls, name: str) -> bool:
        """Whether a file of this name among the results may be one of this kind that is not named after one scan."""
        return False


class ScanFile(Output):
    """A kind of output that is one file per scan, named after it.

    Args:
        destination: where the results go.
        postfix: what is appended to the scan's name, in place of the kind's own.
    """

    #: what is appended to the scan's name
    postfix: str
    #: ending of the file, with the dot
    ending: ClassVar[str]

    def __init__(self, destination: Destination, postfix: str | None = None) -> None:
        super().__init__(destination)
        if postfix is not None:
            self.postfix = postfix

    def path(self, meta: Mapping[str, Any]) -> Path:
        """Name the file of the scan that has this metadata."""
        place = self.destination
        return case_file(meta, place.output_dir, self.postfix, self.ending, data_root_dir=place.data_root_dir)
