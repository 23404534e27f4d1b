"""Damaged copies of small files of every format, and what an established reader makes of one."""

from __future__ import annotations

import bz2
import gzip
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pydicom
import SimpleITK as sitk
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset

VOXELS = np.random.default_rng(5).choice([0, 0, 0, 1, 2, 7], (11, 9, 6)).astype(np.int16)
#: file names and contents; the first is the one to open
Files = dict[str, bytes]


def nifti(version: int, packed: bool, scaled: bool = False) -> Files:
    image: Any = (nib.Nifti1Image, nib.Nifti2Image)[version - 1](VOXELS, np.diag([1.0, 2, 3, 1]))
    content = bytearray(image.to_bytes())
    if scaled:  # slope 2, intercept 1, as nibabel does not write them for integers
        content[112:120] = struct.pack("<ff", 2.0, 1.0)
    return {"a.nii.gz": gzip.compress(content, mtime=0)} if packed else {"a.nii": bytes(content)}


def by_itk(folder: Path, name: str, packed: bool = False) -> Files:
    image = sitk.GetImageFromArray(VOXELS.transpose())
    image.SetSpacing((0.5, 0.6, 2.0))
    sitk.WriteImage(image, str(folder / name), packed)
    parts = sorted(folder.iterdir(), key=lambda part: part.name != name)
    return {part.name: part.read_bytes() for part in parts}


def slices(raw: Callable[[np.ndarray], bytes]) -> Files:
    return {f"s{number}.raw": raw(VOXELS[:, :, number]) for number in range(VOXELS.shape[2])}


def raw(array: np.ndarray) -> bytes:
    return array.astype("<i2").tobytes(order="F")


def text(array: np.ndarray) -> bytes:
    return "\n".join(map(str, array.ravel(order="F"))).encode() + b"\n"


def metaimage(target: str, files: Files, body: bytes = b"", extra: str = "") -> Files:
    head = (
        f"ObjectType = Image\nNDims = 3\n{extra}ElementSpacing = 0.5 0.6 2\nDimSize = 11 9 6\nElementType = MET_SHORT\n"
        f"ElementDataFile = {target}\n"
    )
    return {"a.mha" if target == "LOCAL" else "a.mhd": head.encode() + body, **files}


def nrrd(encoding: str, body: bytes = b"", files: Files | None = None, extra: str = "") -> Files:
    head = (
        "NRRD0004\ntype: short\ndimension: 3\nspace: left-posterior-superior\nsizes: 11 9 6\n"
        "space directions: (0.5,0,0) (0,0.6,0) (0,0,2)\nkinds: domain domain domain\nendian: little\n"
        f"encoding: {encoding}\nspace origin: (0,0,0)\n{extra}"
    )
    return {
        "a.nrrd" if files is None else "a.nhdr": head.encode() + (b"\n" if files is None else b"") + body,
        **(files or {}),
    }


def png() -> Files:
    import io

    stream = io.BytesIO()
    Image.fromarray(np.repeat(VOXELS[:, :, 0].astype(np.uint8), 7, axis=0)).save(stream, "png")
    return {"a.png": stream.getvalue()}


def segmentation(folder: Path) -> Files:
    """A binary DICOM SEG of the values 1 and 2, one frame per slice and segment."""
    image = Dataset()
    image.SOPClassUID, image.SOPInstanceUID = pydicom.uid.SegmentationStorage, "1.2.3"
    image.StudyInstanceUID, image.SeriesInstanceUID, image.Modality = "1.2.1", "1.2.2", "SEG"
    image.SegmentationType, image.PhotometricInterpretation = "BINARY", "MONOCHROME2"
    image.BitsAllocated, image.BitsStored, image.HighBit, image.PixelRepresentation = 1, 1, 0, 0
    image.Columns, image.Rows, image.SamplesPerPixel = *VOXELS.shape[:2], 1
    shared, measures, orientation = Dataset(), Dataset(), Dataset()
    measures.PixelSpacing, measures.SliceThickness, measures.SpacingBetweenSlices = [0.6, 0.5], 2.0, 2.0
    orientation.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = [measures], [orientation]
    image.SharedFunctionalGroupsSequence = [shared]
    image.SegmentSequence, groups, bits = [], [], []
    for segment in (1, 2):
        described = Dataset()
        described.SegmentNumber, described.SegmentLabel = segment, f"segment {segment}"
        image.SegmentSequence.append(described)
        for number in range(VOXELS.shape[2]):
            group, identity, position = Dataset(), Dataset(), Dataset()
            identity.ReferencedSegmentNumber = segment
            position.ImagePositionPatient = [0, 0, 2 * number]
            group.SegmentIdentificationSequence, group.PlanePositionSequence = [identity], [position]
            groups.append(group)
            bits.append(VOXELS[:, :, number].T.ravel() == segment)
    image.PerFrameFunctionalGroupsSequence, image.NumberOfFrames = groups, len(groups)
    packed = np.packbits(np.concatenate(bits), bitorder="little").tobytes()
    image.PixelData = packed + b"\0" * (len(packed) % 2)
    image.file_meta = FileMetaDataset()
    image.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    image.save_as(folder / "a.dcm", enforce_file_format=True)
    return {"a.dcm": (folder / "a.dcm").read_bytes()}


NAMES = "\n".join(slices(raw))
TEXT = {
    "mha": lambda folder: by_itk(folder, "a.mha"),
    "packed mha": lambda folder: by_itk(folder, "a.mha", packed=True),
    "packed mhd": lambda folder: by_itk(folder, "a.mhd", packed=True),
    "text mha": lambda folder: metaimage("LOCAL", {}, text(VOXELS), "BinaryData = False\n"),
    "skipping mhd": lambda folder: metaimage(
        "v.raw", {"v.raw": b"XXXX" + raw(VOXELS)}, extra="HeaderSize = 4\nBinaryData = True\n"
    ),
    "mhd list": lambda folder: metaimage(f"LIST\n{NAMES}", slices(raw), extra="BinaryData = True\n"),
    "mhd list of packed": lambda folder: metaimage(
        f"LIST\n{NAMES}",
        slices(lambda part: zlib.compress(raw(part))),
        extra="BinaryData = True\nCompressedData = True\n",
    ),
    "mhd pattern": lambda folder: metaimage("s%d.raw 0 5 1", slices(raw), extra="BinaryData = True\n"),
    "nrrd": lambda folder: by_itk(folder, "a.nrrd"),
    "packed nrrd": lambda folder: by_itk(folder, "a.nrrd", packed=True),
    "bzip2 nrrd": lambda folder: nrrd("bzip2", bz2.compress(raw(VOXELS))),
    "text nrrd": lambda folder: nrrd("ascii", text(VOXELS)),
    "skipping nrrd": lambda folder: nrrd("raw", b"one line\nXXXX" + raw(VOXELS), extra="line skip: 1\nbyte skip: 4\n"),
    "packed nhdr": lambda folder: nrrd("gzip", files={"v.gz": gzip.compress(raw(VOXELS))}, extra="data file: v.gz\n"),
    "nhdr list": lambda folder: nrrd("raw", files=slices(raw), extra=f"data file: LIST\n{NAMES}\n"),
    "nhdr pattern": lambda folder: nrrd("raw", files=slices(raw), extra="data file: s%d.raw 0 5 1\n"),
}
#: kind of file -> (its files, written in an empty folder; bytes of the header, which most damage hits)
KINDS: dict[str, tuple[Callable[[Path], Files], int]] = {
    "nifti-1": (lambda folder: nifti(1, packed=False), 352),
    "nifti-2": (lambda folder: nifti(2, packed=False), 544),
    "packed nifti": (lambda folder: nifti(1, packed=True), 40),
    "scaled nifti": (lambda folder: nifti(1, packed=True, scaled=True), 40),
    **{name: (make, 330) for name, make in TEXT.items()},
    "png": (lambda folder: png(), 80),
    "seg": (segmentation, 4000),
}


def mutants(files: Files, header: int, count: int, seed: int) -> Iterator[Files]:
    """Bytes set, flipped, copied and removed, mostly in the header, truncations at every kind of place, lines lost or doubled."""
    rng = random.Random(seed)
    for number in range(count):
        names = list(files)
        name = names[0] if rng.random() < 0.8 else rng.choice(names)
        yield {**files, name: _damaged(files[name], header, number % 7, rng)}


def _damaged(content: bytes, header: int, kind: int, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    if kind == 0:
        return content[: rng.randrange(len(content))]
    if kind == 5:
        lines = content.split(b"\n")
        at = rng.randrange(min(len(lines), 25))
        lines[at : at + 1] = rng.choice([[], [lines[at]] * 2, [lines[at], b""], [rng.choice(lines[:25])]])
        return b"\n".join(lines)
    if kind == 6:  # a number of a text, or what may be one
        digits = [at for at, byte in enumerate(content[:header]) if chr(byte).isdigit()]
        if digits:
            damaged[rng.choice(digits)] = ord(rng.choice("0123456789-. "))
            return bytes(damaged)
        return content + rng.randbytes(rng.randrange(1, 40))
    if kind == 4:
        at = rng.randrange(len(damaged))
        del damaged[at : at + rng.randrange(1, 9)]
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(min(header, len(damaged))) if rng.random() < 0.85 else rng.randrange(len(damaged))
        if kind == 1:
            damaged[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            damaged[at] = rng.choice([0, 1, 2, 4, 8, 16, 127, 128, 255])
        else:
            width = rng.choice([2, 4, 8])
            damaged[at : at + width] = rng.choice([b"\xff", b"\0", b"\x7f"]) * width
    return bytes(damaged)


def write(folder: Path, files: Files) -> Path:
    """Write the files into a folder, and give the one to open."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder / next(iter(files))
