"""What the demos of both bundles do with a bundle's own configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...samples import sample_dir


def demo_workflow(bundle: str, name: str, samples: str, **overrides: Any) -> Any:
    """Prepare a configuration of a shipped bundle as `python -m monai.bundle run` does.

    Args:
        bundle: the bundle's name.
        name: the configuration, "train" or "inference".
        samples: the shipped data set.
        overrides: keys of the configuration.
    """
    from monai.bundle import ConfigWorkflow

    from ...bundle import bundle_dir

    root = Path(bundle_dir(bundle))
    workflow = ConfigWorkflow(
        config_file=str(root / "configs" / f"{name}.json"),
        meta_file=str(root / "configs" / "metadata.json"),
        logging_file=False,
        workflow_type=name,
        bundle_root=str(root),
        dataset_dir=sample_dir(samples),
        **overrides,
    )
    workflow.initialize()
    return workflow


def run_training(workflow: Any, steps: int) -> None:
    """Run a training with a bar that shows the loss; no bar when the output is not a terminal."""
    from ignite.engine import Events
    from monai.handlers import from_engine
    from tqdm import tqdm

    trainer = workflow.trainer
    loss_of = from_engine("loss", first=True)
    with tqdm(total=steps, unit="step", disable=None) as bar:

        @trainer.on(Events.ITERATION_COMPLETED)
        def show(engine: Any) -> None:
            bar.set_postfix(loss=f"{float(loss_of(engine.state.output)):.3f}", refresh=False)
            bar.update()

        workflow.run()
    workflow.finalize()
