// Header fields as they stand on the wire: ordered lines, duplicates kept, values as latin1 text (one character a byte).
//
// Spec: R6 (a field that must be there exactly once), R10, R20, T20.
// I1  Nothing here joins two lines into one: whoever judges a duplicate sees it.

/** One field line: name as sent, value as latin1 text. */
export type HeaderLine = readonly [name: string, value: string];

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Whether `name` is an RFC 9110 field name. */
export function isHeaderName(name: string): boolean {
  return TOKEN.test(name);
}

/** Whether `value`, one character a byte, may stand in a field line: no control characters but tab. */
export function isHeaderValue(value: string): boolean {
  return FIELD_VALUE.test(value);
}

/** A text as header bytes: its UTF-8 bytes, one latin1 character each, as undici writes them out again. */
export function utf8AsHeaderValue(text: string): string {
  // oxlint-disable-next-line no-control-regex -- the ASCII range is the point
  return /^[\x00-\x7f]*$/.test(text) ? text : Buffer.from(text, "utf8").toString("latin1");
}

/** Pairs from undici's flat raw list of names and values. */
export function headerLinesFromRaw(raw: readonly (Buffer | string)[]): HeaderLine[] {
  const lines: HeaderLine[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) lines.push([latin1(raw[at]), latin1(raw[at + 1])]);
  return lines;
}

/** The flat list undici takes. */
export function flattenHeaderLines(lines: readonly HeaderLine[]): string[] {
  const flat: string[] = [];
  for (const [name, value] of lines) flat.push(name, value);
  return flat;
}

/** Every value of the field `name`, compared without case, in order. */
export function headerValues(lines: readonly HeaderLine[], name: string): string[] {
  const wanted = name.toLowerCase();
  const values: string[] = [];
  for (const [lineName, value] of lines) if (lineName.toLowerCase() === wanted) values.push(value);
  return values;
}

/** The first value of the field `name`, or undefined. */
export function headerValue(lines: readonly HeaderLine[], name: string): string | undefined {
  return headerValues(lines, name)[0];
}

function latin1(part: Buffer | string | undefined): string {
  if (part === undefined) return "";
  return typeof part === "string" ? part : part.toString("latin1");
}
