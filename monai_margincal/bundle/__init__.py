"""What a bundle's configurations call at run time: where bundles lie, unknown keys, switches, one-line errors."""

from __future__ import annotations

from .error_line import errors_in_one_line
from .keys import unused_keys
from .locate import bundle_dir
from .prepare_run import prepare_run
from .switches import switches
from .unknown_flags import refuse_unknown_keys

__all__ = ["bundle_dir", "errors_in_one_line", "prepare_run", "refuse_unknown_keys", "switches", "unused_keys"]
