// Keeps keys that were typed in the wrong place out of messages.

/** `text` with everything that looks like a Moor key replaced by `[secret]`. */
export function redactKeys(text: string): string {
  return text.replaceAll(/moor_[a-z]{2,16}_[0-9A-Za-z_-]{20,}/g, "[secret]");
}
