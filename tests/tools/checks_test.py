#!/usr/bin/env python3
"""Tests each check of tools/checks on small trees with and without its faults: checks_test.py ROOT"""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = sys.argv.pop(1)
sys.path.insert(0, os.path.join(ROOT, "tools", "checks"))
sys.dont_write_bytecode = True

import cpp  # noqa: E402
import layers  # noqa: E402
import lengths  # noqa: E402
import readmes  # noqa: E402
import tasks  # noqa: E402
import tree  # noqa: E402

# The rules of the temporary trees, so that the real ones can change.
TABLE = """
room common             ->
room registry           -> common
room server/issue       -> common
room server/plugins     -> common server/issue
room server/store       -> common server/issue registry
room server/front       -> common thrift/gen/ server/issue
room server/embedded.*  -> common registry server/issue server/plugins
room server             -> common thrift/gen/ registry server/front
room client/view.h client/report.* -> common
room client/wire        -> common thrift/gen/ client/view.h
room client             -> common client/view.h client/wire
once client             -> registry/directory.h
room tools              -> common registry client
room tests              -> common/ registry/ server/ client/ tools/
vendor sys/* boost/*    -> *
vendor zookeeper/*      -> registry/zk.cc tests
vendor boost/asio*      -> server/front client
vendor openssl/*        -> server/plugins/obfuscate.cc server/front
vendor mysql/*          -> server/store/*mysql*.cc
vendor hiredis/*        -> server/store/*redis*.cc
vendor gtest/*          -> tests
"""


def planted_table():
    real = cpp.read(ROOT, "tools/layers.txt").splitlines()
    return TABLE + "\n".join(line for line in real if line.startswith("call "))


class Folder(unittest.TestCase):
    """An empty tree."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


class Tree(Folder):
    """A small repository in which no check finds a fault."""

    def setUp(self):
        super().setUp()
        for path, text in {
                "tools/layers.txt": planted_table(), "common/README.md": "# common", "tests/README.md": "# tests",
                "common/CMakeLists.txt": "firn_library(common HEADERS clock.h SOURCES clock.cc)",
                "common/clock.h": "#pragma once\n#include <string>\n",
                "common/clock.cc": '#include "common/clock.h"\n#include <sys/random.h>\n'}.items():
            self.write(path, text)

    def exit_code(self, check):
        script = os.path.join(ROOT, "tools", "checks", check + ".py")
        return subprocess.run([sys.executable, script, self.root], stdout=subprocess.DEVNULL,
                              check=False).returncode


class LayersTest(Tree):
    def faults(self):
        rules = layers.Rules(cpp.read(self.root, "tools/layers.txt"))
        return layers.Checker(self.root, rules).check()

    def assert_caught(self, path, text, *parts):
        """Asserts that there is exactly one fault, in this file, with these words."""
        self.write(path, text)
        faults = self.faults()
        self.assertEqual(len(faults), 1, faults)
        self.assertTrue(faults[0].startswith(path + ":"), faults)
        for part in parts:
            self.assertIn(part, faults[0])
        os.remove(os.path.join(self.root, path))

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.exit_code("layers"), 0)

    def test_a_fault_is_an_exit_code(self):
        self.write("common/bad.cc", "#include <zookeeper/zookeeper.h>\n")
        self.assertEqual(self.exit_code("layers"), 1)

    def test_catches_an_include_that_the_table_does_not_allow(self):
        self.write("server/issue/issuer.h", "")
        self.write("registry/directory.h", "")
        for path in ("common/bad.cc", "registry/bad.h", "client/bad.cc", "tools/bad.cc"):
            self.assert_caught(path, '\n#include "server/issue/issuer.h"\n', ":2:", "may not")
        for path in ("server/issue/bad.cc", "server/plugins/bad.cc", "server/front/bad.cc"):
            self.assert_caught(path, ' #  include "registry/directory.h"', "may not include")

    def test_the_embedded_files_have_a_rule_of_their_own(self):
        self.write("server/front/listener.h", "")
        self.assert_caught("server/embedded.cc", '#include "server/front/listener.h"', "embedded")
        self.write("server/main.cc", '#include "server/front/listener.h"\n')
        self.assertEqual(self.faults(), [])

    def test_an_include_for_one_file_is_for_one_file(self):
        self.write("registry/directory.h", "")
        self.write("client/a.cc", '#include "registry/directory.h"')
        self.assertEqual(self.faults(), [])
        self.assert_caught("client/b.cc", '#include "registry/directory.h"', "one file of client")
        self.write("registry/records.h", "")
        self.assert_caught("client/b.cc", '#include "registry/records.h"', "may not include")

    def test_patterns_may_define_a_room(self):
        for path in ("client/view.h", "client/report.h", "client/wire/wire.h"):
            self.write(path, "")
        self.write("client/wire/codec.cc", '#include "client/report.h"\n')
        self.write("client/client.cc", '#include "client/report.h"\n#include "client/wire/wire.h"\n')
        self.assertEqual(self.faults(), [])
        self.assert_caught("client/report.cc", '#include "client/wire/wire.h"', "may not include")

    def test_a_room_does_not_stand_for_the_rooms_below_it(self):
        self.write("server/issue/issuer.h", "")
        self.assert_caught("server/bad.cc", '#include "server/issue/issuer.h"', "may not include")

    def test_catches_a_cycle_of_rooms(self):
        self.write("tools/layers.txt", planted_table() + "\nroom common -> server/issue\n")
        faults = self.faults()
        self.assertEqual(len(faults), 1, faults)
        self.assertIn("a cycle: common -> server/issue -> common", faults[0])

    def test_the_drawing_of_the_rooms_equals_the_table(self):
        def drawn(*lines):
            self.write("ARCHITECTURE.md", "# House\n\n```mermaid\nflowchart TB\n  " +
                       "\n  ".join(lines) + "\n```\n")
            return [fault for fault in self.faults() if fault.startswith("ARCHITECTURE.md:")]

        boxes = ('front["server/front: doors"] --> issue', 'registry["registry: r"] --> common',
                 'issue["server/issue: core"] --> common["common: words"]',
                 'client["client: c"] -. "one file" .-> registry', 'others["client/go"] -.-> front')
        self.assertEqual(drawn(*boxes), [])
        self.assertIn("issue has an arrow to registry", drawn(*boxes, "issue --> registry")[0])
        self.assertIn("no arrows lead from front to issue",
                      drawn(boxes[0].replace("--> issue", "--> common"), *boxes[1:])[0])
        self.assertIn("no arrows lead from client to registry",
                      drawn(*boxes[:3], 'client["client: c"] --> common', boxes[4])[0])

    def test_catches_a_dependency_on_an_unknown_room(self):
        self.write("tools/layers.txt", planted_table() + "\nroom a -> server/isue\n")
        self.assertEqual(len(self.faults()), 1)
        self.assertIn("a points at server/isue, which is not a room", self.faults()[0])

    def test_a_folder_with_a_slash_stands_for_all_rooms_below_it(self):
        self.write("tools/layers.txt", planted_table() + "\nroom a/b ->\nroom c -> a/\n")
        self.write("a/b/one.h", "")
        self.write("c/two.cc", '#include "a/b/one.h"\n')
        self.assertEqual(self.faults(), [])

    def test_catches_a_header_that_is_not_named_from_the_root(self):
        self.assert_caught("tests/bad.cc", '#include "clock.h"', "may not include")
        self.assert_caught("common/bad.cc", '#include "common/none.h"', "not named from the root")

    def test_catches_a_vendor_header_outside_its_file(self):
        cases = {
            "registry/slot.cc": "zookeeper/zookeeper.h",
            "server/plugins/limit.cc": "openssl/evp.h",
            "server/issue/issuer.cc": "boost/asio.hpp",
            "tools/tags.cc": "mysql/mysql.h",
            "server/store/mysql_store.cc": "hiredis/hiredis.h",
            "common/layout.h": "gtest/gtest.h",
        }
        for path, header in cases.items():
            self.assert_caught(path, f"#include <{header}>", "is permitted only in")

    def test_vendor_headers_pass_in_their_files(self):
        self.write("registry/zk.cc", "#include <zookeeper/zookeeper.h>")
        self.write("server/plugins/obfuscate.cc", "#include <openssl/evp.h>")
        self.write("server/store/redis_store.cc", "#include <hiredis/hiredis.h>")
        self.write("server/front/listener.cc", "#include <boost/asio/ip/tcp.hpp>")
        self.assertEqual(self.faults(), [])

    def test_catches_an_unlisted_vendor_header(self):
        self.assert_caught("common/bad.cc", "#include <folly/Conv.h>", "is not listed in")

    def test_catches_a_file_outside_every_room(self):
        self.assert_caught("misc/bad.cc", "", "no room")

    def test_catches_clocks_sleeps_and_random_numbers(self):
        for call in ("std::chrono::system_clock::now()", "steady_clock::now()",
                     "clock_gettime(CLOCK_REALTIME, &t)", "gettimeofday(&t, nullptr)",
                     "x = time(nullptr)", "std::time(nullptr)", "::time(0)",
                     "std::this_thread::sleep_for(d)", "usleep(1)", "nanosleep(&t, &t)",
                     "; sleep(1)", "std::random_device d", "std::mt19937_64 m", "getrandom(b, 1, 0)",
                     "; rand()", "std::rand()", "srand(1)"):
            self.assert_caught("registry/bad.cc", f"void F() {{\n  {call};\n}}\n", ":2:", "call")

    def test_allows_clocks_where_they_belong_and_words_that_only_look_alike(self):
        self.write("common/time/system_clock.cc", "int64_t N() { return clock_gettime(0, 0); }")
        self.write("common/time/system_entropy.cc", "void F() { getrandom(p, 1, 0); }")
        self.write("server/main.cc", "auto t = std::chrono::steady_clock::now();")
        self.write("tests/support/wait.cc", "void F() { std::this_thread::sleep_for(d); }")
        self.write("registry/good.cc", "// sleeps: usleep(1)\n/* rand() */ auto s = \"time(0)\";\n"
                   "auto a = layout.time(); Tick time(nullptr_t); x.sleep(1); operand(); start_time(0); Layout::time(0); SeededEntropy random(7);\n"
                   "auto n = 1'000; auto r = R\"(getrandom(x))\"; auto m = 1'0'0;\n")
        self.assertEqual(self.faults(), [])

    def test_a_rule_that_cannot_be_read_is_an_error(self):
        with self.assertRaises(SystemExit):
            layers.Rules("layer common")


class LengthsTest(Tree):
    def function(self, head, lines):
        return f"namespace firn {{\n{head} {{\n" + "  F();\n" * (lines - 2) + "}\n}\n"

    def test_a_clean_tree_passes(self):
        self.assertEqual(lengths.faults_of(self.root), [])
        self.assertEqual(self.exit_code("lengths"), 0)

    def test_catches_a_long_file(self):
        self.write("common/long.cc", "\n" * 401)
        self.assertEqual(len(lengths.faults_of(self.root)), 1)
        self.assertEqual(self.exit_code("lengths"), 1)
        self.write("common/long.cc", "\n" * 400)
        self.assertEqual(lengths.faults_of(self.root), [])

    def test_catches_a_long_function_of_every_shape(self):
        for head in ("void F()", "Status Slot::Renew(Now now) const noexcept",
                     "Slot::Slot(int a) : a_{a}, b_{2}", "TEST_F(SlotTest, Renews)",
                     "template <class T>\nT F(T t)", "struct S {\n int f()"):
            extra = "}" if head.startswith("struct") else ""
            self.write("common/long.cc", self.function(head, 80) + extra)
            self.assertEqual(len(lengths.faults_of(self.root)), 1, head)
            self.write("common/long.cc", self.function(head, 60) + extra)
            self.assertEqual(lengths.faults_of(self.root), [], head)

    def test_the_limit_is_exact(self):
        self.write("common/long.cc", self.function("void F()", 70))
        self.assertEqual(lengths.faults_of(self.root), [])
        self.write("common/long.cc", self.function("void F()", 71))
        self.assertEqual(len(lengths.faults_of(self.root)), 1)

    def test_long_classes_and_tables_are_no_functions(self):
        for head in ("class Slot final : public Base", "struct alignas(64) Slot", "enum class E",
                     "constexpr std::array<int, 3> kTable ="):
            self.write("common/long.cc", f"{head} {{\n" + "  kA,\n" * 100 + "};\n")
            self.assertEqual(lengths.faults_of(self.root), [], head)


class TreeTest(Tree):
    def assert_one_fault(self, part):
        faults = tree.faults_of(self.root)
        self.assertEqual(len(faults), 1, faults)
        self.assertIn(part, faults[0])

    def test_a_clean_tree_passes(self):
        self.assertEqual(tree.faults_of(self.root), [])
        self.assertEqual(self.exit_code("tree"), 0)

    def test_catches_a_test_that_is_not_in_the_build(self):
        self.write("tests/common/CMakeLists.txt", "firn_test(a_test SOURCES clock_tests.cc)")
        self.write("tests/common/clock_test.cc", "")
        self.assert_one_fault("tests/common/clock_test.cc")
        self.assertEqual(self.exit_code("tree"), 1)

    def test_catches_a_crowded_folder(self):
        for i in range(tree.FOLDER_FILES_MAX):
            self.write(f"tests/support/some{i}.h", "")
        self.assertEqual(tree.faults_of(self.root), [])
        self.write("tests/support/one_more.h", "")
        self.assert_one_fault("tests/support/: has 33 files of code, more than 32")

    def test_catches_a_script_test_that_is_not_in_the_build(self):
        self.write("tests/tools/setup_test.sh", "")
        self.assert_one_fault("setup_test.sh")

    def test_a_list_further_up_may_name_a_file(self):
        self.write("tests/CMakeLists.txt", "add_executable(t common/clock_test.cc)")
        self.write("tests/common/clock_test.cc", "")
        self.assertEqual(tree.faults_of(self.root), [])

    def test_a_loop_names_the_files_of_its_words_and_no_others(self):
        self.write("tests/drill/CMakeLists.txt", "foreach(s kill pause)\n"
                   "  firn_test(${s}_drill_test SOURCES ${s}_drill_test.cc)\nendforeach()")
        self.write("tests/drill/kill_drill_test.cc", "")
        self.assertEqual(tree.faults_of(self.root), [])
        self.write("tests/drill/storm_drill_test.cc", "")
        self.assert_one_fault("storm_drill_test.cc")

    def test_catches_a_library_file_that_is_not_in_the_build(self):
        self.write("common/lost.h", "")
        self.assert_one_fault("common/lost.h")

    def test_catches_work_that_is_marked_undone(self):
        self.write("common/clock.h", "// TO" + "DO: later\n")
        self.assert_one_fault("common/clock.h:1")


class ReadmesTest(Tree):
    def test_a_clean_tree_passes(self):
        self.assertEqual(readmes.faults_of(self.root), [])
        self.assertEqual(self.exit_code("readmes"), 0)

    def test_catches_a_folder_without_a_readme(self):
        self.write("client/pool.cc", "")
        self.assertEqual(readmes.faults_of(self.root), ["client/: has no README.md, and none above names it"])
        self.assertEqual(self.exit_code("readmes"), 1)

    def test_a_readme_above_describes_the_folders_that_it_names(self):
        self.write("common/net/address.cc", "")
        self.write("common/task/task.cc", "")
        self.write("common/README.md", "# common\n\n| [net/](net/) | addresses |\n")
        self.assertEqual(readmes.faults_of(self.root), ["common/task/: has no README.md, and none above names it"])

    def test_folders_of_tests_share_one(self):
        self.write("tests/client/pool_test.cc", "")
        self.assertEqual(readmes.faults_of(self.root), [])

    def test_catches_a_link_that_leads_nowhere(self):
        self.write("common/PAGE.md", "[ids](id/), [here](PAGE.md#top), [there](https://a.example/)")
        self.assertEqual(readmes.faults_of(self.root), ["common/PAGE.md: the link id/ leads to no file"])

    def test_a_lambda_is_no_link(self):
        self.write("common/PAGE.md", "`[](int a) {}`\n\n```\n[](Tag& tag) {}\n```\n")
        self.assertEqual(readmes.faults_of(self.root), [])

    def test_catches_a_file_that_is_not_there(self):
        self.write("common/pool.cc", "")
        self.write("common/PAGE.md", "`pool.cc`, `../common/pool.cc`, `/usr/include/a.h`, `node/pool.cc`")
        self.write("CHANGELOG.md", "`gone.cc` went")
        self.assertEqual(readmes.faults_of(self.root),
                         ["common/PAGE.md: there is no file node/pool.cc"])


class TasksTest(Tree):
    def faults_in(self, body, head="Task<> F(int a)"):
        return list(tasks.faults_in("a.cc", f"{head} {{\n  {body}\n}}\n"))

    def test_a_clean_tree_passes(self):
        self.assertEqual(tasks.faults_of(self.root), [])
        self.assertEqual(self.exit_code("tasks"), 0)

    def test_a_fault_is_an_exit_code(self):
        self.write("common/clock.cc", "Task<> F() {\n  if (co_await G()) return;\n}\n")
        self.assertEqual(self.exit_code("tasks"), 1)

    def test_the_forms_pass(self):
        for body in ("co_await F();", "co_await async_registry_.Multi(writes);", "int x = co_await F(a, b);",
                     "const std::vector<Result<Node>> x = co_await async_registry->ReadAll(found.paths);",
                     "co_return co_await F(&async_registry_, now);", "if (a) co_return co_await F(a);",
                     "switch (a) {\n case Kind::kOne:\n co_await F();\n}",
                     "for (int i = 0; i < 3; ++i) {\n T x = co_await F(i);\n}",
                     "return [a] { return a; }();", "co_return a + 1;", "// co_await what(1)"):
            self.assertEqual(self.faults_in(body), [], body)

    def test_catches_every_other_form(self):
        for body in ("if (co_await F()) return;", "while (co_await F()) {\n}", "x = co_await F();",
                     "for (auto x : co_await F()) {\n}", "auto [a, b] = co_await F();",
                     "T x = a ? co_await F() : b;", "T x = (co_await F()).value();",
                     "co_await F(G());", "co_await F(std::string(a));", "co_await F({a, b});",
                     "co_await F(std::move(a));", "co_await F(1);", "Use(co_await F());",
                     "co_await F(\"text\");", "T x = co_await y;", "return co_await F();",
                     "co_yield 1;"):
            self.assertEqual(len(self.faults_in(body)), 1, body)

    def test_catches_a_lambda_that_is_a_coroutine(self):
        for body in ("auto f = [a]() -> Task<> { co_return; };", "G([&] { co_await F(); });",
                     "auto f = [a](int b) mutable {\n if (b) {\n co_await F(b);\n }\n };"):
            self.assertEqual(len(self.faults_in(body)), 1, body)

    def test_catches_a_parameter_by_reference(self):
        for head in ("Task<> F(const std::string& a)", "Task<Result<Node>> C::F(int a, T&& b)",
                     "Task<> F(std::string_view a)", "Task<std::vector<Result<T>>> F(T& a)"):
            self.assertEqual(len(self.faults_in("co_return;", head)), 1, head)
        for head in ("Task<> F(AsyncRegistry* registry, std::string a)", "Task<> F(Function<bool(const T&)> f)"):
            self.assertEqual(self.faults_in("co_return;", head), [], head)
        self.assertEqual(self.faults_in("", "void Start(Task<T>& task, const T& a)"), [])

    def test_catches_an_over_aligned_local(self):
        self.assertEqual(len(self.faults_in("alignas(64) char a[64];\n  co_await F();")), 1)


if __name__ == "__main__":
    unittest.main()
