"""Inference over many scans: one that fails does not stop the others, and is reported at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monai.data import MetaTensor
from monai.engines import SupervisedEvaluator
from monai.utils import ImageMetaKey, MONAIEnvVars, ensure_tuple

from ..datasets.case_files import IN_MEMORY
from ..datasets.scans import FAILURE
from ..errors import CaseError, root_message
from .failed_scans import FailedScans


class ScanEvaluator(SupervisedEvaluator):
    """Evaluator that goes on with the next scan when one cannot be read, segmented or saved, and raises at the end.

    Takes the arguments of :class:`monai.engines.SupervisedEvaluator`, by name. A scan that could not be read reaches it through
    :class:`ScanDataset` with ``hand_over_errors``. Errors that are not about one scan, such as missing weights, end the run at
    once.

    Args:
        failed_scans: where failures are noted. With None the first failure is raised.
        stop_on_error: note the first failure, then raise it.
        skip_damaged: a scan that could not be read is named in a warning, and is no failure unless there is no other.
        options: arguments of :class:`monai.engines.SupervisedEvaluator`.

    Raises:
        ValueError: both ``stop_on_error`` and ``skip_damaged`` are set.
        CaseError: on ``run``: a scan failed; all others are done, unless ``failed_scans`` is None or ``stop_on_error`` is set.

    Example:
        >>> import torch
        >>> data = [{"image": torch.zeros(1, 1, 8, 8)}, {"image": ["/a.nii"], "failure": ["/a.nii: cannot be read"]}]
        >>> evaluator = ScanEvaluator(device="cpu", val_data_loader=data, network=torch.nn.Identity(),
        ...                           failed_scans=FailedScans())
        >>> evaluator.run()
        Traceback (most recent call last):
        monai_margincal.errors.CaseError: 1 of 2 scans failed: /a.nii: cannot be read
    """

    def __init__(
        self,
        *,
        failed_scans: FailedScans | None = None,
        stop_on_error: bool = False,
        skip_damaged: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if skip_damaged and stop_on_error:
            raise ValueError("skip_damaged: found true beside stop_on_error, expected one of them")
        self.skip_damaged = skip_damaged
        self.failed_scans = failed_scans
        self.stop_on_error = stop_on_error or failed_scans is None

    def run(self, global_epoch: int = 1) -> None:  # type: ignore[override]
        """Run over all scans, then raise if one failed."""
        if self.failed_scans is not None:
            self.failed_scans.begin()
        try:
            super().run(global_epoch)
        finally:
            if self.failed_scans is not None:
                self.failed_scans.finish_results()
        if self.failed_scans is not None:
            self.failed_scans.check(self.state.iteration)

    def _iteration(self, engine: Any, batchdata: Any) -> Any:
        scans = _scans_of(batchdata)
        if isinstance(batchdata, Mapping) and FAILURE in batchdata:
            reason = " ".join(batchdata[FAILURE])
            if self.skip_damaged and self.failed_scans is not None:
                for scan in scans:
                    self.failed_scans.skip(scan, reason)
                return []
            return self._failed(scans, reason, None)
        try:
            return super()._iteration(engine, batchdata)
        except Exception as error:
            return self._failed(scans, f"{', '.join(scans)}: cannot be segmented: {root_message(error)}", error)

    def _failed(self, scans: tuple[str, ...], reason: str, error: Exception | None) -> list[Any]:
        if error is not None and MONAIEnvVars.debug():
            self.logger.error(reason, exc_info=error)
        if self.failed_scans is not None:
            for scan in scans:
                self.failed_scans.add(scan, reason)
        if self.stop_on_error:
            raise CaseError(reason) from error
        return []


def _scans_of(batch: Any) -> tuple[str, ...]:
    """The files of a batch."""
    image = batch.get("image") if isinstance(batch, Mapping) else None
    names = image.meta.get(ImageMetaKey.FILENAME_OR_OBJ) if isinstance(image, MetaTensor) else image
    names = ensure_tuple(names) if isinstance(names, str | list | tuple) else ()
    return tuple(str(name) for name in names) or (IN_MEMORY,)
