"""Nobody is told of a decoder that nobody has asked for; other words of MONAI pass."""

from __future__ import annotations

import logging
import warnings

from monai.transforms import LoadImage

from monai_margincal.transforms.nvimgcodec import silence_nvimgcodec


def words(caplog):
    """What making a reader says."""
    caplog.clear()
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.WARNING):
        warnings.simplefilter("always")
        silence_nvimgcodec()
        LoadImage()
        warnings.warn("something else", stacklevel=1)
        logging.getLogger("monai.data.nvimgcodec_pydicom_plugin").warning("something else")
    return [str(one.message) for one in caught] + [record.getMessage() for record in caplog.records]


def test_only_these_two_messages_are_gone(caplog):
    assert words(caplog) == ["something else", "something else"]
    assert words(caplog) == ["something else", "something else"]


def test_who_asks_for_the_decoder_hears_of_it(caplog, monkeypatch):
    monkeypatch.setenv("MONAI_DICOM_READER", "nvimgcodec")
    logger = logging.getLogger("monai.data.nvimgcodec_pydicom_plugin")
    monkeypatch.setattr(logger, "filters", [])
    found = " ".join(words(caplog))
    assert found.count("nvImageCodec") == 2
