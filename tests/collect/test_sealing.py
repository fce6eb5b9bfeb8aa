"""Sealed submissions: the published vectors of RFC 9180, and what a relay cannot do with them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from deniable.collect import sealing, wire
from deniable.collect.sealing import CannotOpen, CollectorKey, derived_key, point, seal, sealed, split, unseal
from deniable.errors import SpecError
from deniable.surveys import Survey
from deniable.surveys.terms import Relay
from tests.collect.surveys import daily
from tests.web.test_node import WEB, run, tool

# RFC 9180, appendix A.3.1: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, base mode, first encryption.
IKM_E = bytes.fromhex("4270e54ffd08d79d5928020af4686d8f6b7d35dbe470265f1f5aa22816ce860e")
SK_E = 0x4995788EF4B9D6132B249CE59A77281493EB39AF373D236A1FE415CB0C2D7BEB
SK_R = 0xF3CE7FDAE57E1A310D87F1EBBDE6F328BE0A99CDBCADF4D6589CF29DE4B8FFD2
PK_R = bytes.fromhex(
    "04fe8c19ce0905191ebc298a9245792531f26f0cece2460639e8bc39cb7f706a82"
    "6a779b4cf969b8a0e539c7f62fb3d30ad6aa8f80e30f1d128aafd68a2ce72ea0"
)
ENC = bytes.fromhex(
    "04a92719c6195d5085104f469a8b9814d5838ff72b60501e2c4466e5e67b325ac9"
    "8536d7b61a1af4b78e5b7f951c0900be863c403ce65c9bfcb9382657222d18c4"
)
INFO = bytes.fromhex("4f6465206f6e2061204772656369616e2055726e")
PLAIN = bytes.fromhex("4265617574792069732074727574682c20747275746820626561757479")
AAD = bytes.fromhex("436f756e742d30")
CIPHER = bytes.fromhex("5ad590bb8baa577f8619db35a36311226a896e7342a6d836d8b7bcd2f20b6c7f9076ac232e3ab2523f39513434")


def relayed(key: CollectorKey, batch: int = 5, address: str = "http://127.0.0.1:9", name: str = "relayed") -> Survey:
    survey = daily()
    return Survey(name, survey.questions, replace(survey.terms, relay=Relay(address, key.public, batch)))


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return CollectorKey.make(tmp_path_factory.mktemp("key") / "collector.pem")


def test_the_vectors_of_the_rfc():
    ephemeral = derived_key(IKM_E)
    assert ephemeral.private_numbers().private_value == SK_E
    assert point(ephemeral.public_key()) == ENC
    assert seal(PK_R, INFO, AAD, PLAIN, ephemeral) == ENC + CIPHER
    private = ec.derive_private_key(SK_R, ec.SECP256R1())
    assert unseal(private, PK_R, INFO, AAD, ENC + CIPHER) == PLAIN


@pytest.mark.parametrize("place", [0, 40, 70, len(ENC + CIPHER) - 1])
def test_a_changed_record_is_not_opened(place):
    record = bytearray(ENC + CIPHER)
    record[place] ^= 1
    with pytest.raises(CannotOpen):
        unseal(ec.derive_private_key(SK_R, ec.SECP256R1()), PK_R, INFO, AAD, bytes(record))


def test_a_submission_is_sealed_for_its_survey_and_epoch(key):
    survey = relayed(key)
    body = wire.encode(10, b"i" * 16, b"\1", survey.report_bytes)
    made = sealed(survey, body)
    assert made == sealed(survey, body), "what is sent again is the same"
    assert made != sealed(survey, wire.encode(10, b"j" * 16, b"\1", survey.report_bytes))
    epoch, records = split(made, sealing.record_bytes(survey), 10)
    assert list(key.open(survey.fingerprint, epoch, records)) == [b"i" * 16 + b"\1"]
    assert list(key.open(survey.fingerprint, epoch + 1, records)) == [None], "another epoch"
    assert list(key.open("ab" * 32, epoch, records)) == [None], "another survey"
    assert b"i" * 8 not in made


def test_what_is_no_key_and_no_relay_is_refused(key, tmp_path):
    with pytest.raises(SpecError, match="87 characters"):
        Relay("https://relay.example.org", "short", 5)
    for address in ("relay.example.org", "http://relay.example.org", "https://u:p@relay.example.org", "https://a?b=c"):
        with pytest.raises(SpecError, match="address of the relay"):
            Relay(address, key.public, 5)
    with pytest.raises(SpecError, match="smallest batch"):
        Relay("https://relay.example.org", key.public, 1)
    terms = relayed(key).terms
    with pytest.raises(SpecError, match="late"):
        replace(terms, epochs=replace(terms.epochs, late=0))
    with pytest.raises(SpecError, match="sums"):
        replace(terms, retention="reports")
    off = wire.to_text(b"\4" + b"\1" * 64)
    with pytest.raises(SpecError, match="P-256"):
        sealed(
            Survey("off", daily().questions, replace(terms, relay=Relay("https://a.example", off, 5))),
            b"DNR1" + bytes(21),
        )
    (tmp_path / "no.pem").write_text("nothing")
    with pytest.raises(SpecError, match="deniable relay key"):
        CollectorKey.load(tmp_path / "no.pem")


def test_a_survey_with_a_relay_is_written_and_read_again(key):
    survey = relayed(key)
    assert Survey.from_spec(survey.spec()) == survey
    assert "relay" not in daily().spec()


def test_what_a_browser_seals_is_opened_here(key):
    """WebCrypto seals, Python opens; a second seal of the same submission differs, so a browser keeps the first."""
    survey = relayed(key)
    body = wire.encode(10, b"i" * 16, b"\1", survey.report_bytes)
    script = f"""
      import {{ Survey, sealSubmission, hex }} from "{(WEB / "deniable.js").as_uri()}";
      const pinned = "{survey.fingerprint}";
      const survey = await Survey.fromBytes(new TextEncoder().encode({json.dumps(survey.canonical.decode())}), pinned);
      const bytes = Uint8Array.from(Buffer.from("{body.hex()}", "hex"));
      console.log(JSON.stringify([hex(await sealSubmission(survey, bytes)), hex(await sealSubmission(survey, bytes))]));
    """
    done = run(tool("node"), "--input-type=module", "-e", script)
    assert done.returncode == 0, done.stderr
    first, second = (bytes.fromhex(text) for text in json.loads(done.stdout))
    assert first != second
    for made in (first, second):
        epoch, records = split(made, sealing.record_bytes(survey), 1)
        assert list(key.open(survey.fingerprint, epoch, records)) == [b"i" * 16 + b"\1"]


def test_the_record_is_the_one_that_the_specification_describes(key):
    """The recipe of the wire specification gives the stored vector, and what a device sends."""
    stored = json.loads((Path(__file__).parents[1] / "golden" / "sealed.json").read_text(encoding="utf-8"))

    def recipe(public, fingerprint, epoch, plain):
        at = epoch.to_bytes(4, "little")
        hashed = hashlib.sha256(b"deniable-ephemeral-v1\0" + fingerprint.encode() + b"DNR1" + at + plain)
        info = b"deniable-sealed-v1\0" + fingerprint.encode()
        return b"DNS1" + at + seal(public, info, at, plain, derived_key(hashed.digest()))

    public, plain = wire.from_text(stored["key"], 65), bytes.fromhex(stored["plaintext"])
    assert recipe(public, stored["fingerprint"], stored["epoch"], plain).hex() == stored["body"]
    private = ec.derive_private_key(int(stored["private"], 16), ec.SECP256R1())
    assert point(private.public_key()) == public
    survey = relayed(key)
    plain = bytes(range(16)) + bytes(survey.report_bytes)
    sent = sealed(survey, wire.MAGIC + (7).to_bytes(4, "little") + plain)
    assert sent == recipe(wire.from_text(key.public, 65), survey.fingerprint, 7, plain)
