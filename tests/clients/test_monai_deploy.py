"""MONAI Deploy App SDK: a DICOM series goes through the bundle to a DICOM Segmentation, as docs/clients.md says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("monai.deploy", reason="runs where MONAI Deploy App SDK is installed, see tests/clients/run")
pytest.importorskip("highdicom", reason="runs where highdicom is installed, see tests/clients/run")

import highdicom
import nibabel
import SimpleITK
import torch
from monai.bundle import ConfigWorkflow, ckpt_export
from monai.deploy.conditions import CountCondition
from monai.deploy.core import AppContext, Application, Image, IOType
from monai.deploy.operators.dicom_data_loader_operator import DICOMDataLoaderOperator
from monai.deploy.operators.dicom_seg_writer_operator import DICOMSegmentationWriterOperator, SegmentDescription
from monai.deploy.operators.dicom_series_selector_operator import DICOMSeriesSelectorOperator
from monai.deploy.operators.dicom_series_to_volume_operator import DICOMSeriesToVolumeOperator
from monai.deploy.operators.monai_bundle_inference_operator import (
    IOMapping,
    MonaiBundleInferenceOperator,
    _load_model_from_directory_bundle,
    get_bundle_config,
)
from pydicom.sr.codedict import codes

from monai_margincal.bundle import bundle_dir
from monai_margincal.samples import sample_dir

BUNDLE = Path(bundle_dir("covid19_ct_lesion_coplenet"))


class LesionApp(Application):
    """DICOM folder -> series -> volume -> bundle -> DICOM Segmentation."""

    def compose(self):
        context = AppContext({"input": str(self.folder / "series"), "output": str(self.folder / "out"), "model": ""})
        # without a count the first operator would start over for ever
        once = CountCondition(self, 1)
        load = DICOMDataLoaderOperator(self, once, input_folder=self.folder / "series", name="load")
        select = DICOMSeriesSelectorOperator(self, rules="", name="select")
        volume = DICOMSeriesToVolumeOperator(self, name="volume")
        infer = MonaiBundleInferenceOperator(
            self,
            app_context=context,
            input_mapping=[IOMapping("image", Image, IOType.IN_MEMORY)],
            output_mapping=[IOMapping("pred", Image, IOType.IN_MEMORY)],
            bundle_path=self.bundle,
            name="infer",
        )
        lesion = SegmentDescription(
            segment_label="lesion",
            segmented_property_category=codes.SCT.MorphologicallyAbnormalStructure,
            segmented_property_type=codes.SCT.Lesion,
            algorithm_name="COPLE-Net",
            algorithm_version="0.1.0",
        )
        write = DICOMSegmentationWriterOperator(
            self, segment_descriptions=[lesion], output_folder=self.folder / "out", name="write"
        )
        self.add_flow(load, select, {("dicom_study_list", "dicom_study_list")})
        self.add_flow(select, volume, {("study_selected_series_list", "study_selected_series_list")})
        self.add_flow(volume, infer, {("image", "image")})
        self.add_flow(select, write, {("study_selected_series_list", "study_selected_series_list")})
        self.add_flow(infer, write, {("pred", "seg_image")})


def write_series(folder: Path) -> None:
    """The lung crop with the lesion as a DICOM series, one file per slice."""
    scan = SimpleITK.ReadImage(f"{sample_dir('lung_ct')}/images/lung2.nii.gz", SimpleITK.sitkInt16)
    folder.mkdir()
    cosines = "\\".join(map(str, np.reshape(scan.GetDirection(), (3, 3)).T[:2].flatten()))
    for number in range(scan.GetSize()[2]):
        plane = scan[:, :, number]
        position = scan.TransformIndexToPhysicalPoint((0, 0, number))
        for tag, value in {
            "0008|0016": "1.2.840.10008.5.1.4.1.1.2", "0008|0018": f"1.2.826.0.1.3680043.2.1125.1.{number + 1}",
            "0008|0060": "CT", "0010|0010": "Lung^Two", "0010|0020": "2", "0010|0030": "", "0010|0040": "",
            "0020|000d": "1.2.826.0.1.3680043.2.1125.2", "0020|000e": "1.2.826.0.1.3680043.2.1125.3",
            "0020|0052": "1.2.826.0.1.3680043.2.1125.4", "0020|0010": "1", "0008|0050": "1", "0008|0020": "20200101",
            "0008|0030": "000000", "0020|0011": "1", "0020|0013": str(number + 1),
            "0020|0032": "\\".join(map(str, position)), "0020|0037": cosines,
            "0018|0050": str(scan.GetSpacing()[2]), "0028|1052": "0", "0028|1053": "1",
        }.items():  # fmt: skip
            plane.SetMetaData(tag, value)
        writer = SimpleITK.ImageFileWriter()
        writer.KeepOriginalImageUIDOn()
        writer.SetFileName(str(folder / f"{number:03}.dcm"))
        writer.Execute(plane)


def test_the_loader_gives_the_network_with_its_weights() -> None:
    parser = get_bundle_config(str(BUNDLE), ["inference"])
    network = _load_model_from_directory_bundle(BUNDLE, torch.device("cpu"), parser)
    expected = torch.load(BUNDLE / "models" / "model.pt", weights_only=True)
    assert set(network.state_dict()) == set(expected)
    assert all(torch.equal(value, expected[name]) for name, value in network.state_dict().items())
    assert not network.training


@pytest.fixture(params=["directory", "TorchScript"])
def bundle(request, tmp_path: Path) -> Path:
    """Both forms that the SDK takes a bundle in."""
    if request.param == "directory":
        return BUNDLE
    file = tmp_path / "model.ts"
    ckpt_export(
        net_id="network_def",
        filepath=str(file),
        ckpt_file=str(BUNDLE / "models" / "model.pt"),
        meta_file=str(BUNDLE / "configs" / "metadata.json"),
        config_file=str(BUNDLE / "configs" / "inference.json"),
    )
    return file


@pytest.mark.slow
def test_a_dicom_series_becomes_the_segmentation_that_the_bundle_makes(
    bundle: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_series(tmp_path / "series")
    LesionApp.folder, LesionApp.bundle = tmp_path, bundle
    LesionApp().run()
    (written,) = (tmp_path / "out").glob("*.dcm")
    segmentation = highdicom.seg.segread(written)
    marked = segmentation.get_volume(combine_segments=True)

    ours = ConfigWorkflow(
        workflow_type="infer",
        config_file=str(BUNDLE / "configs" / "inference.json"),
        logging_file=False,
        bundle_root=str(BUNDLE),
        dataset_dir=str(tmp_path),
        image_pattern="{case}",
        cases="series",
        output_dir=str(tmp_path / "masks"),
        device="cpu",
        num_workers=0,
    )
    ours.initialize()
    ours.run()
    mask = nibabel.load(tmp_path / "masks" / "series_mask.nii.gz")

    # empty slices have no frame in a DICOM Segmentation, so that positions are compared, not arrays
    positions = marked.map_indices_to_reference(np.argwhere(marked.array)) * [-1, -1, 1]
    indices = nibabel.affines.apply_affine(np.linalg.inv(mask.affine), positions)
    assert np.abs(indices - indices.round()).max() < 1e-3
    assert len(indices) > 1000
    assert {*map(tuple, indices.round().astype(int))} == {*map(tuple, np.argwhere(mask.dataobj))}
