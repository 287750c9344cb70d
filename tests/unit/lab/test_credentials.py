from __future__ import annotations

import base64
import hashlib
import re

from causeway.lab.credentials import make_password, scram_record


def test_the_broker_gets_a_salted_password_and_never_the_plain_one() -> None:
    password = make_password()
    record = scram_record("mirror", password)
    assert password not in record
    salt, salted = (base64.b64decode(part) for part in re.findall(r'salt(?:edpassword)?="([^"]+)"', record))
    assert salted == hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 4096)


def test_no_two_users_share_a_password() -> None:
    assert len({make_password() for _ in range(100)}) == 100
