"""A schema that is one revision further than this one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reasoning_store.ledger.database import foreign_objects, schema_version


def second_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let there be one revision more, of one table and one column, which fails at will."""
    scripts = tmp_path / "scripts"
    shutil.copytree(
        schema_version.scripts_folder(), scripts, ignore=shutil.ignore_patterns("__pycache__")
    )
    last = schema_version.REVISIONS[-1]
    new = f"{int(last) + 1:04}"
    (scripts / "versions" / f"{new}_test.py").write_text(
        "import os\n"
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        f"revision, down_revision = '{new}', '{last}'\n"
        "branch_labels = depends_on = None\n"
        "def upgrade():\n"
        "    op.add_column('sessions', sa.Column('extra', sa.Text))\n"
        "    op.create_table('more', sa.Column('x', sa.Integer))\n"
        "    if os.environ.get('FAIL_MIGRATION'):\n"
        "        raise RuntimeError('killed here')\n"
        "def downgrade():\n"
        "    op.drop_table('more')\n"
        "    op.drop_column('sessions', 'extra')\n"
    )
    monkeypatch.setattr(schema_version, "scripts_folder", lambda: scripts)
    monkeypatch.setattr(schema_version, "REVISIONS", (*schema_version.REVISIONS, new))
    monkeypatch.setattr(foreign_objects, "OURS", foreign_objects.OURS | {"more"})
    return scripts
