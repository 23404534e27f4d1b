"""The documentation site: `sphinx-build -W docs OUTPUT` makes it without a network, and it can be searched from disk."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from _site.drawings import drawings_inline  # noqa: E402
from _site.links import links_of_site  # noqa: E402
from _site.reference import write_reference  # noqa: E402

project = "monai_margincal"
copyright = "the authors of monai_margincal, Apache licence 2.0"
release = version = installed_version("monai-margincal")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_site"]
html_theme = "furo"
# the theme's own underlines modules as if they were links
pygments_dark_style = "github-dark"
html_title = "monai_margincal"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
# in docstrings single backticks are names, as in Markdown
default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

write_reference(HERE / "reference")


def _keep_stars(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Shapes such as (B, C, *spatial) are no emphasis."""
    lines[:] = [re.sub(r"(?<=[\s(,])\*(?=\w)", r"\\*", line) for line in lines]


def _lead_to_pages(app: Any, name: str, source: list[str]) -> None:
    page = HERE / f"{name}.md"
    source[0] = links_of_site(drawings_inline(source[0], page), page, page)


def setup(app: Any) -> None:
    app.connect("source-read", _lead_to_pages)
    # after napoleon, whose priority is 500
    app.connect("autodoc-process-docstring", _keep_stars, priority=900)
