"""Errors in the part's section."""

from pathlib import Path

import pytest

from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError
from synapsed.parts.loading import config_model


def test_its_section_is_no_key_of_an_agent(tmp_path: Path) -> None:
    """And not said to be a part's that is not installed: it is."""
    paths = Paths.from_environ({"SYNAPSED_HOME": str(tmp_path)})
    paths.config.mkdir(parents=True)
    paths.config_file.write_text("[agents.x]\nhosts = 1\n")
    with pytest.raises(ConfigError, match=r"unknown key 'agents\.x\.hosts'"):
        load_config(paths, config_model())
