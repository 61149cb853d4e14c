"""The link plane's vectors: written from docs/protocol/link-routing.md alone, as replay.py is from the others."""
import base64
import hashlib
import json
import re
from json.decoder import JSONDecoder, scanstring

import replay_ed25519
from replay_terms import bytes_of, same, same_ms

# --- L4, L5, L7 ------------------------------------------------------------------------------------------------------

LABEL = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


NUMBER = "(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
ADDRESS = re.compile(r"%s(\.%s){3}|\[[0-9a-f.]*:[0-9a-f:.]*\]" % (NUMBER, NUMBER), re.ASCII)


def is_address(host):
    return ADDRESS.fullmatch(host) is not None


def base_ok(base):
    if len(base) > 123:
        return False
    if is_address(base):
        return True
    labels = base.split(".")
    looks_numeric = re.fullmatch("[0-9]+|0x[0-9a-f]*", labels[-1], re.ASCII)
    return not looks_numeric and all(LABEL.fullmatch(label) for label in labels)


def shard_host_ok(host, base):
    if len(host) > 123:
        return False
    label, dot, rest = host.partition(".")
    below = dot == "." and rest == base and LABEL.fullmatch(label) and not is_address(base)
    return host == base or bool(below)


def clamp_spread(spread):
    return max(1000, min(60000, spread))


def restart_spread(reason):
    if re.fullmatch("[0-9]+", reason, re.ASCII) is None:
        return 5000
    return clamp_spread(int(reason) if len(reason.lstrip("0")) < 6 else 60000)


HOME = re.compile("[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)


def link_token(token):
    home, dot, secret = token.partition(".")
    if not dot or len(token.encode("utf-8")) > 256 or HOME.fullmatch(home) is None:
        return None
    return {"home": home, "secret": secret} if re.fullmatch("[0-9A-Za-z_-]+", secret, re.ASCII) else None


# --- L27 to L32: frames ----------------------------------------------------------------------------------------------


def no_constant(name):
    raise ValueError(name)


DECODER = JSONDecoder(parse_constant=no_constant)
BLANK = re.compile(r"[ \t\n\r]*")


def members_of(body):
    """The members of a JSON object as (key, value, raw text), duplicates kept; ValueError for anything else."""
    text = body.decode("utf-8")
    at = BLANK.match(text).end()
    if text[at : at + 1] != "{":
        raise ValueError("no object")
    members, at = [], BLANK.match(text, at + 1).end()
    while text[at : at + 1] != "}" or members:
        if text[at : at + 1] != '"':
            raise ValueError("no key")
        key, at = scanstring(text, at + 1, True)
        at = BLANK.match(text, at).end()
        if text[at : at + 1] != ":":
            raise ValueError("no colon")
        start = BLANK.match(text, at + 1).end()
        value, end = DECODER.raw_decode(text, start)
        members.append((key, value, text[start:end]))
        at = BLANK.match(text, end).end()
        if text[at : at + 1] == "}":
            break
        if text[at : at + 1] != ",":
            raise ValueError("no comma")
        at = BLANK.match(text, at + 1).end()
    if BLANK.match(text, at + 1).end() != len(text):
        raise ValueError("something follows")
    return members


def matches(pattern):
    compiled = re.compile(pattern, re.ASCII)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def canonical(length):
    """base64url of so many bytes, as it would be encoded."""

    def check(value):
        if not isinstance(value, str) or re.fullmatch("[0-9A-Za-z_-]+", value, re.ASCII) is None:
            return False
        try:
            raw = from_base64url(value)
        except ValueError:
            return False
        return len(raw) == length and to_base64url(raw) == value

    return check


def from_base64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def to_base64url(raw):
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def is_number(value):
    return type(value) in (int, float) and value >= 0


def is_whole(value):
    return is_number(value) and value == int(value) and value < 2**53


def is_generation(value):
    return matches("0|[1-9][0-9]{0,15}")(value) and int(value) < 2**53


def one_of(*words):
    return lambda value: isinstance(value, str) and value in words


HELLO = {
    "v": lambda value: type(value) in (int, float) and value == 1,
    "home": matches(HOME.pattern),
    "caps": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
    "nonce": canonical(32),
}
ID = {"id": matches("[0-9A-Za-z_-]{1,64}")}
APP = matches("[0-9A-Za-z_-]{1,64}")
DATA = {"data": lambda value: True}
RESULT = {**ID, **DATA}
OUTCOME = {**ID, "outcome": one_of("unknown", "not_delivered", "expired")}
COMMAND = {**ID, "ttl_ms": is_whole, **DATA}
LIFE = {"ping": {}, "pong": {}}
HELLO_OK = {
    "host": matches("[\x21-\x7e]{1,123}"),
    "home": HELLO["home"],
    "generation": is_generation,
    "key": matches("[0-9A-Za-z_-]{16}"),
    "sig": canonical(64),
    "ping_ms": is_number,
    "spread_ms": is_number,
    "next_key": canonical(32),
}
OPTIONAL = ("ping_ms", "spread_ms", "next_key")
FRAMES = {
    "box": {
        "hello": HELLO,
        "proof": {"sig": canonical(64)},
        "result": RESULT,
        "outcome": OUTCOME,
        "event": DATA,
        "now": DATA,
        **LIFE,
    },
    "app": {"hello": {**HELLO, "token": lambda value: isinstance(value, str), "app": APP}, "cmd": COMMAND, **LIFE},
    "service": {
        "challenge": {"nonce": canonical(32)},
        "hello_ok": HELLO_OK,
        "cmd": {**COMMAND, "app": APP},
        "ack": ID,
        "result": RESULT,
        "outcome": OUTCOME,
        "event": DATA,
        "presence": {"box": one_of("online", "offline", "unknown"), "since_ms": is_number},
        **LIFE,
    },
}


def frame(body, sender):
    """(kind, members): kind is frame, ignored or malformed."""
    if len(body) > 69632:
        return "malformed", None
    try:
        members = members_of(body)
    except ValueError:
        return "malformed", None
    kinds = [value for key, value, _ in members if key == "t"]
    if len(kinds) != 1 or not isinstance(kinds[0], str):
        return "malformed", None
    checks = FRAMES[sender].get(kinds[0])
    if checks is None:
        return "ignored", None
    read = {"t": kinds[0]}
    for name, check in checks.items():
        found = [(value, raw) for key, value, raw in members if key == name]
        if not found and name in OPTIONAL:
            continue
        if len(found) != 1 or not check(found[0][0]):
            return "malformed", None
        value, raw = found[0]
        if name == "data" and len(raw.encode("utf-8")) > (4096 if kinds[0] == "now" else 65536):
            return "malformed", None
        read[name] = raw if name == "data" else value
    return "frame", read


def check_frame(case):
    kind, read = frame(bytes_of(case["text"]), case["from"])
    same(kind, case["expect"]["kind"])
    if kind == "frame":
        wanted = dict(case["expect"]["frame"])
        if "data" in wanted:
            wanted["data"] = bytes_of(wanted["data"]).decode("utf-8")
        same(read, wanted)


# --- L12, L13: the record --------------------------------------------------------------------------------------------


def record_of(body):
    """(home, host or None, unknown members) or None for a corrupt one."""
    try:
        members = members_of(body)
    except ValueError:
        return None
    known = [key for key, _, _ in members if key in ("v", "home", "host")]
    values = {key: value for key, value, _ in members}
    if len(set(known)) != len(known) or type(values.get("v")) is not int or values["v"] != 1:
        return None
    if not matches(HOME.pattern)(values.get("home")) or not isinstance(values.get("host", ""), str):
        return None
    unknown = {key: value for key, value in values.items() if key not in known}
    return values["home"], values.get("host"), unknown


def check_record(case):
    record = record_of(bytes_of(case["text"]))
    same(record and {"home": record[0], "host": record[1]}, case["expect"])


# --- L28, L29: signatures --------------------------------------------------------------------------------------------


def key_id(key):
    return to_base64url(hashlib.sha256(from_base64url(key)).digest())[:16]


def check_key(case):
    same(to_base64url(replay_ed25519.public_key(from_base64url(case["seed"]))), case["key"])
    same(key_id(case["key"]), case["keyId"])


def check_signature(case, lines):
    text = "\n".join(lines)
    same(text, case["bytes"])
    key, signature = from_base64url(case["key"]), from_base64url(case["sig"])
    same(replay_ed25519.verify(key, text.encode("utf-8"), signature), case["expect"])


def check_proof(case):
    parts = [case["host"], case["home"], case["clientNonce"], case["serviceNonce"]]
    check_signature(case, ["moor-link-proof-v1"] + parts)


def check_hello_ok(case):
    parts = [case["host"], case["home"], case["clientNonce"], case["generation"]]
    following = [] if case["nextKey"] is None else [case["nextKey"]]
    check_signature(case, ["moor-link-hello-ok-v1"] + parts + following)
    same(key_id(case["key"]), case["keyId"])


# --- L9 to L18, L23, L28: the client ---------------------------------------------------------------------------------

BROKEN = (None, 1001, 1006, 1011, 1012)


class Link:
    """One client over its processes, with its record. `now` is a monotonic clock in milliseconds."""

    def __init__(self, base, home, follows):
        self.base, self.home, self.follows = base, home, follows
        self.now = 0.0
        self.record, self.can_write = None, True
        self.dials = []
        self.forget_everything()

    def forget_everything(self):
        self.kept, self.hops, self.attempt = None, 0, 0
        self.fails, self.fail_since = 0, None
        self.credit, self.replaced = True, False
        self.woken = {}
        self.state, self.host, self.until, self.spread_until = "idle", None, None, None
        self.since, self.spread = None, None

    # the record

    def kept_in_record(self):
        record = None if self.record is None else record_of(self.record)
        if record is None or record[0] != self.home or record[1] in (None, self.base):
            return None
        return record[1] if shard_host_ok(record[1], self.base) else None

    def write(self, home, host):
        if not self.can_write:
            return
        before = None if self.record is None else record_of(self.record)
        members = {"v": 1, "home": home}
        if host is not None:
            members["host"] = host
        members.update(before[2] if before else {})
        self.record = json.dumps(members).encode("utf-8")

    # dialling and waiting

    def dial(self):
        self.state, self.host = "connecting", self.kept or self.base
        self.dials.append(self.host)

    def wait(self, ms, spread_ms):
        self.state, self.until = "reconnecting", self.now + ms
        self.spread_until = self.now + spread_ms

    def back_off(self, random, spread=0):
        if self.replaced:
            self.attempt = max(self.attempt, 5)
        bound = min(60000, 500 * 2**self.attempt)
        self.attempt = min(16, self.attempt + 1)
        self.wait(max(random * bound, random * spread), random * spread)

    def keep(self, host):
        self.kept = None if host == self.base else host
        self.fails, self.fail_since = 0, None

    # facts

    def start(self):
        self.forget_everything()
        if self.follows:
            self.kept = self.kept_in_record()
        self.dial()

    def timer(self):
        if self.now - self.until >= 5000:
            self.fails, self.fail_since = 0, None
            self.woken["woke"] = self.now
        self.credit = True
        self.dial()

    def wake(self, kind):
        self.fails, self.fail_since = 0, None
        if self.state != "reconnecting" or self.now - self.woken.get(kind, -1e9) < 5000:
            return
        if self.spread_until >= self.until:
            return
        self.woken[kind] = self.now
        if self.spread_until > self.now:
            self.until = self.spread_until
        else:
            self.dial()

    def dial_failed(self, random):
        if self.kept is not None and self.host == self.kept:
            self.fails += 1
            if self.fails == 1:
                self.fail_since = self.now
            if self.fails >= 3 and self.now - self.fail_since >= 30000:
                self.drop()
        self.back_off(random)

    def drop(self):
        self.keep(self.base)
        self.hops = 0
        self.write(self.home, None)

    def verified(self, spread):
        self.state, self.since = "online", self.now
        self.spread = 0 if spread is None else clamp_spread(spread)
        self.hops = 0
        self.keep(self.host)
        self.write(self.home, self.kept)

    def link_ended(self):
        """What the link's age earned."""
        age = self.now - self.since
        if age >= 10000:
            self.credit = True
        if age >= 600000:
            self.replaced = False
        return age

    def lost(self, random, code, by_peer):
        if self.link_ended() >= 60000:
            self.attempt = 0
        if by_peer and code == 4409:
            self.replaced = True
        self.back_off(random, self.spread if by_peer and code in BROKEN else 0)

    def redirected(self, random, reason):
        before_hello_ok = self.state == "connecting"
        good = self.follows and shard_host_ok(reason, self.base) and reason != self.host
        if self.follows and before_hello_ok and self.hops >= 1:
            self.drop()
            return self.back_off(random)
        if not good:
            return self.dial_failed(random) if before_hello_ok else self.lost(random, 4421, True)
        if not before_hello_ok:
            self.link_ended()
        self.keep(reason)
        self.hops = 1
        if not self.credit:
            return self.back_off(random)
        self.credit = False
        return self.dial()

    def restarting(self, random, reason):
        if self.state == "connecting":
            return self.dial_failed(random)
        self.link_ended()
        self.attempt = 0
        spread = random * restart_spread(reason)
        return self.wait(spread, spread)

    def rehomed(self, home):
        if home == self.home:
            return
        self.write(home or self.home, None)
        self.forget_everything()
        self.home = home
        if home is None:
            self.state = "unlinked"
        else:
            self.dial()

    def ended(self, step, random):
        """The dial or the link ends by what the service, or what is in its place, does."""
        online = self.state == "online"
        same(self.state in ("connecting", "online"), True, step["do"])
        if step["do"] == "silence":
            self.now += 62500 if online else 15000
        code = step.get("code")
        if code == 4421:
            self.redirected(random, step["reason"])
        elif code == 4503:
            self.restarting(random, step["reason"])
        elif online:
            self.lost(random, code, step["do"] != "silence")
        else:
            self.dial_failed(random)

    def play(self, step):
        self.now += step.get("afterMs", 0)
        do = step["do"]
        if do == "start":
            if "record" in step:
                self.record = step["record"].encode("utf-8")
            self.home = step.get("home", self.home)
            self.start()
        elif do == "disk":
            self.can_write = step["writes"] == "work"
        elif do == "wait":
            same(self.state, "reconnecting", do)
            self.now = self.until + step.get("lateMs", 0)
            self.timer()
        elif do in ("woke", "network-changed"):
            self.wake(do)
        elif do in ("unlink", "rehome"):
            self.rehomed(step.get("home"))
        elif do == "verify":
            same(self.state, "connecting", do)
            self.verified(step.get("spreadMs"))
        else:
            self.ended(step, step.get("random", 0))


def check_link_sequence(case):
    link = Link(case["base"], case["home"], case["follows"])
    for number, step in enumerate(case["steps"], 1):
        place, expect = "step %d (%s)" % (number, step["do"]), step["expect"]
        link.play(step)
        same(link.dials, expect["dials"], place)
        link.dials = []
        same(link.state, expect["state"], place)
        same_ms(link.until - link.now if link.state == "reconnecting" else None, expect["waitMs"], place)
        same(link.kept_in_record(), expect["kept"], place)
        if "record" in expect:
            same(json.loads(link.record), expect["record"], place)


# --- replay ----------------------------------------------------------------------------------------------------------


def text_of(recipe):
    return recipe if isinstance(recipe, str) else bytes_of(recipe).decode("utf-8")


LINK_CHECKS = {
    ("link-hosts", "cases"): lambda case: same(shard_host_ok(case["host"], case["base"]), case["expect"]),
    ("link-hosts", "bases"): lambda case: same(base_ok(case["base"]), case["expect"]),
    ("link-spreads", "cases"): lambda case: same(restart_spread(case["reason"]), case["expectMs"]),
    ("link-spreads", "fields"): lambda case: same(clamp_spread(case["spreadMs"]), case["expectMs"]),
    ("link-tokens", "cases"): lambda case: same(link_token(text_of(case["token"])), case["expect"]),
    ("link-records", "cases"): check_record,
    ("link-frames", "cases"): check_frame,
    ("link-signatures", "keys"): check_key,
    ("link-signatures", "proofs"): check_proof,
    ("link-signatures", "helloOks"): check_hello_ok,
    ("link-sequences", "sequences"): check_link_sequence,
}
