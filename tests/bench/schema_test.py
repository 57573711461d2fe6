# The schema of results: what the runner writes is valid; a field that is missing, of a wrong type or unknown is rejected by name.
# SPDX-License-Identifier: Apache-2.0
import copy
import unittest

from bench.core import results, schema
from declared import BenchTest, Cosmati, json

WRONG = {"object": [], "array": {}, "string": 3, "boolean": "true", "null": 1, "integer": 1.5, "number": "fast"}


def rule_of(rule):
    while "$ref" in rule:
        rule = {**SCHEMA["$defs"][rule["$ref"].removeprefix("#/$defs/")], **{k: v for k, v in rule.items() if k != "$ref"}}
    return rule


SCHEMA = json.loads(schema.SCHEMA_FILE.read_text())


def objects(value, rule, path=()):
    """(path, rule) of every object in a document that the schema gives properties, one of each kind of list item."""
    rule = rule_of(rule)
    for choice in rule.get("anyOf", []):
        choice = rule_of(choice)
        if choice.get("type") == "object" and isinstance(value, dict):
            rule = choice
    if isinstance(value, dict):
        if "properties" in rule:
            yield path, rule
        for name, child in rule.get("properties", {}).items():
            if name in value:
                yield from objects(value[name], child, (*path, name))
    elif isinstance(value, list) and value and "items" in rule:
        yield from objects(value[0], rule["items"], (*path, 0))


def at(document, path):
    for step in path:
        document = document[step]
    return document


class Schema(BenchTest):
    def setUp(self):
        super().setUp()
        _, self.document = self.execute([Cosmati(), "wrong in one element", "not here", "right", "copy"], metrics=("e2e_batch", "e2e_single"))
        self.assertEqual(schema.findings(self.document), [])

    def broken(self, path, change):
        document = copy.deepcopy(self.document)
        change(at(document, path))
        return schema.findings(document)

    def test_every_missing_field_is_rejected(self):
        count = 0
        for path, rule in objects(self.document, SCHEMA):
            self.assertEqual(set(rule["required"]), set(rule["properties"]), path)
            for name in rule["required"]:
                found = self.broken(path, lambda o, name=name: o.pop(name))
                self.assertTrue(any(f"has no {name}" in finding for finding in found), (path, name, found))
                count += 1
        self.assertGreater(count, 100)

    def test_every_wrong_type_is_rejected(self):
        count = 0
        for path, rule in objects(self.document, SCHEMA):
            for name, child in rule["properties"].items():
                child = rule_of(child)
                types = child.get("type", [])
                wrong = next((WRONG[t] for t in ([types] if isinstance(types, str) else types)), {"not": "this"})
                found = self.broken(path, lambda o, name=name, wrong=wrong: o.update({name: wrong}))
                self.assertTrue(found, (path, name, wrong))
                self.assertIn(name, found[0])
                count += 1
        self.assertGreater(count, 100)

    def test_every_unknown_field_is_rejected(self):
        for path, _ in objects(self.document, SCHEMA):
            found = self.broken(path, lambda o: o.update(surplus=1))
            self.assertTrue(any("surplus" in finding for finding in found), path)

    def test_values_out_of_range(self):
        for path, name, value in (
            ((), "version", 2), ((), "status", "good"), (("settings",), "rounds", 0), (("settings",), "metrics", []),
            (("cases", 0, "samples", 0), "calls", 0), (("cases", 0, "samples", 0), "seconds", [-1.0]),
            (("cases", 0, "samples", 0), "seconds", []), (("cases", 0, "samples", 0), "calls", True),
            (("cases", 0, "summaries", 0), "unit", "ms"), (("cases", 0, "pairs", 0), "ratios", [1.0, None]),
            (("cases", 0, "program"), "sha256", "0" * 63), (("cases", 0), "name", ""), (("cases", 0, "variants", 0), "kind", "ours"),
        ):  # fmt: skip
            with self.subTest(name=name, value=value):
                self.assertTrue(self.broken(path, lambda o, name=name, value=value: o.update({name: value})))

    def test_a_keyword_that_is_not_checked_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "maxLength"):
            schema.findings("x", {"maxLength": 3})

    def test_every_part_of_the_schema_says_what_it_allows(self):
        def walk(rule, path):
            if isinstance(rule, dict) and rule.get("type") == "object":
                self.assertIn("additionalProperties", rule, path)
            for key, child in rule.items() if isinstance(rule, dict) else enumerate(rule) if isinstance(rule, list) else ():
                walk(child, f"{path}.{key}")

        walk(SCHEMA, "schema")


class Folders(BenchTest):
    def test_folders_are_never_written_twice(self):
        import datetime

        day = datetime.date(2026, 2, 3)
        names = [results.make_folder(self.path / "deep", "My rows, CPU", day).name for _ in range(3)]
        self.assertEqual(names, ["2026-02-03-my-rows-cpu", "2026-02-03-my-rows-cpu-2", "2026-02-03-my-rows-cpu-3"])

    def test_what_is_no_results_is_refused_by_name(self):
        self.execute([Cosmati()])
        good = (self.folder / "results.json").read_text()
        path = self.path / "results.json"
        for text, part in (
            (good[: len(good) // 2], "is not JSON"),
            ("[]", "holds no results of a benchmark"),
            (json.dumps({"schema": "another"}), "holds no results of a benchmark"),
            (good.replace('"version": 1', '"version": 7', 1), "is of version 7 of the schema"),
            (good.replace('"cold": false', '"cold": 0', 1), "results.settings.cold is 0, not of type boolean"),
        ):
            path.write_text(text)
            with self.assertRaises(results.BadResults) as raised:
                results.load(path)
            self.assertIn(part, str(raised.exception))
            self.assertIn(str(path), str(raised.exception))
        with self.assertRaisesRegex(results.BadResults, "cannot be read"):
            results.load(self.path / "none.json")

    def test_a_file_that_cannot_be_written_leaves_nothing_behind(self):
        (self.path / "results.json").mkdir()
        with self.assertRaisesRegex(results.BadResults, "cannot be written"):
            results.write_text(self.path / "results.json", "x")
        self.assertEqual([p.name for p in self.path.iterdir()], ["results.json"])


if __name__ == "__main__":
    unittest.main()
