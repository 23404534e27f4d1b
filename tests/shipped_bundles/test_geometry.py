"""One scan in many files: whatever its axes, header and format, the mask is the same in space and has the file's grid."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
import SimpleITK
import torch
from monai.data.utils import orientation_ras_lps
from shared import SHARED, needs_shared

from monai_margincal.errors import root_message
from monai_margincal.networks import COPLENet

RAS = np.diag([0.8, 0.9, 5.0, 1.0])
RAS[:3, 3] = [-20, -30, 100]


def rotation(degrees):
    """A tilted gantry: turned about two axes, still orthonormal."""
    a, b = np.radians(degrees), np.radians(degrees / 3)
    about_x = [[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]]
    about_z = [[np.cos(b), -np.sin(b), 0], [np.sin(b), np.cos(b), 0], [0, 0, 1]]
    return np.array(about_x) @ about_z


def scan(shape=(40, 33, 5), seed=0):
    """Smooth structures between air and bone, so that a random network gives a mask with some form."""
    coarse = np.random.RandomState(seed).uniform(-1300, 200, (5, 5, shape[2]))
    rows, columns = (np.linspace(0, 4, size).round().astype(int) for size in shape[:2])
    return coarse[rows][:, columns].astype(np.int16)


#: case -> sign per axis of RAS; the name is the header's `space`
NRRD_SPACES = {
    "nrrd_left_posterior_superior": (-1, -1, 1),
    "nrrd_left_anterior_superior": (-1, 1, 1),
    "nrrd_right_anterior_superior": (1, 1, 1),
    "nrrd_LAS": (-1, 1, 1),
    "nrrd_LPS": (-1, -1, 1),
    "nrrd_RAS": (1, 1, 1),
}


def reoriented(array, affine, axcodes):
    image = nibabel.Nifti1Image(array, affine)
    change = nibabel.orientations.ornt_transform(
        nibabel.orientations.io_orientation(affine), nibabel.orientations.axcodes2ornt(axcodes)
    )
    turned = image.as_reoriented(change)
    return np.asarray(turned.dataobj), turned.affine


def write_itk(path, array, affine):
    """As NRRD or MetaImage: physical space is LPS."""
    image = SimpleITK.GetImageFromArray(np.ascontiguousarray(array.T))
    lps = orientation_ras_lps(affine)
    spacing = np.linalg.norm(lps[:3, :3], axis=0)
    image.SetSpacing(spacing.tolist())
    image.SetOrigin(lps[:3, 3].tolist())
    image.SetDirection((lps[:3, :3] / spacing).ravel().tolist())
    SimpleITK.WriteImage(image, str(path))


def write_nrrd(path, array, affine, space):
    """A raw NRRD by hand: directions and origin in ``space``."""
    numbers = ["(" + ",".join(f"{x:.17g}" for x in column[:3]) + ")" for column in affine.T]
    sizes = " ".join(map(str, array.shape))
    header = (
        f"NRRD0004\ntype: int16\ndimension: 3\nspace: {space}\nsizes: {sizes}\nspace directions: {' '.join(numbers[:3])}\n"
        f"kinds: domain domain domain\nendian: little\nencoding: raw\nspace origin: {numbers[3]}\n\n"
    )
    path.write_bytes(header.encode() + array.astype("<i2").tobytes(order="F"))


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """(folder, case -> (file, affine, shape)): one anatomy in RAS order, written with axes turned and in other formats."""
    root = tmp_path_factory.mktemp("scans")
    (root / "images").mkdir()
    array = scan()
    made = {}

    def nifti(case, data, affine, qform=None):
        image = nibabel.Nifti1Image(data, affine)
        image.set_sform(affine, 1)
        image.set_qform(affine if qform is None else qform, 1)
        path = root / "images" / f"{case}.nii.gz"
        nibabel.save(image, path)
        made[case] = (path, affine, data.shape)

    for axcodes in ("RAS", "LPS", "LAS", "RPI", "PLS", "SAR", "ILP"):
        nifti(axcodes, *reoriented(array, RAS, axcodes))
    oblique = RAS.copy()
    oblique[:3, :3] = rotation(15) @ RAS[:3, :3]
    nifti("oblique", array, oblique)
    nifti("oblique_LPS", *reoriented(array, oblique, "LPS"))
    # a qform of the same spacing but another direction and origin; readers, and this bundle, go by the sform
    nifti("qform_differs", array, RAS, qform=np.diag([-0.8, -0.9, 5.0, 1.0]))
    for ending in ("nrrd", "mha"):
        path = root / "images" / f"itk_{ending}.{ending}"
        turned, affine = reoriented(array, oblique, "LPS")
        write_itk(path, turned, affine)
        made[path.stem] = (path, affine, turned.shape)
    # NRRD says in which space its axes run; readers of MONAI and ITK treat the spaces differently
    turned, affine = reoriented(array, oblique, "LPI")
    for case, signs in NRRD_SPACES.items():
        path = root / "images" / f"{case}.nrrd"
        write_nrrd(path, turned, np.diag([*signs, 1]) @ affine, case.removeprefix("nrrd_").replace("_", "-"))
        made[case] = (path, affine, turned.shape)
    nifti("one_slice", array[..., 2:3], RAS)
    nifti("small_plane", array[:7, :1], RAS)
    nifti("float", array.astype(np.float32), RAS)
    return root, made


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A random network that marks about half of the voxels."""
    folder = tmp_path_factory.mktemp("weights")
    torch.manual_seed(3)
    network = COPLENet(features=(8, 16, 32, 64, 128), norm="group").eval()
    image = torch.from_numpy(scan().astype(np.float32)).permute(2, 0, 1)[:, None]
    with torch.no_grad():
        logits = network(((image + 1400) / 1500).clip(0, 1))
        network.out_conv.bias[1] -= (logits[:, 1] - logits[:, 0]).median()
    torch.save(network.state_dict(), folder / "model.pt")
    return folder / "model.pt"


@pytest.fixture(scope="module")
def masks(command, scans, weights, tmp_path_factory):
    run = command(tmp_path_factory.mktemp("masks"), ("inference",), dataset_dir=scans[0], checkpoint=weights)
    return run.cwd / "eval" / "images"


CASES = [
    *(
        "RAS",
        "LPS",
        "LAS",
        "RPI",
        "PLS",
        "SAR",
        "ILP",
        "oblique",
        "oblique_LPS",
        "qform_differs",
        "itk_nrrd",
        "itk_mha",
    ),
    *NRRD_SPACES,
    *("one_slice", "small_plane", "float"),
]


@pytest.mark.parametrize("case", CASES)
def test_the_mask_has_the_grid_of_its_file(masks, scans, case):
    path, affine, shape = scans[1][case]
    mask = nibabel.load(masks / f"{case}_mask.nii.gz")
    assert mask.shape == shape
    assert mask.get_data_dtype() == np.uint8
    assert np.abs(mask.affine - affine).max() < 1e-4
    ours = SimpleITK.ReadImage(str(masks / f"{case}_mask.nii.gz"))
    assert ours.GetPixelID() == SimpleITK.sitkUInt8
    assert ours.GetSize() == shape
    if case != "qform_differs":  # SimpleITK reads the other of the two, the mask has one for both
        theirs = SimpleITK.ReadImage(str(path))
        for part in ("GetOrigin", "GetSpacing", "GetDirection"):
            assert np.allclose(getattr(ours, part)(), getattr(theirs, part)(), atol=1e-4), part


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("one_slice", "small_plane")])
def test_the_mask_is_the_same_in_space(masks, case):
    """MONAI issue 8467, model-zoo issue 766: LPS files were turned wrongly and segmented upside down."""
    mask = nibabel.load(masks / f"{case}_mask.nii.gz")
    reference = nibabel.load(masks / "RAS_mask.nii.gz")
    turned = reoriented(np.asarray(mask.dataobj), mask.affine, "RAS")[0]
    truth = np.asarray(reference.dataobj)
    assert 0.2 < truth.mean() < 0.8, "a mask without form would prove nothing"
    # a pixel may fall the other way where both classes are level to the last bit
    assert (turned != truth).mean() < 1e-3


@pytest.mark.parametrize("case", ["itk_nrrd", *NRRD_SPACES])
def test_nrrd_is_read_alike_without_pynrrd(workflow, monkeypatch, masks, scans, weights, tmp_path, case):
    """MONAI takes pynrrd where it is installed, which this package does not ask for, and ITK elsewhere."""
    monkeypatch.setattr("monai.data.image_reader.has_nrrd", False)
    workflow(("inference",), "infer", dataset_dir=str(scans[0]), checkpoint=str(weights), cases=case).run()
    ours, theirs = (nibabel.load(folder / f"{case}_mask.nii.gz") for folder in (tmp_path / "eval" / "images", masks))
    assert np.abs(ours.affine - theirs.affine).max() < 1e-4
    assert np.array_equal(np.asarray(ours.dataobj), np.asarray(theirs.dataobj))


def test_a_nrrd_in_the_space_of_the_scanner_is_refused(workflow, weights, tmp_path):
    """Which of its axes is left cannot be known; MONAI's readers and ITK's guess differently."""
    (tmp_path / "data" / "images").mkdir(parents=True)
    write_nrrd(tmp_path / "data" / "images" / "a.nrrd", scan(), RAS, "scanner-xyz")
    with pytest.raises(RuntimeError) as raised:
        workflow(("inference",), "infer", dataset_dir=str(tmp_path / "data"), checkpoint=str(weights)).run()
    assert "a.nrrd: found the space 'scanner-xyz', expected one that says where left is" in root_message(raised.value)


def test_the_mask_is_the_network_on_every_slice(masks, weights):
    """From the raw file by NumPy and torch alone: rows towards posterior, columns towards left."""
    network = COPLENet(features=(8, 16, 32, 64, 128), norm="group").eval()
    network.load_state_dict(torch.load(weights, weights_only=True))
    array = np.flip(scan(), axis=(0, 1)).transpose(1, 0, 2)  # R, A, S -> P, L, S
    with torch.no_grad():
        planes = torch.from_numpy(
            ((array.astype(np.float32) + 1400) / 1500).clip(0, 1).transpose(2, 0, 1)[:, None].copy()
        )
        expected = network(planes).argmax(1).permute(1, 2, 0).numpy()
    expected = np.flip(expected.transpose(1, 0, 2), axis=(0, 1))
    mask = np.asarray(nibabel.load(masks / "RAS_mask.nii.gz").dataobj)
    assert (mask != expected).mean() < 1e-3


def test_windows_of_large_planes_change_little(command, scans, weights, masks, tmp_path):
    """Planes above `roi_size` go through in overlapping windows; away from their edges the mask stays."""
    run = command(
        tmp_path,
        ("inference",),
        dataset_dir=scans[0],
        checkpoint=weights,
        cases="RAS",
        roi_size=[32, 32],
        **{"inferer#overlap": 0.5},
    )
    windows = np.asarray(nibabel.load(run.cwd / "eval" / "images" / "RAS_mask.nii.gz").dataobj)
    whole = np.asarray(nibabel.load(masks / "RAS_mask.nii.gz").dataobj)
    assert windows.shape == whole.shape
    assert (windows == whole).mean() > 0.7


@needs_shared
def test_dicom_nifti_and_nrrd_of_one_scan_give_one_mask(workflow, weights, tmp_path):
    """monai-deploy-app-sdk pull 559; model-zoo issue 508: a series folder without file endings."""
    series = SHARED / "data" / "dicom" / "monai_ct_dicom"
    reader = SimpleITK.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(series / "CT_DICOM")))
    image = SimpleITK.Cast(reader.Execute(), SimpleITK.sitkInt16)
    (tmp_path / "images").mkdir()
    for ending in ("nii.gz", "nrrd"):
        SimpleITK.WriteImage(image, str(tmp_path / "images" / f"{ending[:3]}_scan.{ending}"))
    workflow(("inference",), "infer", dataset_dir=str(tmp_path), checkpoint=str(weights)).run()
    dicom = {"dataset_dir": str(series), "image_pattern": "{case}", "cases": "CT_DICOM", "allow_gaps": True}
    workflow(("inference",), "infer", **dicom, checkpoint=str(weights)).run()
    found = {path.name: nibabel.load(path) for path in (tmp_path / "eval").rglob("*_mask.nii.gz")}
    assert sorted(found) == ["CT_DICOM_mask.nii.gz", "nii_scan_mask.nii.gz", "nrr_scan_mask.nii.gz"]
    arrays, affines = [], []
    for mask in found.values():
        assert mask.shape == image.GetSize()
        lps = orientation_ras_lps(mask.affine)
        assert np.allclose(lps[:3, 3], image.GetOrigin(), atol=1e-4)
        assert np.allclose(lps[:3, :3] / image.GetSpacing(), np.reshape(image.GetDirection(), (3, 3)), atol=1e-4)
        arrays.append(np.asarray(mask.dataobj))
        affines.append(mask.affine)
    assert all(np.array_equal(arrays[0], other) for other in arrays[1:])
    assert all(np.allclose(affines[0], other, atol=1e-4) for other in affines[1:])
