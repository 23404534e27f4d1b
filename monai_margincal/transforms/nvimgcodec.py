"""MONAI's `LoadImage` says, wherever pydicom is installed, that NVIDIA's decoder is not: nobody here has asked for it."""

from __future__ import annotations

import logging
import warnings

from monai.data.image_reader import get_preferred_dicom_reader_key

__all__ = ["silence_nvimgcodec"]


def silence_nvimgcodec() -> None:
    """Keep the two messages about the missing nvImageCodec out of log and stderr, from here on in this process.

    ``LoadImage`` makes a reader of every kind that MONAI knows, among them one that warns when its decoder is missing, whatever
    readers it was given. Whoever has set ``MONAI_DICOM_READER=nvimgcodec`` wants that decoder, and still hears of it.

    Example:
        >>> from monai.transforms import LoadImage
        >>> silence_nvimgcodec()
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     _ = LoadImage()
        >>> [str(one.message) for one in caught if "nvImageCodec" in str(one.message)]
        []
    """
    if "nvimgcodec" in get_preferred_dicom_reader_key():
        return
    logger = logging.getLogger("monai.data.nvimgcodec_pydicom_plugin")
    if _is_of_others not in logger.filters:
        logger.addFilter(_is_of_others)
    warnings.filterwarnings("ignore", message="NvImgCodecPydicomReader: nvImageCodec decoder plugin did not register")


def _is_of_others(record: logging.LogRecord) -> bool:
    return "nvImageCodec is not available" not in record.getMessage()
