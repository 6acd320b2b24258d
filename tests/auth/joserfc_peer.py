"""Signs and verifies with `joserfc`, for `mcp-tests jose`. The first line of its input has the rules and the keys. Each further line is an array of
questions, and is answered by a line with an array of answers, in the same order."""

import base64
import hashlib
import json
import sys
import warnings

from joserfc import jws, jwt
from joserfc.jwk import import_key
from joserfc.jws import JWSRegistry

# The old name of Ed25519 is what most servers have.
warnings.simplefilter("ignore")

KINDS = {"ES256": ("EC", "P-256"), "ES384": ("EC", "P-384"), "EdDSA": ("OKP", "Ed25519"), "Ed25519": ("OKP", "Ed25519")}


class Registry(JWSRegistry):
    """Headers with a key of RSA are longer than the limit of the library."""

    max_header_length = 16384


class Peer:
    """The rules, and the keys."""

    def __init__(self, rules):
        self.rules = rules
        self.registry = Registry(algorithms=rules["algs"], strict_check_header=False)
        self.keys = [(key.get("kid"), import_key(key)) for key in rules["keys"]]
        self.private = {kid: import_key(pem, kind_of(pem, rules, kid)) for kid, pem in rules["private"].items()}
        self.claims = jwt.JWTClaimsRegistry(
            now=rules["now"],
            leeway=rules["leeway"],
            iss={"essential": True, "value": rules["issuer"]},
            aud={"essential": True, "value": rules["resource"]},
            exp={"essential": True},
        )

    def find(self, obj):
        """Returns the key for a header: with its name, or the only one of its kind."""
        header = obj.headers()
        kind = KINDS.get(header["alg"], ("RSA", None))
        fitting = [(kid, key) for kid, key in self.keys if (key.key_type, key.get("crv")) == kind]
        if "kid" in header:
            fitting = [(kid, key) for kid, key in fitting if kid == header["kid"]]
        check(len(fitting) == 1, "key")
        return fitting[0][1]

    def token(self, text):
        token = jwt.decode(text, self.find, registry=self.registry)
        typ = token.header.get("typ")
        check(isinstance(typ, str) and typ.lower().removeprefix("application/") == "at+jwt", "typ")
        self.claims.validate(token.claims)
        return {name: token.claims.get(name) for name in ("sub", "client_id", "scope")}

    def proof(self, text, access_token, method, url, now, nonce):
        keys = []

        def embedded(obj):
            key = import_key(obj.headers()["jwk"])
            check(key.key_type != "oct" and not key.is_private, "jwk")
            keys.append(key)
            return key

        token = jwt.decode(text, embedded, registry=self.registry)
        typ = token.header.get("typ")
        check(isinstance(typ, str) and typ.lower().removeprefix("application/") == "dpop+jwt", "typ")
        claims, window = token.claims, self.rules["window"]
        check(isinstance(claims.get("jti"), str) and claims["jti"], "jti")
        check(claims.get("htm") == method, "htm")
        check(claims.get("htu") == url, "htu")
        issued = claims.get("iat")
        check(type(issued) in (int, float) and now - issued < window and issued - now <= window, "iat")
        if access_token is not None:
            check(claims.get("ath") == digest(access_token), "ath")
        if nonce is not None:
            check(claims.get("nonce") == nonce, "nonce")
        return {"jkt": keys[0].thumbprint()}

    def assertion(self, text, alg, jwk, client_id, issuer, now):
        token = jwt.decode(text, import_key(jwk), registry=Registry(algorithms=[alg], strict_check_header=False))
        check(token.header.get("typ") == "JWT", "typ")
        same = {"essential": True, "value": client_id}
        there = {"essential": True}
        of = jwt.JWTClaimsRegistry(now=now, iss=same, sub=same, aud={"essential": True, "value": issuer}, exp=there, iat=there, jti=there)
        of.validate(token.claims)
        return {"kid": token.header.get("kid"), "jti": token.claims["jti"]}

    def sign(self, kid, header, payload):
        return {"token": jwt.encode(header, payload, self.private[kid], registry=self.registry, default_type=None)}

    def thumbprint(self, jwk):
        return {"jkt": import_key(jwk).thumbprint()}

    def answer(self, question):
        kind, *parameters = question
        try:
            return [True, getattr(self, kind)(*parameters)]
        except Exception as why:
            return [False, f"{type(why).__name__}: {why}"]


def kind_of(pem, rules, kid):
    return next(key["kty"] for key in rules["keys"] + rules["strangers"] if key["kid"] == kid)


def digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def check(holds, what):
    if not holds:
        raise ValueError(what)


def main():
    peer = None
    for line in sys.stdin:
        asked = json.loads(line)
        if isinstance(asked, dict):
            peer = Peer(asked)
        else:
            print(json.dumps([peer.answer(question) for question in asked]), flush=True)


main()
