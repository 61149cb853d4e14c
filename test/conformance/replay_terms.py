"""What all replays need: the bytes of a vector's recipe, and comparing."""


def bytes_of(recipe):
    parts = [recipe] if isinstance(recipe, str) else recipe
    out = b""
    for part in parts:
        if isinstance(part, str):
            out += part.encode("utf-8")
        elif "hex" in part:
            out += bytes.fromhex(part["hex"])
        else:
            out += part["repeat"].encode("utf-8") * part["count"]
    return out


class Different(Exception):
    pass


def same(actual, expected, place=""):
    if actual != expected:
        raise Different("%s: %r instead of %r" % (place, actual, expected))


def same_ms(actual, expected, place=""):
    if actual is None or expected is None or abs(actual - expected) > 1e-6:
        same(actual, expected, place)
