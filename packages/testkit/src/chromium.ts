// Debian's Chromium, where it is and how it is started: headless, without what a machine of tests lacks.

/** Path of the program. */
export const CHROMIUM = "/usr/bin/chromium";

/**
 * Arguments for a browser that trusts the certificates with these keys.
 *
 * @param spkiHashes base64 of SHA-256 of each key's SubjectPublicKeyInfo
 */
export function chromiumArgs(spkiHashes: readonly string[]): string[] {
  return [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    `--ignore-certificate-errors-spki-list=${spkiHashes.join(",")}`,
  ];
}
