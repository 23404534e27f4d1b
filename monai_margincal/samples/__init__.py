"""Small real images that are shipped with the package, so that the first run needs no download."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).parent


def sample_dir(name: str) -> str:
    """Give the folder of one sample data set.

    ``lidc_nodules``: CT boxes around one lung nodule each of 190 patients (about 44 x 44 x 6 voxels, int16 HU) under ``images/``,
    their masks (0 background, 1 nodule) under ``labels/``, and ``cases.csv``, whose column ``part`` says which 40 patients are
    held out; with their licence and the attribution that must travel with any copy.

    ``lung_ct``: two chest CT crops (192 x 192 x 24 voxels, int16 HU) under ``images/`` and their lesion masks (0 background,
    1 lesion) under ``labels/``, with their licence. ``instruments``: four frames of endoscopic surgery (8-bit RGB, 256 x 256 and
    540 x 405 pixels) from four sequences, and their masks (0 background, 1 instrument, 255 void). ``larynx_tools``: 121 frames of
    laryngeal endoscopy (8-bit RGB, JPEG, 256 x 256) from eight sequences of two patients, named PATIENT_SEQUENCE_NUMBER, and the
    masks of the surgical tools in them, likewise.

    Args:
        name: name of the sample data set.

    Returns:
        the folder's absolute path.

    Raises:
        ValueError: there is no sample data set of that name.

    Example:
        >>> from monai_margincal.samples import sample_dir
        >>> sorted(path.name for path in Path(sample_dir("lung_ct"), "images").iterdir())
        ['lung1.nii.gz', 'lung2.nii.gz']
    """
    known = sorted(path.name for path in _ROOT.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))
    if name not in known:
        raise ValueError(f"no sample data set is named {name!r}; expected one of {known}")
    return str(_ROOT / name)
