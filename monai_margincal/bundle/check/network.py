"""The network of a configuration, run once: whether it takes and returns what the metadata say."""

from __future__ import annotations

from monai.bundle import verify_net_in_out

from ...errors import root_message
from ...findings import Finding
from .configs import Workflow, config_file


def check_network(workflow: Workflow) -> list[Finding]:
    """Run ``network_def`` on the CPU with an input of the shape and type that ``metadata.json`` gives.

    Args:
        workflow: the configuration, with overrides.

    Returns:
        an error if the network fails or gives another shape or type; an info if the configuration has no ``network_def``.
    """
    if "network_def" not in workflow.parser():
        missing = "no network_def: input and output are not verified"
        return [Finding.in_file("info", workflow.place, missing, "network_def")]
    try:
        verify_net_in_out(
            net_id="network_def",
            meta_file=str(config_file(workflow.root, "metadata")),
            config_file=[str(path) for path in workflow.files],
            device="cpu",
            **{"bundle_root": str(workflow.root), **workflow.overrides},
        )
    except Exception as error:  # a network may fail in any way
        message = f"network_def: {root_message(error)}"
        return [Finding.in_file("error", workflow.place, message, "a network as metadata.json describes it")]
    return []
