"""Reads secrets of the configuration: each in a file that only its owner can read, or in a variable of the daemon."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from synapsed.errors import InvalidRequest
from synapsed.outgoing import signing

SECRET_MAX = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPlaces:
    """The places of secrets: variables of `environ`, and files, relative to `config`, the configuration's folder."""

    environ: Mapping[str, str]
    config: Path

    def read(self, *, file: str | None, env: str | None = None) -> tuple[str, str]:
        """Returns the place of the secret, and the secret, which is not empty. Raises InvalidRequest, which names the
        place and never the content."""
        if env is not None:
            where, text = f"the variable {env}", self.environ.get(env)
            if text is None:
                raise InvalidRequest(f"{where} is not set")
        else:
            path = self.config / Path(file or "").expanduser()
            where, text = str(path), _contents(path)
        if not text.strip():
            raise InvalidRequest(f"{where} is empty")
        return where, text.strip()

    def signing_key(self, *, file: str | None, env: str | None = None) -> bytes:
        """Returns the key of a secret `whsec_…`. Raises InvalidRequest as `read` does."""
        where, text = self.read(file=file, env=env)
        try:
            return signing.secret_of(text)
        except ValueError as error:
            raise InvalidRequest(f"{where}: {error}") from None


def _contents(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            raise InvalidRequest(f"{path} can be read by others: chmod 600 {path}")
        with path.open(encoding="utf-8") as file:
            return file.read(SECRET_MAX)
    except OSError as error:
        raise InvalidRequest(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is not text") from None
