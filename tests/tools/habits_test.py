#!/usr/bin/env python3
"""tools/checks/habits.py catches each habit, planted in a throw-away tree, and accepts code that only
looks like one.

    habits_test.py ROOT
"""

import os
import unittest

import checks_test  # finds the checks
import habits


class HabitsTest(checks_test.Tree):
    def assert_caught(self, line, part, path="common/bad.cc"):
        self.write(path, "// a ? b ? c : d, e; std::to_string(1) + x\n" + line + "\n")
        faults = habits.faults_of(self.root)
        self.assertEqual(len(faults), 1, (line, faults))
        self.assertTrue(faults[0].startswith(path + ":2:"), faults)
        self.assertIn(part, faults[0])
        os.remove(os.path.join(self.root, path))

    def assert_clean(self, line, path="common/good.cc"):
        self.write(path, line + "\n")
        self.assertEqual(habits.faults_of(self.root), [], line)
        os.remove(os.path.join(self.root, path))

    def test_a_fault_is_an_exit_code(self):
        self.assertEqual(self.exit_code("habits"), 0)
        self.write("common/bad.cc", "[[fallthrough]];\n")
        self.assertEqual(self.exit_code("habits"), 1)

    def test_catches_second_implementations_of_shared_functions(self):
        for line, part in (('auto s = "a" + std::to_string(f(b(c)));', "cat.h"),
                           ('auto s = std::to_string(f(b)) + "a";', "cat.h"),
                           ("out += std::to_string(n);", "cat.h"),
                           ("std::from_chars(a, b, n);", "parse.h"),
                           ('constexpr char kHex[] = "0123456789ABCDEF";', "hex.h"),
                           ('out += "0123456789abcdef"[n & 15];', "hex.h"),
                           ("uint64_t h = 0xcbf29ce484222325;", "fnv.h"),
                           ("h *= 0x100000001B3;", "fnv.h"),
                           ("if (pid_ != getpid()) return;", "fork.h"),
                           ("switch (a) { case 1: f(); [[fallthrough]]; case 2: g(); }", "case")):
            self.assert_caught(line, part)

    def test_the_shared_functions_and_similar_code_pass(self):
        self.assert_clean("return std::from_chars(a, b, n);", "common/base/parse.h")
        for line in ("json[key] = std::to_string(n);", "f(std::to_string(n));  // + 1",
                     'MakeAlphabet("0123456789ABCDEFGHIJ");', "identity.pid = pid();"):
            self.assert_clean(line)

    def test_catches_a_choice_within_a_choice(self):
        for line in ("int x = a ? 1 : b ? 2 : 3;", "int x = a ? (b ? 1 : 2) : 3;",
                     "f(a ? g(b ? 1 : 2) : 3);"):
            self.assert_caught(line, "?:")
        for line in ("f(a ? 1 : 2, b ? 3 : 4);", "int x = (a ? 1 : 2) + (b ? 3 : 4);",
                     'char c = a ? \'?\' : "?"[0];'):
            self.assert_clean(line)

    def test_catches_a_comma_that_joins_statements(self):
        for line in ("f(), g();", "if (a) f(1, 2), g();", "return f(), true;", "a = 1, b = 2;",
                     "++a, --b;", "else x.y = 1, z();", "post([this] { f(), g(); });",
                     "case 1: f(a), g();", "switch (a) { case Kind::kA: return f(), true; }"):
            self.assert_caught(line, "comma")
        for line in ("int a = 1, b = 2;", "const int64_t shares = x, found = f(a, b);",
                     "std::map<int, int> a, b;", "f(a, b);", "x = {1, 2};", "f({a, b}, c);",
                     "for (int i = 0, j = 0; i < 2; ++i, ++j) f(i, j);", "return {a, b};",
                     "A::A(int a, int b) : a_(a), b_{b} { f(); }", "enum class E { kA, kB };",
                     "template <typename A, typename B> void f(A, B);",
                     "friend bool operator==(const A&, const A&) = default;"):
            self.assert_clean(line)

    def test_catches_a_choice_in_place_of_an_if(self):
        for line in ("ok ? f() : g();", "if (a) ok ? f() : g();", "for (;;) a == b ? x = 1 : x = 2;",
                     "switch (a) { case Kind::kA: b ? f() : g(); }", "post([this] { a_ ? f() : g(); });"):
            self.assert_caught(line, "place of an if")
        for line in ("x = ok ? f() : g();", "const int x = a == b ? 1 : 2;", "return a ? f() : g();",
                     "out << (a ? 1 : 2);", "out += a ? 1 : 2;", "f(a ? 1 : 2);", "throw a ? b : c;",
                     "co_return a ? f() : g();"):
            self.assert_clean(line)

    def test_catches_a_default_beside_enumerators(self):
        self.assert_caught("switch (a) { case Code::kOk: return 1; default: return 2; }", "default")
        self.assert_caught("switch (a) { case kOk: { f(); break; } default: break; }", "default")
        self.assert_clean("switch (c) { case 'a': return 1; default: return 2; }")
        self.assert_clean("switch (error) { case ENOENT: return 1; default: return 2; }")

    def test_catches_a_divider_on_two_lines(self):
        for path in ("common/bad.cc", "tests/bad_test.cc"):
            self.assert_caught("// --- values ---\n// ------------", "divider", path)
        self.assert_clean("// --- values ------------------\n// What they are.")

    def test_an_exception_excuses_only_its_own_habit(self):
        place = habits.NOT_YET["comma"][0]
        self.assert_clean("return f(), true;", place)
        self.assert_caught("h *= 0x100000001b3;", "fnv.h", place)


if __name__ == "__main__":
    unittest.main()
