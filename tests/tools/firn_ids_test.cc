#include <sstream>

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"

namespace firn {
namespace {

Json FirnJson(const std::vector<std::string>& words) {
  return JsonOf(RunFirn(words, {"--json"}).out);
}

TEST(FirnCommandTest, ExplainsAnIdOfALayout) {
  const auto shown = FirnJson({"explain", "1169786042799259000", "--layout", "twitter"}).at(0);
  EXPECT_EQ(shown.at("time_ms"), 1567733700834);
  EXPECT_EQ(shown.at("machine"), 39);
  EXPECT_EQ(shown.at("sequence"), 3448);
  EXPECT_EQ(shown.at("id"), "1169786042799259000");
}

TEST(FirnCommandTest, ExplainsTextsInOtherBases) {
  EXPECT_EQ(FirnJson({"explain", "--form=base62", "0010"}).at(0).at("id"), "62");
  EXPECT_EQ(FirnJson({"explain", "--form=base36", "00zz"}).at(0).at("id"), "1295");
  EXPECT_EQ(FirnJson({"explain", "--form=base32", "0010"}).at(0).at("id"), "32");
}

TEST(FirnCommandTest, ExplainMarksDatesThatMayBeWrong) {
  const auto guessed = FirnJson({"explain", "123456789012345678"}).at(0);
  EXPECT_NE(guessed.at("note").text().find("read with layout"), std::string::npos);
  EXPECT_EQ(guessed.at("note").text().find("future"), std::string::npos);
  EXPECT_NE(RunFirn({"explain", "123456789012345678"}).out.find("NOTE: read with"),
            std::string::npos);

  const auto future = FirnJson({"explain", "9000000000000000000", "--layout=firn"}).at(0);
  EXPECT_NE(future.at("note").text().find("future"), std::string::npos);
  EXPECT_FALSE(
      FirnJson({"explain", "1169786042799259000", "--layout=twitter"}).at(0).contains("note"));
}

TEST(FirnCommandTest, ComposeReversesExplain) {
  const std::string id =
      FirnJson({"compose", "time=2026-01-01T00:00:00.123Z", "worker=7", "rack=1", "sequence=9"})
          .at("id")
          .text();
  const auto shown = FirnJson({"explain", id}).at(0);
  EXPECT_EQ(shown.at("time"), "2026-01-01T00:00:00.123Z");
  EXPECT_EQ(shown.at("worker"), 7);
  EXPECT_EQ(shown.at("rack"), 1);
  EXPECT_EQ(shown.at("sequence"), 9);
}

TEST(FirnCommandTest, InvalidCallsPrintOneSentenceAndExitWithTwo) {
  for (const std::vector<std::string>& call :
       std::vector<std::vector<std::string>>{{"explain"},
                                             {"explain", "12x"},
                                             {"explain", "99999999999999999999"},
                                             {"explain", "1", "--layout", "nonsense"},
                                             {"explain", "1", "--nonsense"},
                                             {"explain", "1", "--rack_bits"},
                                             {"explain", "1", "--rack_bits", "x"},
                                             {"explain", "1", "--rack_bits", "77"},
                                             {"compose", "sequence=4096"},
                                             {"compose", "sequence"},
                                             {"compose", "colour=7"},
                                             {"compose", "machine=5", "--form=base62"},
                                             {"nonsense"},
                                             {}}) {
    const Finished refused = RunFirn(call);
    EXPECT_EQ(refused.exit_code, 2) << (call.empty() ? "" : call.back());
    EXPECT_FALSE(refused.err.empty());
    EXPECT_EQ(refused.out, "");
  }
}

TEST(FirnCommandTest, PrintsFailuresAsJson) {
  const Finished refused = RunFirn({"explain", "12x", "--json"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(JsonOf(refused.out).at("error").at("code"), "invalid");
}

// Returns the verbs that a help text lists.
std::vector<std::string> VerbsIn(const std::string& help) {
  std::vector<std::string> verbs;
  std::istringstream lines(help);
  std::string line;
  bool listed = false;
  while (std::getline(lines, line)) {
    if (listed && line.empty()) break;
    if (listed) verbs.push_back(line.substr(2, line.find(' ', 2) - 2));
    listed = listed || line.starts_with("Verbs");
  }
  return verbs;
}

// Checks the help of the verb that `words` name and of all verbs below it; returns their number.
size_t HelpedVerbs(const std::vector<std::string>& words) {
  std::string path = "firn";
  for (const std::string& word : words) path += " " + word;
  std::vector<std::string> call = words;
  call.emplace_back("--help");
  const Finished help = RunFirn(call);
  EXPECT_EQ(help.exit_code, 0) << path;
  EXPECT_EQ(help.err, "");
  EXPECT_TRUE(help.out.starts_with(path)) << help.out;
  EXPECT_NE(help.out.find("Exit codes:"), std::string::npos) << help.out;
  size_t count = 1;
  for (const std::string& below : VerbsIn(help.out)) {
    std::vector<std::string> deeper = words;
    deeper.push_back(below);
    count += HelpedVerbs(deeper);
  }
  return count;
}

TEST(FirnCommandTest, EveryVerbHasHelp) {
  EXPECT_GT(HelpedVerbs({}), 20u);
  const Finished next = RunFirn({"next", "-h"});
  EXPECT_EQ(next.out, RunFirn({"next", "--help"}).out);
  for (const char* flag : {"--n=...", "--text", "--watch", "--rate", "--registry", "--json"}) {
    EXPECT_NE(next.out.find(flag), std::string::npos) << flag;
  }
}

TEST(FirnCommandTest, PrintsItsVersion) {
  for (const std::vector<std::string>& call :
       std::vector<std::vector<std::string>>{{"--version"}, {"next", "--version"}}) {
    const Finished version = RunFirn(call);
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_TRUE(version.out.starts_with("firn version 0.")) << version.out;
    EXPECT_EQ(version.err, "");
  }
}

TEST(FirnCommandTest, ParsesANegativeIdAsAnArgument) {
  EXPECT_EQ(RunFirn({"explain", "-5"}).exit_code, 2);  // no id of the layout firn is negative
  EXPECT_NE(RunFirn({"explain", "-5"}).err.find("-5"), std::string::npos);
}

}  // namespace
}  // namespace firn
