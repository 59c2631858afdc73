# Decrypts a Web Push message (RFC 8291) from standard input: decrypt.py PRIVATE_KEY AUTH, both in base64url.
import base64
import sys

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


key = ec.derive_private_key(int.from_bytes(decode(sys.argv[1]), "big"), ec.SECP256R1())
plain = http_ece.decrypt(sys.stdin.buffer.read(), private_key=key, auth_secret=decode(sys.argv[2]), version="aes128gcm")
sys.stdout.buffer.write(plain)
