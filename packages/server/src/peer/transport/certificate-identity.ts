// Whose certificate it is: the name `moor://RESIDENCY/node/NODE_ID` among its subject alternative names.
//
// Spec: docs/protocol/peer-link.md, "Certificates".
// I1  A certificate names exactly one node of one residency, or it names none.
// I2  A text inside another name (`DNS:"a, URI:moor://…"`) is not taken for a name: Node quotes such names, and
//     quotes are honoured here.

/** Node id: a DNS label in lower case. */
const NODE_ID = "[a-z0-9][a-z0-9-]{0,62}";
const RESIDENCY = "[a-z0-9-]{1,32}";
const NODE_URI = new RegExp(`^URI:moor://(${RESIDENCY})/node/(${NODE_ID})$`);

/** The node that a certificate speaks for. */
export interface CertificateIdentity {
  readonly residency: string;
  readonly nodeId: string;
}

/** Whether `text` can be a node's id. */
export function isNodeId(text: string): boolean {
  return new RegExp(`^${NODE_ID}$`).test(text);
}

/** Whether `text` can be a residency's name. */
export function isResidency(text: string): boolean {
  return new RegExp(`^${RESIDENCY}$`).test(text);
}

/** The subject alternative name of a node's certificate. */
export function encodeNodeUri(identity: CertificateIdentity): string {
  return `moor://${identity.residency}/node/${identity.nodeId}`;
}

/**
 * The node named in a list of subject alternative names as Node prints it (`DNS:a, URI:moor://…`); undefined when there is
 * none or more than one.
 */
export function parseCertificateIdentity(
  subjectAltName: string | undefined,
): CertificateIdentity | undefined {
  const found: CertificateIdentity[] = [];
  for (const name of splitNames(subjectAltName ?? "")) {
    const [, residency, nodeId] = NODE_URI.exec(name) ?? [];
    if (residency !== undefined && nodeId !== undefined) found.push({ residency, nodeId });
  }
  return found.length === 1 ? found[0] : undefined;
}

/** Splits at ", " outside of double quotes; inside them a backslash escapes the next character. */
function splitNames(list: string): string[] {
  const names: string[] = [];
  let name = "";
  let isQuoted = false;
  for (let at = 0; at < list.length; at += 1) {
    const character = list.charAt(at);
    if (isQuoted && character === "\\") {
      name += list.slice(at, at + 2);
      at += 1;
    } else if (!isQuoted && character === ",") {
      names.push(name.trim());
      name = "";
    } else {
      if (character === '"') isQuoted = !isQuoted;
      name += character;
    }
  }
  names.push(name.trim());
  return names;
}
