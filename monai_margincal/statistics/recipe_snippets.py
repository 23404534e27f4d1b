"""The recipe for given counts, as a piece of a training script and as a piece of a bundle's configuration."""

from __future__ import annotations

import json
import pprint
import textwrap
import warnings
from typing import Any

from ..counting.class_counts import ClassCounts
from ..margins import class_margins
from .recipe import DECISION, Recipe, rarest_class, recipe_for

__all__ = ["chosen_recipe", "how_counted"]

_DECISION_FILE = "models/decision.json"
_DEFAULTS = {"tau": 1.0, "upsilon": 1.0, "normalization": "sum"}


def how_counted(counts: ClassCounts) -> str:
    """What the counts are of, by their source: "raw counts", "counts after sampling", or "counts" where that is not known.

    Example:
        >>> [how_counted(ClassCounts([9, 1], source=source)) for source in ("raw label files", "after Compose(...)", None)]
        ['raw counts', 'counts after sampling', 'counts']
    """
    parts = (counts.source or "").split("; ")
    if all(part.startswith("raw ") for part in parts):
        return "raw counts"
    return "counts after sampling" if any(part.startswith("after ") for part in parts) else "counts"


def chosen_recipe(
    counts: ClassCounts,
    seen: ClassCounts | None = None,
    tau: float = 1.0,
    upsilon: float = 1.0,
    normalization: str = "sum",
) -> dict[str, Any]:
    """The recipe for a data set with its two snippets.

    Args:
        counts: of the label files: the share of their rarest class chooses.
        seen: of what the network sees; if given, these go into the loss.
        tau: scale of the margins.
        upsilon: see `monai_margincal.margins.class_margins`.
        normalization: see `monai_margincal.margins.class_margins`.

    Returns:
        in JSON types: ``case``, ``rarest`` and ``share`` (the class and its fraction of 1 that chose), ``chosen_by`` and
        ``counted`` (what chose, and what is in the loss: "raw counts", "counts after sampling" or "counts"; ``counted`` is None
        for a loss without counts), ``loss``, ``reason``, ``decision``, and ``python`` and ``bundle``, the text of the snippets.

    Raises:
        ValueError: there is no class but the first, or there are no margins for the counts.

    Example:
        >>> recipe = chosen_recipe(ClassCounts([990, 10], source="raw label files"))
        >>> recipe["case"], recipe["counted"]
        ('1 to 5 %', 'raw counts')
        >>> json.loads(recipe["bundle"])["loss"]["class_counts"]
        [990, 10]
    """
    label, share = rarest_class(counts)
    recipe = recipe_for(share)
    used = counts if seen is None else seen
    arguments: dict[str, Any] = {}
    if recipe.takes_counts:
        with warnings.catch_warnings():
            # who pastes the loss is warned of an absent class by the loss itself
            warnings.simplefilter("ignore", UserWarning)
            class_margins(used, tau, upsilon, normalization)  # type: ignore[arg-type]
        given = {"tau": tau, "upsilon": upsilon, "normalization": normalization}
        arguments["class_counts"] = used.counts.tolist()
        arguments.update({name: value for name, value in given.items() if value != _DEFAULTS[name]})
    arguments.update(recipe.arguments)
    counted = "counts after sampling" if seen is not None else how_counted(counts)
    return {
        "case": recipe.case,
        "rarest": label,
        "share": share,
        "chosen_by": how_counted(counts),
        "counted": counted if recipe.takes_counts else None,
        "loss": recipe.call,
        "reason": recipe.reason,
        "decision": DECISION,
        "python": _python(recipe, arguments, used, counted),
        "bundle": _bundle(recipe, arguments, used),
    }


def _python(recipe: Recipe, arguments: dict[str, Any], counts: ClassCounts, counted: str) -> str:
    module, _, name = recipe.loss.rpartition(".")
    ours = ["DecideClassd", "fit_class_offsets"]
    imports = [] if module == "monai_margincal" else [f"from {module} import {name}"]
    if module == "monai_margincal":
        ours.insert(1, name)
    comments = {"class_counts": f"  # {counted}"}
    lines = [
        "import torch",
        *imports,
        f"from monai_margincal import {', '.join(ours)}",
        "",
        f"loss_function = {name}(",
        *(
            line
            for key, value in arguments.items()
            for line in _argument(key, value, comments.get(key, "")).splitlines()
        ),
        ")",
        "",
        "# after training, on the validation cases: image (channels, ...), label (1, ...)",
        "with torch.no_grad():",
        '    cases = ((network(case["image"][None])[0], case["label"]) for case in validation_cases)',
        f"    offsets = fit_class_offsets(cases, num_classes={len(counts)}{_names(counts)})",
        'offsets.to_json("decision.json")',
        'decide = DecideClassd("pred", offsets)  # in place of AsDiscreted("pred", argmax=True)',
    ]
    return "\n".join(lines) + "\n"


def _names(counts: ClassCounts) -> str:
    return "" if counts.names is None else f", class_names={json.dumps(list(counts.names), ensure_ascii=False)}"


def _argument(name: str, value: Any, comment: str) -> str:
    """One argument on a line of its own, a long list on several."""
    text = json.dumps(value) if isinstance(value, str) else pprint.pformat(value, width=72, compact=True)
    head = f"    {name}="
    if "\n" not in text:
        return f"{head}{text},{comment}"
    inside = textwrap.indent(textwrap.dedent(" " + text[1:-1]), 8 * " ")
    return f"{head}[{comment}\n{inside},\n    ],"


def _bundle(recipe: Recipe, arguments: dict[str, Any], counts: ClassCounts) -> str:
    decisions = "monai_margincal.decisions"
    content = {
        "loss": {"_target_": recipe.loss, **arguments},
        "fit_offsets": {
            "_target_": f"{decisions}.ClassOffsetsHandler",
            "path": _DECISION_FILE,
            "num_classes": len(counts),
            **({} if counts.names is None else {"class_names": list(counts.names)}),
        },
        "decide": {"_target_": f"{decisions}.DecideClassd", "keys": "pred", "offsets": _DECISION_FILE},
    }
    parts = []
    for key, component in content.items():
        inside = ",\n".join(f'    "{name}": {json.dumps(value)}' for name, value in component.items())
        parts.append(f'  "{key}": {{\n{inside}\n  }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
