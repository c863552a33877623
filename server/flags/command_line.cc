#include "server/flags/command_line.h"

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/faults.h"
#include "common/base/files.h"
#include "common/base/quote.h"
#include "server/flags/comma_parts.h"

namespace firn {
namespace {

constexpr int kDepthMax = 8;  // of files that name files
constexpr std::string_view kBlank = " \t\r\f\v";
constexpr std::string_view kFile = "flagfile";
constexpr std::string_view kFromEnvironment = "fromenv";
constexpr std::string_view kTryFromEnvironment = "tryfromenv";

void ReadFiles(std::string_view names, int depth, Faults& faults);

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
  if (!text.starts_with('-')) return Invalid(Quoted(text) + " is not a flag: flags begin with --");
  Word word = Taken(text);
  if (!TypeOf(word.name).empty()) {
    if (!word.value && IsSwitch(word.name)) word.value = "true";
    return word;
  }
  const bool negated = word.name.starts_with("no") && IsSwitch(word.name.substr(2));
  if (!negated || word.value) return Invalid(Quoted("--" + word.name) + " is not a flag");
  return Word{word.name.substr(2), "false"};
}

void ReadEnvironment(const Word& word, const std::string& where, int depth, Faults& faults);

// `where` precedes each fault.
void Set(const Word& word, const std::string& where, int depth, Faults& faults) {
  if (!word.value) {
    faults.Add(Cat(where, Quoted("--" + word.name), " has no value: write --", word.name, "=..."));
  } else if (word.name == kFile) {
    ReadFiles(*word.value, depth + 1, faults);
  } else if (word.name == kFromEnvironment || word.name == kTryFromEnvironment) {
    ReadEnvironment(word, where, depth + 1, faults);
  } else if (gflags::SetCommandLineOption(word.name.c_str(), word.value->c_str()).empty()) {
    faults.Add(Cat(where, "--", word.name, " is ", Quoted(*word.value), ", which is no ",
                   TypeOf(word.name)));
  }
}

// Sets each flag that `word` names to its variable, FLAGS_registry for --registry.
void ReadEnvironment(const Word& word, const std::string& where, int depth, Faults& faults) {
  for (const std::string& name : CommaParts(*word.value)) {
    const std::string variable = "FLAGS_" + name;
    const char* const value = std::getenv(variable.c_str());
    if (TypeOf(name).empty() || depth > kDepthMax) {
      faults.Add(Cat(where, "--", word.name, ": ", Quoted("--" + name), " is not a flag"));
    } else if (value != nullptr) {
      Set({name, value}, Cat(where, variable, ": "), depth, faults);
    } else if (word.name == kFromEnvironment) {
      faults.Add(Cat(where, "--", word.name, ": the environment has no ", variable));
    }
  }
}

// `where` is the line's file and number.
void ReadLine(std::string_view line, const std::string& where, int depth, Faults& faults) {
  const size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos || line[begin] == '#') return;
  line = line.substr(begin, line.find_last_not_of(kBlank) + 1 - begin);
  const Result<Word> word = FlagIn(line);
  if (word.ok()) {
    Set(*word, where + ": ", depth, faults);
  } else {
    faults.Add(where + ": " + word.status().message());
  }
}

void ReadFile(const std::string& path, int depth, Faults& faults) {
  // A FIFO would keep its reader waiting for ever.
  const Status regular = OpenRegular(path, O_RDONLY).status();
  if (!regular.ok()) {
    faults.Add("--flagfile: " + regular.message());
    return;
  }
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    ReadLine(line, Cat(path, ":", number), depth, faults);
  }
  if (file.bad()) faults.Add("--flagfile: cannot read " + path);
}

// Several files, separated by commas.
void ReadFiles(std::string_view names, int depth, Faults& faults) {
  if (depth > kDepthMax) {
    faults.Add(
        Cat("--flagfile: more than ", kDepthMax, " files include each other; is there a cycle?"));
    return;
  }
  for (const std::string& name : CommaParts(std::string(names))) ReadFile(name, depth, faults);
}

}  // namespace

Status ReadCommandLine(int argc, const char* const* argv) {
  Faults faults;
  for (int i = 1; i < argc; ++i) {
    Result<Word> word = FlagIn(argv[i]);
    if (!word.ok()) {
      faults.Add(word.status().message());
      continue;
    }
    if (!word->value && i + 1 < argc) word->value = argv[++i];
    Set(*word, "", 0, faults);
  }
  return std::move(faults).ToStatus();
}

}  // namespace firn
