// What the package offers as `@moor/server/certificates`: a residency's authority and nodes' certificates, without a node.

export { encodeNodeUri, isNodeId, isResidency, type CertificateIdentity } from "./certificate-identity.ts";
export {
  makeAuthority,
  makeNodeCertificate,
  readAuthorityResidency,
  type CertificateTerms,
  type MadeCertificate,
} from "./make-certificate.ts";
