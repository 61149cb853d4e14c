// HTTP dates by a grammar of our own: Date.parse takes time zones, local times and much else that is no HTTP date.
// Spec: R17 (RFC 9110, section 5.6.7).   Pure.
//
// The weekday must be a name of its form, letter case included, but need not be the date's own: nothing is decided
// by it. A second of 60 is accepted (leap second) and counts as the next minute's first.

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const MONTH = `(?<month>${MONTHS.join("|")})`;
const DAY_NAME = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const DAY_NAME_LONG = "(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)";
const TIME = "(?<hour>[0-9]{2}):(?<minute>[0-9]{2}):(?<second>[0-9]{2})";

const FORMS: readonly RegExp[] = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(`^${DAY_NAME}, (?<day>[0-9]{2}) ${MONTH} (?<year>[0-9]{4}) ${TIME} GMT$`),
  // Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(`^${DAY_NAME_LONG}, (?<day>[0-9]{2})-${MONTH}-(?<year>[0-9]{2}) ${TIME} GMT$`),
  // Sun Nov  6 08:49:37 1994
  new RegExp(`^${DAY_NAME} ${MONTH} (?<day>[0-9]{2}| [0-9]) ${TIME} (?<year>[0-9]{4})$`),
];

/**
 * Reads an HTTP date in any of its three forms.
 *
 * @param referenceMs the instant two-digit years are read against, in milliseconds since the epoch: a year more than
 *   50 years after it is taken from the century before (RFC 9110)
 * @returns milliseconds since the epoch, or `undefined` for anything else, impossible days and times included
 */
export function parseHttpDate(text: string, referenceMs: number): number | undefined {
  for (const form of FORMS) {
    const groups = form.exec(text)?.groups;
    if (groups !== undefined) return instantOf(groups, referenceMs);
  }
  return undefined;
}

function instantOf(groups: Readonly<Record<string, string>>, referenceMs: number): number | undefined {
  const [day, hour, minute, second] = ["day", "hour", "minute", "second"].map((name) => Number(groups[name]));
  const month = MONTHS.indexOf(groups["month"] ?? "");
  const yearText = groups["year"] ?? "";
  const year = yearText.length === 2 ? fullYear(Number(yearText), referenceMs) : Number(yearText);
  if (day === undefined || hour === undefined || minute === undefined || second === undefined)
    return undefined;
  if (day < 1 || day > daysInMonth(year, month) || hour > 23 || minute > 59 || second > 60) return undefined;
  // setUTCFullYear: Date.UTC would read the years 0–99 as 1900–1999.
  return new Date(0).setUTCFullYear(year, month, day) + ((hour * 60 + minute) * 60 + second) * 1000;
}

function fullYear(twoDigits: number, referenceMs: number): number {
  const referenceYear = new Date(referenceMs).getUTCFullYear();
  const sameCentury = referenceYear - (referenceYear % 100) + twoDigits;
  if (sameCentury > referenceYear + 50) return sameCentury - 100;
  return sameCentury + 100 <= referenceYear + 50 ? sameCentury + 100 : sameCentury;
}

function daysInMonth(year: number, month: number): number {
  return new Date(new Date(0).setUTCFullYear(year, month + 1, 0)).getUTCDate();
}
