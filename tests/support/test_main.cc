// The main function of GoogleTest programs. With the names of files as arguments, such as
// time/backoff_test.cc, it runs only the cases of these files: each file of a room's program is one
// test.

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

namespace firn {
namespace {

// All tests by name, with their files. Ends the program if two tests have the same name.
std::map<std::string, std::string_view> AllCases() {
  std::map<std::string, std::string_view> cases;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& one = *suite.GetTestInfo(j);
      const std::string name = std::string(suite.name()) + "." + one.name();
      if (cases.emplace(name, one.file()).second) continue;
      std::fprintf(stderr, "%s stands in %s, too\n", name.c_str(), one.file());
      std::exit(1);
    }
  }
  return cases;
}

// Returns the filter for the tests in `file`; empty if there are none.
std::string CasesOf(std::string_view file) {
  std::string chosen;
  for (const auto& [name, stands_in] : AllCases()) {
    if (stands_in.ends_with("/" + std::string(file))) chosen += name + ":";
  }
  return chosen;
}

int Main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  std::string chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string cases = CasesOf(argv[i]);
    if (cases.empty()) {
      std::fprintf(stderr, "%s: there is no test case in a file %s\n", argv[0], argv[i]);
      return 1;
    }
    chosen += cases;
  }
  if (!chosen.empty()) GTEST_FLAG_SET(filter, chosen);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) { return firn::Main(argc, argv); }
