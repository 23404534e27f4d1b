"""Where the shipped bundles lie: beside the package in a source tree, inside it when installed from a wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
#: in a wheel, in a source tree
_ROOTS = (_PACKAGE / "shipped_bundles", _PACKAGE.parent / "bundles")


def bundle_dir(name: str) -> str:
    """Give the root folder of a shipped bundle, for ``--bundle_root`` and ``monai.bundle.ConfigWorkflow``.

    Args:
        name: the bundle's name, for example ``"covid19_ct_lesion_coplenet"``.

    Returns:
        the folder's absolute path.

    Raises:
        ValueError: no bundle of that name is shipped.

    Example:
        >>> Path(bundle_dir("covid19_ct_lesion_coplenet"), "configs", "train.json").is_file()
        True
    """
    known = {path.parents[1].name: path.parents[1] for root in _ROOTS for path in root.glob("*/configs/metadata.json")}
    if name not in known:
        raise ValueError(f"no bundle is named {name!r}, expected one of {sorted(known)}")
    return str(known[name])
