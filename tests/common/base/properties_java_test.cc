#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "common/base/properties.h"
#include "common/time/entropy.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

namespace fs = std::filesystem;

std::string Hex(const std::string& text) {
  std::string out;
  for (const char c : text) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c));
    out += digits;
  }
  return out;
}

constexpr char kHalfAPair[] = "half a pair";

// As PropertiesEcho.java writes it.
std::string Echo(const std::string& text) {
  const Result<Properties> read = Properties::Parse(text);
  if (!read.ok()) {
    const bool half = read.status().message().find("surrogate") != std::string::npos;
    return half ? kHalfAPair : "refused";
  }
  std::map<std::string, std::string> sorted;
  for (const Properties::Entry& entry : read->entries()) sorted[Hex(entry.key)] = Hex(entry.value);
  std::string out;
  for (const auto& [key, value] : sorted) out.append(key).append("=").append(value).append(";");
  return out;
}

// Java beside us, reading the same files.
class PropertiesJavaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("java --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no java here";
    std::string folder = fs::temp_directory_path() / "firn-properties-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  void Add(const std::string& text) {
    char name[16];
    std::snprintf(name, sizeof name, "%06zu", texts_.size());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    texts_[name] = text;
  }

  // Each file's name with what Java has read from it.
  std::map<std::string, std::string> AskJava() const {
    const fs::path echo = fs::path(FIRN_SOURCE_DIR) / "tests/common/base/PropertiesEcho.java";
    const std::string command = "java " + echo.string() + " " + folder_.string();
    std::map<std::string, std::string> answers;
    std::FILE* java = popen(command.c_str(), "r");
    if (java == nullptr) return answers;
    char* line = nullptr;
    size_t capacity = 0;
    while (getline(&line, &capacity, java) > 0) {
      std::string text(line);
      text.erase(text.find_last_not_of('\n') + 1);
      const size_t blank = text.find(' ');
      answers[text.substr(0, blank)] = text.substr(blank + 1);
    }
    std::free(line);
    EXPECT_EQ(pclose(java), 0);
    return answers;
  }

  fs::path folder_;
  std::map<std::string, std::string> texts_;
};

TEST_F(PropertiesJavaTest, JavaReadsTheSameFromTheSameBytes) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  static constexpr const char* kPieces[] = {
      "a",       "key",    "=",    ":",   " ",    "\t",    "\f",
      "\\",      "\\\\",   "\n",   "\r",  "\r\n", "#",     "!",
      "\\u00e9", "\\\n  ", "\xe9", "\\t", "\\=",  "\\u12", "\\ud83d\\ude00"};
  for (int i = 0; i < 600; ++i) {
    std::string text;
    for (uint64_t n = entropy.Below(16); n > 0; --n)
      text += kPieces[entropy.Below(std::size(kPieces))];
    // Java reads a torn end, we refuse it.
    const size_t last = text.find_last_not_of("\\\r\n \t\f");
    text.resize(last == text.npos ? 0 : last + 1);
    Add(text + "\n");
  }
  const std::map<std::string, std::string> answers = AskJava();
  ASSERT_EQ(answers.size(), texts_.size());
  int refused = 0;
  for (const auto& [file, text] : texts_) {
    const std::string ours = Echo(text);
    if (ours == kHalfAPair) continue;  // where we are stricter than Java by intent
    EXPECT_EQ(ours, answers.at(file)) << file << ": " << ::testing::PrintToString(text);
    refused += answers.at(file) == "refused" ? 1 : 0;
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 400);
}

TEST_F(PropertiesJavaTest, JavaReadsBackWhatWeWrite) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  static constexpr const char* kPieces[] = {"a",  " ",  "=",    ":",    "#",    "!",
                                            "\\", "\n", "\r",   "\t",   "\f",   "é",
                                            "雪", "😀",  "\x01", "\x7f", "u0041"};
  const auto any = [&] {
    std::string text;
    for (uint64_t n = entropy.Below(6); n > 0; --n)
      text += kPieces[entropy.Below(std::size(kPieces))];
    return text;
  };
  for (int i = 0; i < 200; ++i) {
    Properties made;
    for (int n = 0; n < 4; ++n) ASSERT_TRUE(made.Set(any(), any()).ok());
    Add(made.ToText());
    ASSERT_EQ(Properties::Parse(made.ToText())->ToText(), made.ToText());
  }
  const std::map<std::string, std::string> answers = AskJava();
  ASSERT_EQ(answers.size(), texts_.size());
  for (const auto& [file, text] : texts_) EXPECT_EQ(Echo(text), answers.at(file)) << text;
}

}  // namespace
}  // namespace firn
