#!/usr/bin/env python3
"""Replays vectors/*.json with an implementation of its own: Python >= 3.9, standard library only.

Written from docs/protocol/poll-routing.md and tunnel-api.md (replay_link.py: link-routing.md); shares nothing with the
TypeScript sources, so that what the vectors say does not hang on one reading. Prints `N passed, N failed`; exit code 1 if any failed.
Usage: replay.py [FOLDER OF VECTORS]
"""
import calendar
import json
import re
import sys
import time
from fractions import Fraction
from pathlib import Path

from replay_link import LINK_CHECKS
from replay_terms import bytes_of, same, same_ms

# --- R2: capabilities ------------------------------------------------------------------------------------------------

TCHAR = frozenset(b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def capabilities(lines):
    joined = b",".join(lines)
    if len(joined) > 4096:
        return set()
    names = [member.strip(b" \t") for member in joined.split(b",")]
    names = [name for name in names if name]
    if len(names) > 64:
        return set()
    if any(len(name) > 128 or not TCHAR.issuperset(name) for name in names):
        return set()
    return {name.decode("ascii") for name in names}


# --- R6: JSON with its duplicates and number literals ----------------------------------------------------------------


class Members(list):
    """An object as its (key, value) pairs, duplicates kept."""

    def only(self, key):
        found = [value for name, value in self if name == key]
        return found[0] if len(found) == 1 else None

    def count(self, key):
        return sum(1 for name, _ in self if name == key)


class Literal(str):
    """A number as it was written."""


def no_constant(name):
    raise ValueError(name)


def nesting(text):
    deepest = depth = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def strict_json(body, depth_max):
    """The value, or ValueError for anything but valid UTF-8 JSON without BOM within the depth."""
    text = body.decode("utf-8")
    if text.startswith("\ufeff"):
        raise ValueError("byte order mark")
    if nesting(text) > depth_max:
        raise ValueError("too deep")
    return json.loads(
        text,
        object_pairs_hook=Members,
        parse_int=Literal,
        parse_float=Literal,
        parse_constant=no_constant,
    )


def field_values(headers, name):
    return [value for line, value in headers if line.lower() == name.lower()]


def correction(status, headers, body):
    """(token, revision) if every clause of R6 holds, else None."""
    if status != 409 or len(body) > 65536:
        return None
    tokens = field_values(headers, "X-Tunnel-Shard-Token")
    if len(tokens) != 1:
        return None
    token = tokens[0]
    if not 1 <= len(token) <= 4096 or any(byte < 0x21 or byte > 0x7E or byte == 0x2C for byte in token):
        return None
    try:
        value = strict_json(body, 64)
    except ValueError:
        return None
    error = value.only("error") if isinstance(value, Members) else None
    if not isinstance(error, Members):
        return None
    code = error.only("code")
    if type(code) is not str or code != "wrong_cluster":
        return None
    literal = error.only("policy_revision")
    if type(literal) is not Literal or re.fullmatch("[0-9]+", literal, re.ASCII) is None:
        return None
    revision = int(literal) if len(literal) <= 16 else 2**53
    if revision > 2**53 - 1:
        return None
    if error.count("shard_token") > 0:
        confirmation = error.only("shard_token")
        if type(confirmation) is not str or confirmation != token.decode("ascii"):
            return None
    return token, revision


# --- R14: what a poll's ending means ---------------------------------------------------------------------------------


def commands_of(body):
    """How many commands a 200 carries, or None if its body is not the envelope."""
    try:
        value = strict_json(body, 1003)
    except ValueError:
        return None
    commands = value.only("commands") if isinstance(value, Members) else None
    if not isinstance(commands, list) or isinstance(commands, Members):
        return None
    return len(commands)


def classify(status, headers, body, is_cut):
    """(outcome, correction or None, commands)"""
    if is_cut or status == 408 or 500 <= status <= 599:
        return "destination-failure", None, 0
    if status == 204:
        return "success", None, 0
    if status == 200:
        commands = commands_of(body)
        return ("ordinary-error", None, 0) if commands is None else ("success", None, commands)
    corrected = correction(status, headers, body)
    return ("ordinary-error", None, 0) if corrected is None else ("correction", corrected, 0)


# --- R9 to R16: the client's state -----------------------------------------------------------------------------------


class Client:
    def __init__(self):
        self.token = None
        self.watermark = None
        self.corrections = 0
        self.failures = 0
        self.generation = 0
        self.backoff = 0
        self.ready = False

    def start(self):
        return self.generation, self.token

    def end(self, ticket, outcome, corrected):
        generation, token = ticket
        if generation != self.generation:
            return
        if outcome == "success":
            self.corrections = self.failures = 0
            self.generation += 1
        elif outcome == "correction":
            self.correct(*corrected)
            self.generation += 1
        elif outcome == "destination-failure":
            self.generation += 1
            if token is not None:
                self.failures += 1
                if self.failures == 3:
                    self.token, self.failures = None, 0

    def correct(self, token, revision):
        if self.watermark is None or revision > self.watermark[0]:
            self.token, self.watermark = token, (revision, token)
        elif revision == self.watermark[0]:
            self.token = token if token == self.watermark[1] else None
        self.failures = 0
        self.corrections += 1
        if self.corrections == 3:
            self.token, self.corrections = None, 0

    def delay_ms(self, random, retry_after):
        delay = backoff_ms(self.backoff, random)
        self.backoff += 1
        return max(delay, retry_after or 0)

    def state(self):
        watermark = self.watermark
        return {
            "activeToken": text_or_none(self.token),
            "watermark": watermark and {"revision": watermark[0], "token": watermark[1].decode("ascii")},
            "corrections": self.corrections,
            "destinationFailures": self.failures,
            "generation": self.generation,
        }


def text_or_none(token):
    return None if token is None else token.decode("ascii")


# --- R17: backoff and Retry-After ------------------------------------------------------------------------------------


def backoff_ms(n, random):
    return 200 + random * (min(10000, 200 * 2**n) - 200)


MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
CLOCK = r"(?P<h>[0-9]{2}):(?P<m>[0-9]{2}):(?P<s>[0-9]{2})"
MONTH = "(?P<month>%s)" % "|".join(MONTHS)
SHORT = "(Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
LONG = "(Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
DATE_FORMS = [
    re.compile(SHORT + r", (?P<d>[0-9]{2}) " + MONTH + r" (?P<y>[0-9]{4}) " + CLOCK + " GMT"),
    re.compile(LONG + r", (?P<d>[0-9]{2})-" + MONTH + r"-(?P<yy>[0-9]{2}) " + CLOCK + " GMT"),
    re.compile(SHORT + " " + MONTH + r" (?P<d>[0-9]{2}| [0-9]) " + CLOCK + r" (?P<y>[0-9]{4})"),
]


def http_date_ms(text, now_ms):
    for form in DATE_FORMS:
        match = form.fullmatch(text)
        if match is None:
            continue
        parts = match.groupdict()
        if "y" in parts:
            year = int(parts["y"])
        else:
            this_year = time.gmtime(now_ms // 1000).tm_year
            year = next(y for y in range(this_year + 50, this_year - 50, -1) if y % 100 == int(parts["yy"]))
        month, day = MONTHS.index(parts["month"]) + 1, int(parts["d"])
        hour, minute, second = int(parts["h"]), int(parts["m"]), int(parts["s"])
        if year < 1 or not 1 <= day <= calendar.monthrange(year, month)[1]:
            return None
        if hour > 23 or minute > 59 or second > 60:
            return None
        return calendar.timegm((year, month, day, hour, minute, second)) * 1000
    return None


def retry_after_ms(value, date, wall_ms):
    if re.fullmatch("[0-9]+", value, re.ASCII):
        return 60000 if len(value.lstrip("0")) > 2 else min(int(value) * 1000, 60000)
    now_ms = http_date_ms(date, wall_ms) if date is not None else None
    if now_ms is None:
        now_ms = wall_ms
    until_ms = http_date_ms(value, now_ms)
    if until_ms is None or until_ms < now_ms:
        return None
    return min(until_ms - now_ms, 60000)


def retry_after_of(status, headers, wall_ms):
    values = field_values(headers, "Retry-After")
    dates = field_values(headers, "Date")
    if status in (200, 204) or len(values) != 1:
        return None
    date = dates[0].decode("latin-1") if len(dates) == 1 else None
    return retry_after_ms(values[0].decode("latin-1"), date, wall_ms)


# --- T5, T16, T20, R20 -----------------------------------------------------------------------------------------------

UNIT_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def response_timeout_ms(value):
    match = re.fullmatch("([0-9]+)(ns|us|ms|s|m|h)", value, re.ASCII) if isinstance(value, str) else None
    if match is None or len(match[1].lstrip("0")) > 19:
        return None
    ns = int(match[1] or "0") * UNIT_NS[match[2]]
    return float(Fraction(ns, 10**6)) if ns < 2**63 else None


def server_info(lines):
    if len(lines) != 1 or len(lines[0]) > 4096:
        return None
    try:
        info = json.loads(lines[0].decode("utf-8"))
    except ValueError:
        return None
    if not isinstance(info, dict) or type(info.get("version")) is not int or info["version"] not in (1, 2):
        return None
    entries = info.get("channels")
    if not isinstance(entries, list) or not 1 <= len(entries) <= 32:
        return None
    channels = []
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            return None
        if re.fullmatch("[a-z0-9_-]{1,64}", entry["name"], re.ASCII) is None:
            return None
        stateless = entry.get("stateless", False) if info["version"] == 2 else False
        affinity = entry.get("proc_affinity", False)
        if type(stateless) is not bool or type(affinity) is not bool:
            return None
        channels.append({"name": entry["name"], "stateless": stateless, "procAffinity": affinity})
    return channels if len({channel["name"] for channel in channels}) == len(channels) else None


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def encode_server_info(channels):
    names = {channel["name"] for channel in channels}
    if not 1 <= len(channels) <= 32 or len(names) != len(channels):
        return None
    entries = []
    for channel in channels:
        entry = {"name": channel["name"]}
        if channel["stateless"]:
            entry["stateless"] = True
        if channel["procAffinity"]:
            entry["proc_affinity"] = True
        entries.append(entry)
    version = 2 if any(channel["stateless"] for channel in channels) else 1
    return compact({"version": version, "channels": entries})


SOURCES = "target_http dns tls connect transport_closed timeout protocol client_internal".split()
LABEL = re.compile("[a-z0-9_]{1,64}", re.ASCII)


def tunnel_failure(value):
    if not isinstance(value, dict) or type(value.get("version")) is not int or value["version"] != 1:
        return None
    source, answered = value.get("source"), value.get("upstream_response_received")
    status, kind = value.get("upstream_status"), value.get("transport_error_kind")
    if source not in SOURCES or type(answered) is not bool:
        return None
    if source == "target_http":
        if not answered or type(status) is not int or not 400 <= status <= 599:
            return None
    elif "upstream_status" in value or (source == "transport_closed" and answered):
        return None
    known = {"version": 1, "source": source}
    if isinstance(kind, str) and LABEL.fullmatch(kind):
        known["transport_error_kind"] = kind
    known["upstream_response_received"] = answered
    if status is not None:
        known["upstream_status"] = status
    return known


PHRASES = {502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}


def encode_tunnel_failure(raw_id, status, failure):
    if not 400 <= status <= 599 or tunnel_failure(failure) != failure:
        return None
    error = {"code": -32603, "message": PHRASES[status], "data": {"tunnel_failure": tunnel_failure(failure)}}
    return '{"jsonrpc":"2.0","id":%s,"error":%s}' % (raw_id, compact(error))


def is_command_token(token):
    try:
        raw = token.encode("utf-8") if isinstance(token, str) else bytes_of(token)
    except UnicodeEncodeError:
        return False
    if len(raw) > 8192 or raw != raw.strip(b" \t"):
        return False
    return all(byte == 0x09 or (byte >= 0x20 and byte != 0x7F) for byte in raw)


# --- replay ----------------------------------------------------------------------------------------------------------


def headers_of(case):
    return [(name, bytes_of(value)) for name, value in case.get("headers", [])]


def check_correction(case):
    outcome, corrected, _ = classify(
        case["status"], headers_of(case), bytes_of(case["body"]), case.get("bodyIsCut", False)
    )
    expect = case["expect"]
    same(outcome, expect["outcome"])
    if corrected is not None:
        same(corrected, (bytes_of(expect["token"]), expect["revision"]))


def check_sequence(case):
    client, tickets = Client(), {}
    for number, step in enumerate(case["steps"], 1):
        place = "step %d" % number
        if step["do"] == "start":
            tickets[step["poll"]] = client.start()
            same(text_or_none(client.token), step["sends"], place)
            continue
        ticket = tickets.pop(step["poll"])
        corrected, commands, retry_after = None, 0, None
        if step["do"] == "cancel":
            outcome = "cancelled"
        elif step["do"] == "fault":
            outcome = "destination-failure"
        else:
            headers = headers_of(step)
            outcome, corrected, commands = classify(
                step["status"], headers, bytes_of(step["body"]), step.get("bodyIsCut", False)
            )
            retry_after = retry_after_of(step["status"], headers, step.get("wallMs", 0))
        client.end(ticket, outcome, corrected)
        delay = None
        if outcome == "success":
            client.backoff, client.ready = 0, True
        elif outcome != "cancelled":
            delay, client.ready = client.delay_ms(step["random"], retry_after), False
        expect = step["expect"]
        same(outcome, expect["outcome"], place)
        same(client.state(), expect["state"], place)
        same_ms(delay, expect["delayMs"], place)
        same(client.ready, expect.get("ready", client.ready), place)
        same(commands, expect.get("commands", commands), place)


def check_backoff(case):
    client = Client()
    for number, event in enumerate(case["run"], 1):
        if event["event"] == "succeeded":
            client.backoff = 0
        else:
            delay = client.delay_ms(event["random"], event.get("retryAfterMs"))
            same_ms(delay, event["expectMs"], "event %d" % number)


CHECKS = {
    ("capabilities", "cases"): lambda case: same(
        sorted(capabilities([bytes_of(line) for line in case["lines"]])), sorted(case["expect"])
    ),
    ("corrections", "cases"): check_correction,
    ("sequences", "sequences"): check_sequence,
    ("timeouts", "cases"): lambda case: same_ms(response_timeout_ms(case["value"]), case["expectMs"]),
    ("retry-after", "cases"): lambda case: same_ms(
        retry_after_ms(case["value"], case.get("date"), case["wallMs"]), case["expectMs"]
    ),
    ("backoff", "cases"): check_backoff,
    ("server-info", "parse"): lambda case: same(server_info([bytes_of(line) for line in case["lines"]]), case["expect"]),
    ("server-info", "encode"): lambda case: same(encode_server_info(case["channels"]), case["expect"]),
    ("tunnel-failure", "parse"): lambda case: same(tunnel_failure(case["value"]), case["expect"]),
    ("tunnel-failure", "encode"): lambda case: same(
        encode_tunnel_failure(case["rawId"], case["status"], case["failure"]), case["expect"]
    ),
    ("command-tokens", "cases"): lambda case: same(is_command_token(case["token"]), case["expect"]),
    **LINK_CHECKS,
}


def main():
    here = Path(__file__).resolve().parent
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else here.parent.parent / "vectors"
    known = {name for name, _ in CHECKS}
    found = {path.stem for path in folder.glob("*.json") if not path.stem.endswith(".schema")}
    passed, failures = 0, ["%s: no replay of this file" % name for name in sorted(found ^ known)]
    for (name, kind), check in CHECKS.items():
        for case in json.loads((folder / (name + ".json")).read_text("utf-8"))[kind]:
            try:
                check(case)
                passed += 1
            except Exception as error:  # any slip of this script is a failure of the case as well
                failures.append("%s/%s: %s: %s" % (name, case["id"], type(error).__name__, error))
    for failure in failures:
        print("FAILED", failure)
    print("%d passed, %d failed" % (passed, len(failures)))
    return 1 if failures or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
