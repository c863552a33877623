"""Reads cases.json; what a case looks up on this machine."""

import json


def filled(value, words):
    """`value` with each {word} replaced; one that is nothing but a word may become any value."""
    if isinstance(value, str):
        if value[:1] == "{" and value[1:-1] in words:
            return words[value[1:-1]]
        for word, text in words.items():
            value = value.replace("{" + word + "}", str(text))
        return value
    if isinstance(value, dict):
        return {key: filled(one, words) for key, one in value.items()}
    return [filled(one, words) for one in value] if isinstance(value, list) else value


def load(path):
    """Every case, those with `each` once for each of its values; not those that are played elsewhere."""
    with open(path) as file:
        cases = [case for case in json.load(file) if "elsewhere" not in case]
    spread = []
    for case in cases:
        (word, values), = case.get("each", {"": [""]}).items()
        spread += [filled(case, {word: value} if word else {}) for value in values]
    return spread


def half_closed_ports():
    """The server's port of each connection that its server has closed, and the client has not."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return [int(row[2].split(":")[1], 16) for row in rows if row[3] == "08"]  # CLOSE_WAIT
