# Plans as they are told: refusals in full, and the picture of who owns which element against the digits themselves.
# SPDX-License-Identifier: Apache-2.0
import itertools
import json
import re
import subprocess
import xml.etree.ElementTree as xml

from tool import DEVICES, DONE, TOOL, ToolTest, main

SVG = "{http://www.w3.org/2000/svg}"
LIMIT_ROWS, LIMIT_COLUMNS = 32, 64  # of what is drawn


def size(text, extents):
    """A size as a plan prints it: a number, an axis, an axis by a number rounded up, or a product of these."""
    product = 1
    for factor in text.split("*"):
        name, _, over = factor.partition("/")
        product *= int(name) if name.isdigit() else -(-extents[name] // int(over or 1))
    return product


def digits(text, extents):
    """{axis: [(resource, position, size), fast to slow]} of a phase."""
    axes = {}
    for axis, list_ in re.findall(r"(\w+) = ((?:\([^)]*\))+)", text):
        axes[axis] = [(res, size(pos, extents), size(of, extents)) for res, pos, of in re.findall(r"\((\w+), ([^,]+), ([^)]+)\)", list_)]
    return axes


def owners(placement, axes, extents):
    """{element: (group, lane)} by going through every worker and everything that it holds; a worker of a lower index owns what two hold."""
    groups, lanes = 1, 1
    for list_ in placement.values():
        for res, pos, of in list_:
            groups = max(groups, pos * of) if res == "grid" else groups
            lanes = max(lanes, pos * of) if res == "lane" else lanes
    found = {}
    for group, lane in itertools.product(range(groups), range(lanes)):
        held = []
        for axis in axes:
            coordinates, weight = {0}, 1
            for res, pos, of in placement[axis]:
                own = {"grid": [group // pos % of], "lane": [lane // pos % of]}.get(res, range(of))
                coordinates = {c + weight * i for c in coordinates for i in own}
                weight *= of
            held.append([c for c in sorted(coordinates) if c < extents[axis]])
        for element in itertools.product(*held):
            found.setdefault(element, (group, lane))
    return found


class Plan(ToolTest):
    def call(self, *arguments):
        return subprocess.run([TOOL, *arguments], capture_output=True, text=True)

    def picture(self, program, extents, arguments, *knobs):
        """(lines of the mapping, [(caption, {element: (group, lane)}), ...]) of the simulator's plan."""
        file = self.path / "plan.svg"
        words = [program, *arguments, "--device", "sim", *[word for knob in knobs for word in ("--set", knob)]]
        result = self.call("plan", *words, "--json", "--svg", str(file))
        self.assertEqual(result.returncode, DONE, result.stdout + result.stderr)
        root, drawn = xml.parse(file).getroot(), []
        self.assertEqual(root.tag, SVG + "svg")
        for node in root:
            if node.tag == SVG + "text" and node.get("font-size"):
                drawn.append((node.text, {}))
            elif node.tag == SVG + "rect":
                element = tuple(map(int, node.get("data-element").split()))
                self.assertNotIn(element, drawn[-1][1])
                drawn[-1][1][element] = (int(node.get("data-group")), int(node.get("data-lane")))
                title = node.find(SVG + "title").text
                self.assertIn(f"group {node.get('data-group')}, lane {node.get('data-lane')}", title)
        return json.loads(result.stdout)["mapping"], [one for one in drawn if one[1]]

    def test_the_picture_shows_the_owners(self):
        for rows, cols in ((1, 1), (3, 40), (7, 37), (40, 5), (2, 100)):
            x = [f"x=f32[{rows},{cols}]:zeros"]
            for knobs in ((), ("lanes=1",), ("lane_axes=row",), ("lanes=4", "tile.col=3"), ("lane_axes=row", "chunk.row=2", "lanes=2"), ("tile.row=4", "home.e=reload"),
                          ("lane_axes=row", "lanes=4", "tile.row=2", "home.e=reload", "chunk.row=1")):  # fmt: skip
                with self.subTest(rows=rows, cols=cols, knobs=knobs):
                    extents = {"row": rows, "col": cols}
                    mapping, drawn = self.picture("softmax", extents, x, *knobs)
                    phases = [line for line in mapping if line.startswith("phase ")]
                    self.assertEqual(len(drawn), len(phases))
                    expected = owners(digits(phases[0], extents), ["row", "col"], extents)
                    self.assertEqual(len(expected), rows * cols)
                    shown = {e: w for e, w in expected.items() if e[0] < LIMIT_ROWS and e[1] < LIMIT_COLUMNS}
                    self.assertEqual(drawn[0][1], shown)
                    self.assertEqual("; the first" in drawn[0][0], len(shown) < len(expected))

    def test_parts_and_results_have_owners_too(self):
        for cols in (1, 9, 37):
            extents = {"row": 3, "col": cols}
            mapping, drawn = self.picture("softmax", extents, [f"x=f32[3,{cols}]:zeros"], "split.col=4", "lanes=2", "tile.col=1")
            phases = [line for line in mapping if line.startswith("phase ")]
            self.assertEqual(len(phases), 3)  # parts of the largest, of the sum, and the store
            for phase, (caption, shown) in zip(phases, drawn):
                expected = owners(digits(phase, extents), ["row", "col"], extents)
                self.assertEqual(len({w[0] for w in expected.values()}), len({w[0] for w in shown.values()}))
                self.assertEqual(shown, expected, caption)
        extents = {"row": 5, "col": 12}
        mapping, drawn = self.picture("sum", extents, ["x=f32[5,12]:zeros"])
        self.assertEqual(drawn[0][1], {(r,): (r, 0) for r in range(5)})

    def test_every_refusal_is_told_in_full(self):
        if "cpu" not in DEVICES:
            return
        result = self.call("plan", "softmax", "x=f32[1024,4096]:zeros", "--device", "cpu", "--json")
        plan = json.loads(result.stdout)
        self.assertTrue(plan["refusals"])
        for refusal in plan["refusals"]:
            self.assertEqual(set(refusal), {"knobs", "reason", "where", "witness"})
            again = self.call("plan", "softmax", "x=f32[1024,4096]:zeros", *[w for k, v in refusal["knobs"].items() for w in ("--set", f"{k}={v}")])
            self.assertEqual(again.returncode, 2, again.stdout)
            self.assertIn(refusal["witness"], again.stderr)
        text = self.call("plan", "softmax", "x=f32[1024,4096]:zeros", "--device", "cpu").stdout
        counts = {reason: int(count) for count, reason in re.findall(r"^  refused (\d+) (\w+): ", text, re.MULTILINE)}
        reasons = [refusal["reason"] for refusal in plan["refusals"]]
        self.assertEqual(counts, {reason: reasons.count(reason) for reason in reasons})
        for terms in (plan["cost_us"], plan["candidates"][1]["cost_us"]):
            self.assertEqual(set(terms), {"compute", "memory", "start", "total"})


if __name__ == "__main__":
    main()
