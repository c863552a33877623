#include "server/flags/command_line.h"

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/quote.h"
#include "server/flags/comma_parts.h"

namespace firn {
namespace {

constexpr int kDepthMax = 8;  // of files that name files
constexpr std::string_view kBlank = " \t\r\f\v";
constexpr std::string_view kFile = "flagfile";

Status CheckFiles(std::string_view names, int depth);

struct Word {
  std::string name;
  std::optional<std::string> value;
};

// "--name=value", with one dash or two.
Word Taken(std::string_view text) {
  text.remove_prefix(text.starts_with("--") ? 2 : 1);
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return {std::string(text), std::nullopt};
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

// "bool", "string" and so on; empty: there is no such flag.
std::string TypeOf(const std::string& name) {
  gflags::CommandLineFlagInfo info;
  return gflags::GetCommandLineFlagInfo(name.c_str(), &info) ? info.type : "";
}

bool IsSwitch(const std::string& name) { return TypeOf(name) == "bool"; }

// The flag that `text` is, which may lack its value.
Result<Word> FlagIn(std::string_view text) {
  if (!text.starts_with('-')) return Invalid(Quoted(text) + " is no flag: flags begin with --");
  Word word = Taken(text);
  if (!TypeOf(word.name).empty()) {
    if (!word.value && IsSwitch(word.name)) word.value = "true";
    return word;
  }
  const bool negated = word.name.starts_with("no") && IsSwitch(word.name.substr(2));
  if (!negated || word.value) return Invalid(Quoted("--" + word.name) + " is no flag");
  word.value = "false";
  return word;
}

Status CheckLine(std::string_view line, int depth) {
  const size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos || line[begin] == '#') return {};
  line = line.substr(begin, line.find_last_not_of(kBlank) + 1 - begin);
  FIRN_ASSIGN(const Word word, FlagIn(line));
  if (!word.value) {
    return Invalid(Quoted("--" + word.name) + " has no value: write --" + word.name + "=...");
  }
  return word.name == kFile ? CheckFiles(*word.value, depth + 1) : Status();
}

Status CheckFile(const std::string& path, int depth) {
  // A FIFO would keep its reader waiting for ever.
  const Status regular = OpenRegular(path, O_RDONLY).status();
  if (!regular.ok()) return Invalid("--flagfile: " + regular.message());
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    FIRN_TRY(CheckLine(line, depth).WithContext(Cat(path, ":", number)));
  }
  return file.bad() ? Invalid("--flagfile: cannot read " + path) : Status();
}

// Several files, with commas between.
Status CheckFiles(std::string_view names, int depth) {
  if (depth > kDepthMax) return Invalid("--flagfile: files that name files without end");
  for (const std::string& name : CommaParts(std::string(names))) FIRN_TRY(CheckFile(name, depth));
  return {};
}

}  // namespace

Status CheckCommandLine(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    FIRN_ASSIGN(Word word, FlagIn(argv[i]));
    if (!word.value && ++i < argc) word.value = argv[i];
    if (!word.value) return Invalid(Quoted("--" + word.name) + " has no value");
    if (word.name == kFile) FIRN_TRY(CheckFiles(*word.value, 1));
  }
  return {};
}

}  // namespace firn
