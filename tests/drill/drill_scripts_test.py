"""Tests that the drills of this folder use only what their stages have: tools/versions alone plays some of them, rarely.

    drill_scripts_test.py ROOT

Reads the scripts and does not run them. In scenarios, `drill` is the class that the script defines or imports; everywhere,
`zookeeper` is the class in tests/conformance/cluster.py, or the stage's Ensemble.
"""

import ast
import os
import sys
import unittest

ROOT = os.path.abspath(sys.argv[1])
DRILLS = os.path.join(ROOT, "tests", "drill")
SCRIPTS = sorted(name for name in os.listdir(DRILLS) if name.endswith("_drill.py"))


def parsed(*path):
    with open(os.path.join(ROOT, "tests", *path)) as file:
        return ast.parse(file.read())


def classes(tree):
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def attributes(name, known):
    """The methods of a class and what they assign to `self`, with those of its bases."""
    found = attributes("Ensemble", known) if name == "ZooKeeper" and "Ensemble" in known else set()
    for node in ast.walk(known[name]):
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            found.add(node.attr)
    return found.union(*(attributes(base.id, known) for base in known[name].bases))


def unknown(tree, known):
    """The uses of attributes that do not exist, as LINE: TEXT."""
    own = classes(tree)
    drill = next((name for name, node in own.items() if "Drill" in map(ast.unparse, node.bases)), "Drill")
    kinds = {"drill": drill} | {f"{one}zookeeper": "ZooKeeper" for one in ("drill.", "self.", "drill.cluster.", "self.cluster.")}
    uses = [(node, kinds.get(ast.unparse(node.value))) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    uses += [(node, name) for name in own for node in ast.walk(own[name])
             if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"]
    return [f"{node.lineno}: {ast.unparse(node)}" for node, name in uses if name and node.attr not in attributes(name, known)]


class DrillScriptsTest(unittest.TestCase):
    def test_drills_use_only_what_their_stages_have(self):
        for script in SCRIPTS:
            tree, stage = parsed("drill", script), {}
            for name in {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}:
                stage |= classes(parsed("drill", f"{name}.py"))
            known = classes(parsed("conformance", "cluster.py")) | stage | classes(tree)
            with self.subTest(script):
                self.assertEqual([], unknown(tree, known))

    def test_finds_what_is_missing(self):
        known = classes(ast.parse("class ZooKeeper:\n def copy(self): pass\nclass Drill:\n def __init__(self): self.zookeeper = 1"))
        text = "class Mixed(Drill):\n def one(self): self.zookeeper.copy(); self.gone()\ndef two(drill): drill.one(); drill.zookeeper.lost()"
        tree = ast.parse(text)
        self.assertEqual(["3: drill.zookeeper.lost", "2: self.gone"], unknown(tree, known | classes(tree)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
