"""Fill a page's template, which lies next to the module that knows its content and extends ``pages/base.html``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ..palette import PAGE
from .numbers import readable_share, three_figures

__all__ = ["is_page", "render"]

_PACKAGE = __name__.partition(".")[0]


def render(template: str, **content: Any) -> str:
    """Fill a template of this package.

    All text in ``content`` is escaped; only `markupsafe.Markup`, such as a chart, goes in as it is. The filters
    ``readable_share`` and ``three_figures`` format numbers. The skeleton needs ``title`` and ``kind``, one word by which
    `is_page` recognises the page.

    Args:
        template: its path from the package's root, for example ``"statistics/report/page.html"``.
        **content: the variables of the template.

    Raises:
        jinja2.TemplateNotFound: the package has no such template.
        jinja2.UndefinedError: the template asks for something that is not in ``content``.

    Example:
        >>> page = render("pages/base.html", kind="example", title="Tom & Jerry")
        >>> "<title>Tom &amp; Jerry</title>" in page
        True
    """
    return _environment().get_template(template).render(**content)


def is_page(path: Path, kind: str) -> bool:
    """Whether a file is a page of this kind, which may be replaced by a newer one.

    Args:
        path: an existing file.
        kind: the word that was given to `render`.
    """
    # as base.html begins, in any version of it
    mark = f"<!DOCTYPE html>\n<!-- monai_margincal {kind} -->\n".encode()
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "readable_share": readable_share,
        "three_figures": three_figures,
    }
    environment.globals |= {
        "light": {name: light for name, (light, _) in PAGE.items()},
        "dark": {name: dark for name, (_, dark) in PAGE.items()},
    }
    # a report's data stay in the order in which they are written to JSON
    environment.policies["json.dumps_kwargs"] = {}
    return environment
