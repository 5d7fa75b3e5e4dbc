"""Secrets in the shapes that their makers gave them. None of them opens anything: the letters are made here."""

import base64
import hashlib
import json
from collections.abc import Iterator

__all__ = ["planted"]


def _letters(seed: str, length: int, alphabet: str) -> str:
    digest = b"".join(hashlib.sha256(f"{seed}{i}".encode()).digest() for i in range(length // 32 + 1))
    return "".join(alphabet[byte % len(alphabet)] for byte in digest[:length])


_MIXED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_HEX = "0123456789abcdef"
_SMALL = "abcdefghijklmnopqrstuvwxyz0123456789"
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def planted(salt: str = "") -> dict[str, tuple[str, str]]:
    """By format: a text with the secret in it, as one would meet it, and the part that must never be seen."""
    return {name: (text, secret) for name, text, secret in _all(salt)}


def _all(salt: str) -> Iterator[tuple[str, str, str]]:
    def of(name: str, length: int, alphabet: str = _MIXED) -> str:
        return _letters(name + salt, length, alphabet)

    def bare(name: str, secret: str) -> tuple[str, str, str]:
        return name, f"use {secret} for it", secret

    yield bare("aws key id", "AKIA" + of("aws", 16, _BASE32))
    secret = of("aws2", 40)
    yield "aws secret key", f"aws_secret_access_key = {secret}", secret
    yield bare("github", "ghp_" + of("gh", 36))
    yield bare("github fine", "github_pat_" + of("ghf", 22) + "_" + of("ghf2", 59))
    yield bare("gitlab", "glpat-" + of("gl", 20))
    yield bare("slack bot", "xoxb-" + of("sl", 11, "0123456789") + "-" + of("sl2", 24))
    secret = "T0" + of("slw", 9) + "/B0" + of("slw2", 9) + "/" + of("slw3", 24)
    yield "slack webhook", f"post to https://hooks.slack.com/services/{secret}", secret
    yield bare("stripe", "sk_live_" + of("st", 24))
    yield bare("stripe webhook", "whsec_" + of("wh", 32))
    yield bare("anthropic", "sk-ant-api03-" + of("an", 93) + "AA")
    yield bare("openai", "sk-proj-" + of("oa", 74))
    yield bare("openai old", "sk-" + of("oo", 20) + "T3BlbkFJ" + of("oo2", 20))
    yield bare("google", "AIza" + of("go", 35))
    yield bare("google oauth", "GOCSPX-" + of("gc", 28))
    yield bare("npm", "npm_" + of("np", 36))
    yield bare("pypi", "pypi-AgEIcHlwaS5vcmc" + of("py", 100))
    yield bare("hugging face", "hf_" + of("hf", 34))
    yield bare("digitalocean", "dop_v1_" + of("do", 64, _HEX))
    yield bare("sendgrid", "SG." + of("sg", 22) + "." + of("sg2", 43))
    yield bare("twilio", "SK" + of("tw", 32, _HEX))
    secret = "AA" + of("tg", 33)
    yield "telegram", f"bot 123456789:{secret}", secret
    yield bare("discord", "MT" + of("dc", 22) + "." + of("dc2", 6) + "." + of("dc3", 38))
    yield bare("shopify", "shpat_" + of("sh", 32, _HEX))
    yield bare("databricks", "dapi" + of("db", 32, _HEX))
    yield bare("linear", "lin_api_" + of("li", 40))
    yield bare("notion", "ntn_" + of("no", 46))
    yield bare("vault", "hvs." + of("hv", 90))
    yield bare("tailscale", "tskey-auth-" + of("ts", 12) + "-" + of("ts2", 32))
    yield bare("age", "AGE-SECRET-KEY-1" + of("ag", 58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"))
    yield bare("grafana", "glsa_" + of("gr", 32) + "_" + of("gr2", 8, _HEX))
    yield bare("docker", "dckr_pat_" + of("dk", 27))
    yield bare("jwt", ".".join((_segment({"alg": "HS256", "typ": "JWT"}), _segment({"sub": of("j", 9)}), of("jw", 43))))
    body = "\n".join(of(f"pem{i}", 64) for i in range(12))
    yield "pem", f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----", body.split("\n")[3]
    body = "\n".join(of(f"ssh{i}", 70) for i in range(5))
    key = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----"
    yield "openssh", f"the key:\n{key}\nand so on", body.split("\n")[0]
    secret = of("url", 12)
    yield "password in an address", f"clone https://me:{secret}@example.org/x.git", secret
    secret = of("url2", 12)
    yield "token in an address", f"clone https://{secret}@example.org/x.git", secret
    secret = of("url3", 12)
    yield "token in the place of a name", f"clone https://{secret}:x-oauth-basic@example.org/x.git", secret
    secret = of("url4", 12)
    yield (
        "password in an address within an address",
        f"see https://a.b/?to=https%3A%2F%2Fme%3A{secret}%40c.d%2F",
        secret,
    )
    secret = of("url5", 12)
    yield (
        "token in an address within an address",
        f"see https://a.b/?to=https%3A%2F%2Fc.d%2F%3Ftoken%3D{secret}",
        secret,
    )
    secret = of("url6", 6)
    yield "password in a query", f"see https://a.b/?user=me&pass={secret}&x=1", secret
    secret = of("pg", 12)
    yield "password of a database", f"DATABASE_URL=postgres://app:{secret}@localhost:5432/db", secret
    secret = of("hd", 30)
    yield "bearer", f"curl -H 'Authorization: Bearer {secret}' https://example.org", secret
    secret = base64.b64encode(f"me:{of('ba', 12)}".encode()).decode()
    yield "basic", f"Authorization: Basic {secret}", secret
    secret = of("ck", 32)
    yield "cookie", f"Cookie: session={secret}; theme=dark", secret
    secret = of("env", 14, _SMALL)
    yield "variable", f"export DB_PASSWORD={secret} && run", secret
    secret = of("opt", 14)
    yield "option", f"mysql --password {secret} -h localhost", secret
    secret = of("js", 18)
    yield "json", json.dumps({"client_secret": secret, "n": 1}), secret
    secret = of("az", 88)
    yield "azure", f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={secret};EndpointSuffix=y", secret
    secret = of("sig", 44)
    yield "signed address", f"https://x.blob.example.net/c?sv=2024&sig={secret}", secret
    secret = of("cu", 16)
    yield "curl", f"curl -u admin:{secret} http://localhost/", secret


def _segment(statement: dict[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(statement).encode()).decode().rstrip("=")
