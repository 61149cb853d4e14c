// Certificates of a cluster: an authority, and nodes named in what it signs. Keys and signatures are node:crypto's.
//
// Spec: docs/protocol/peer-link.md, "Certificates"; RFC 5280. For `moor cluster cert` and tests: a running node only
// reads certificates.
// I1  A node's certificate is good for both sides of a link and for nothing else: it cannot sign others.
// I2  Private keys leave here only inside a Secret.

import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIP } from "node:net";
import { ConfigError, type Runtime, Secret } from "@moor/runtime";
import { type CertificateIdentity, encodeNodeUri, isResidency } from "./certificate-identity.ts";
import {
  encodeBits,
  encodeInteger,
  encodeObjectIdentifier,
  encodeOctets,
  encodeSequence,
  encodeSet,
  encodeTagged,
  encodeText,
  encodeTime,
  encodeTrue,
} from "./der.ts";
import { encodeAddress } from "./ip-address.ts";

const OID = {
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  commonName: "2.5.4.3",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  clientAuth: "1.3.6.1.5.5.7.3.2",
} as const;

/** Context tags of GeneralName (RFC 5280, 4.2.1.6). */
const NAME_TAG = { dns: 0x82, uri: 0x86, address: 0x87 } as const;
/** Clocks that are a little slow still take a new certificate. Milliseconds. */
const BACKDATED_MS = 5 * 60 * 1_000;
const DAY_MS = 24 * 60 * 60 * 1_000;
/** Random bytes of a serial number: under the 20 that RFC 5280 allows, above the 8 it asks for. */
const SERIAL_BYTES = 16;

/** What an authority's name begins with; the residency follows. */
const AUTHORITY_PREFIX = "Moor authority of ";

/** A certificate and its private key, PEM. */
export interface MadeCertificate {
  readonly certificate: string;
  readonly key: Secret;
}

/** What every certificate is made with. */
export interface CertificateTerms {
  /** Days from now. The first five minutes lie before now. */
  readonly days: number;
  readonly runtime: Pick<Runtime, "wallMs" | "randomBytes">;
}

/** Makes an authority for the nodes of one residency: self-signed, ECDSA P-256. */
export function makeAuthority(residency: string, terms: CertificateTerms): MadeCertificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = encodeName(`${AUTHORITY_PREFIX}${residency}`);
  const certificate = encodeCertificate({
    issuer: name,
    subject: name,
    publicKey,
    signingKey: privateKey,
    terms,
    extensions: [
      // An authority, of nodes only: no authority below it.
      encodeExtension(
        OID.basicConstraints,
        true,
        encodeSequence(encodeTrue(), encodeInteger(Buffer.from([0]))),
      ),
      // keyCertSign and cRLSign: bits 5 and 6.
      encodeExtension(OID.keyUsage, true, encodeBits(Buffer.from([0b0000_0110]), 1)),
      encodeExtension(OID.subjectKeyIdentifier, false, encodeOctets(keyIdentifier(publicKey))),
    ],
  });
  return { certificate, key: exportKey(privateKey) };
}

/**
 * Makes a node's certificate, signed by `authority`.
 *
 * @param hosts DNS names and addresses for tools that look at them; links go by the node's name alone
 * Throws ConfigError when the authority's files cannot be read or do not belong together.
 */
export function makeNodeCertificate(
  authority: MadeCertificate,
  identity: CertificateIdentity,
  hosts: readonly string[],
  terms: CertificateTerms,
): MadeCertificate {
  const issuer = readAuthority(authority);
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const names = [
    encodeTagged(NAME_TAG.uri, Buffer.from(encodeNodeUri(identity))),
    ...hosts.map((host) => encodeHost(host)),
  ];
  const usages = [OID.serverAuth, OID.clientAuth].map((oid) => encodeObjectIdentifier(oid));
  const certificate = encodeCertificate({
    issuer: issuer.subject,
    subject: encodeName(identity.nodeId),
    publicKey,
    signingKey: issuer.key,
    terms,
    extensions: [
      encodeExtension(OID.basicConstraints, true, encodeSequence()),
      // digitalSignature: bit 0.
      encodeExtension(OID.keyUsage, true, encodeBits(Buffer.from([0b1000_0000]), 7)),
      encodeExtension(OID.extendedKeyUsage, false, encodeSequence(...usages)),
      encodeExtension(OID.subjectAltName, false, encodeSequence(...names)),
      encodeExtension(OID.subjectKeyIdentifier, false, encodeOctets(keyIdentifier(publicKey))),
      encodeExtension(
        OID.authorityKeyIdentifier,
        false,
        encodeSequence(encodeTagged(0x80, keyIdentifier(issuer.publicKey))),
      ),
    ],
  });
  return { certificate, key: exportKey(privateKey) };
}

/** The residency whose nodes an authority signs. Throws ConfigError when the certificate is none of Moor's. */
export function readAuthorityResidency(certificate: string): string {
  const [, residency = ""] = /^CN=Moor authority of (.*)$/m.exec(subjectOf(certificate)) ?? [];
  if (!isResidency(residency)) throw notAnAuthority();
  return residency;
}

function subjectOf(certificate: string): string {
  try {
    return new X509Certificate(certificate).subject;
  } catch {
    throw notAnAuthority();
  }
}

interface CertificateParts {
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly publicKey: KeyObject;
  readonly signingKey: KeyObject;
  readonly extensions: readonly Buffer[];
  readonly terms: CertificateTerms;
}

/** Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signatureValue } (RFC 5280, 4.1). */
function encodeCertificate(parts: CertificateParts): string {
  const { runtime, days } = parts.terms;
  const nowMs = runtime.wallMs();
  const algorithm = encodeSequence(encodeObjectIdentifier(OID.ecdsaWithSha256));
  const toBeSigned = encodeSequence(
    encodeTagged(0xa0, encodeInteger(Buffer.from([2]))), // version 3
    encodeInteger(runtime.randomBytes(SERIAL_BYTES)),
    algorithm,
    parts.issuer,
    encodeSequence(encodeTime(nowMs - BACKDATED_MS), encodeTime(nowMs + days * DAY_MS)),
    parts.subject,
    parts.publicKey.export({ type: "spki", format: "der" }),
    encodeTagged(0xa3, encodeSequence(...parts.extensions)),
  );
  const signature = sign("sha256", toBeSigned, parts.signingKey);
  const der = encodeSequence(toBeSigned, algorithm, encodeBits(signature));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function encodeExtension(oid: string, isCritical: boolean, value: Buffer): Buffer {
  const critical = isCritical ? [encodeTrue()] : [];
  return encodeSequence(encodeObjectIdentifier(oid), ...critical, encodeOctets(value));
}

/** A distinguished name of one common name. */
function encodeName(commonName: string): Buffer {
  const attribute = encodeSequence(encodeObjectIdentifier(OID.commonName), encodeText(commonName));
  return encodeSequence(encodeSet(attribute));
}

function encodeHost(host: string): Buffer {
  return isIP(host) === 0
    ? encodeTagged(NAME_TAG.dns, Buffer.from(host))
    : encodeTagged(NAME_TAG.address, encodeAddress(host));
}

/** SHA-1 of the key's bits (RFC 5280, 4.2.1.2, method 1): a name for the key, not a protection. */
function keyIdentifier(publicKey: KeyObject): Buffer {
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  const point = [Buffer.from([4]), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")];
  return createHash("sha1").update(Buffer.concat(point)).digest();
}

function exportKey(key: KeyObject): Secret {
  return new Secret(key.export({ type: "pkcs8", format: "pem" }).toString());
}

function readAuthority(authority: MadeCertificate): {
  key: KeyObject;
  publicKey: KeyObject;
  subject: Buffer;
} {
  const residency = readAuthorityResidency(authority.certificate);
  const certificate = new X509Certificate(authority.certificate);
  const key = readKey(authority.key);
  if (!certificate.ca || key === undefined || !certificate.checkPrivateKey(key)) throw notAnAuthority();
  return { key, publicKey: certificate.publicKey, subject: encodeName(`${AUTHORITY_PREFIX}${residency}`) };
}

function readKey(pem: Secret): KeyObject | undefined {
  try {
    return createPrivateKey(pem.reveal());
  } catch {
    return undefined;
  }
}

function notAnAuthority(): ConfigError {
  return new ConfigError("ca.crt, ca.key", "files of no authority", "those that `moor cluster cert ca` made");
}
