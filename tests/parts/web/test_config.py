"""`[api]` with the listener with TLS."""

import re
from pathlib import Path

import pytest

from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError
from synapsed.parts.loading import config_model


def loaded(folder: Path, text: str) -> object:
    paths = Paths.from_environ({"SYNAPSED_HOME": str(folder), "HOME": str(folder)})
    paths.config.mkdir()
    paths.config_file.write_text(text)
    return load_config(paths, config_model())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[api]\ntls_listen = "example.org:443"\n', r":2: api.tls_listen: .*no IP address"),
        ('[api]\ntls_listen = "0.0.0.0"\n', r":2: api.tls_listen: .*address and a port"),
        ('[api]\ntls_listen = "0.0.0.0:8443"\ntls_cert = "/x"\n', r"both of tls_cert and tls_key, or neither"),
        ('[api]\ntls_cert = "/x"\ntls_key = "/y"\n', r"must have tls_listen"),
        ('[api]\ntls_listen = "0.0.0.0:8443"\ntls_cert = "x"\ntls_key = "/y"\n', r":3: api.tls_cert: .*whole path"),
        ('[api]\ntls_listen = "0.0.0.0:8090"\n', r"another port in tls_listen"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)
    assert re.search(message, caught.value.message), caught.value.message
