"""The troubleshooting page: what it tells users to do is done here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
THREADS_AT_EXIT = Path(__file__).parent / "threads_at_exit"


def test_the_index_leads_there():
    assert "(troubleshooting.md)" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_what_a_user_searches_for_is_on_the_page():
    for words in ("terminate called without an active exception", "SIGABRT", "exitcode  : -6", "torchrun"):
        assert words in PAGE


def test_the_way_out_leaves_no_thread_that_could_abort(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    script = tmp_path / "train.py"
    script.write_text(code, encoding="utf-8")
    line = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(script)]
    paths = os.pathsep.join([str(THREADS_AT_EXIT), str(ROOT)])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, env=environment)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    for rank in (0, 1):
        assert f"rank {rank} is done" in done.stdout
    assert "threads of gloo at exit" not in output
