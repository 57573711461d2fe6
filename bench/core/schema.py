# Whether a document is what results.schema.json says.
# SPDX-License-Identifier: Apache-2.0
"""The part of JSON Schema that the schema of results uses. A keyword beyond it is an error, not a rule that nobody checks."""
import json
import pathlib
import re

SCHEMA_FILE = pathlib.Path(__file__).with_name("results.schema.json")

_TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}
_SAYS_NOTHING = {"$schema", "$defs", "title", "description"}


def _same(a, b):
    return type(a) is type(b) and a == b


def _shown(value):
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


class _Validator:
    def __init__(self, schema):
        self.schema = schema

    def findings(self, value, rule, at):
        """What is wrong with `value`, one sentence each."""
        for keyword, wanted in rule.items():
            if keyword in _SAYS_NOTHING:
                continue
            check = getattr(self, "_" + keyword.lstrip("$"), None)
            if check is None:
                raise ValueError(f"the schema uses {keyword}, which is not checked")
            yield from check(value, wanted, at, rule)

    def _ref(self, value, reference, at, _):
        yield from self.findings(value, self.schema["$defs"][reference.removeprefix("#/$defs/")], at)

    def _type(self, value, types, at, _):
        types = [types] if isinstance(types, str) else types
        if not any(_TYPES[name](value) for name in types):
            yield f"{at} is {_shown(value)}, not of type {' or '.join(types)}"

    def _const(self, value, wanted, at, _):
        if not _same(value, wanted):
            yield f"{at} is {_shown(value)}, not {_shown(wanted)}"

    def _enum(self, value, allowed, at, _):
        if not any(_same(value, one) for one in allowed):
            yield f"{at} is {_shown(value)}, none of {', '.join(map(_shown, allowed))}"

    def _anyOf(self, value, rules, at, _):
        found = [list(self.findings(value, rule, at)) for rule in rules]
        if all(found):  # what is inside of a value says more than that the value is none of the others
            inside = [one for one in found if not one[0].startswith(f"{at} is ")]
            yield from (inside or found)[0]

    def _required(self, value, names, at, _):
        if isinstance(value, dict):
            for name in names:
                if name not in value:
                    yield f"{at} has no {name}"

    def _properties(self, value, rules, at, _):
        if isinstance(value, dict):
            for name, rule in rules.items():
                if name in value:
                    yield from self.findings(value[name], rule, f"{at}.{name}")

    def _additionalProperties(self, value, allowed, at, rule):
        if not isinstance(value, dict):
            return
        for name in value.keys() - rule.get("properties", {}).keys():
            if allowed is False:
                yield f"{at} has {name}, which the schema does not know"
            elif allowed is not True:
                yield from self.findings(value[name], allowed, f"{at}.{name}")

    def _items(self, value, rule, at, _):
        if isinstance(value, list):
            for number, item in enumerate(value):
                yield from self.findings(item, rule, f"{at}[{number}]")

    def _minItems(self, value, least, at, _):
        if isinstance(value, list) and len(value) < least:
            yield f"{at} has {len(value)} items; at least {least} are needed"

    def _minLength(self, value, least, at, _):
        if isinstance(value, str) and len(value) < least:
            yield f"{at} is {_shown(value)}; at least {least} characters are needed"

    def _minimum(self, value, least, at, _):
        if _TYPES["number"](value) and not value >= least:
            yield f"{at} is {value}, below {least}"

    def _pattern(self, value, pattern, at, _):
        if isinstance(value, str) and not re.search(pattern, value):
            yield f"{at} is {_shown(value)}, not of the form {pattern}"


def findings(document, schema=None):
    """What is wrong with a document that json.load gave, one sentence each; empty where it is valid."""
    if schema is None:
        schema = json.loads(SCHEMA_FILE.read_text())
    return list(_Validator(schema).findings(document, schema, "results"))
