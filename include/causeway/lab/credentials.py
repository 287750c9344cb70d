"""Users of a cluster with SASL: passwords made here, and the form in which the broker gets them."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets

MECHANISM = "SCRAM-SHA-512"
ADMIN = "admin"
_ITERATIONS = 4096


def make_password() -> str:
    return secrets.token_urlsafe(18)


def scram_record(user: str, password: str) -> str:
    """StorageTool's `--add-scram`, with the salted password: the plain one would show in the process list."""
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ITERATIONS)
    return (
        f'{MECHANISM}=[name="{user}",iterations={_ITERATIONS},'
        f'salt="{base64.b64encode(salt).decode()}",saltedpassword="{base64.b64encode(salted).decode()}"]'
    )


def jaas_line(user: str, password: str) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{user}" password="{password}";'
