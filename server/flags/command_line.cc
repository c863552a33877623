#include "server/flags/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
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

// Flags of the previous version, with which this version still starts. Remove a row in the next
// version.
struct Retired {
  std::string_view name;
  std::string_view successor;  // the flag that takes its value; empty: none
};
constexpr Retired kRetired[] = {{"clock_alarm_ms", {}},           {"container_items_max", {}},
                                {"frame_bytes_max", {}},          {"http_body_bytes_max", {}},
                                {"http_header_bytes_max", {}},    {"output_waiting_bytes_max", {}},
                                {"requests_per_turn_max", {}},    {"runs_ids_max", {}},
                                {"string_bytes_max", {}},         {"turn_us_max", {}},
                                {"tls_names_file", "rights_file"}};

// Faults and retired flags found so far.
struct Found {
  Faults faults;
  RetiredFlags& retired;
  std::map<std::string_view, std::string> renamed{};  // values of retired flags, by successor
};

constexpr int kDepthMax = 8;  // of files that name other files
constexpr std::string_view kBlank = " \t\r\f\v";
constexpr std::string_view kFile = "flagfile";
constexpr std::string_view kFromEnvironment = "fromenv";
constexpr std::string_view kTryFromEnvironment = "tryfromenv";

void ReadFiles(std::string_view names, int depth, Found& found);

struct Word {
  std::string name;
  std::optional<std::string> value;
};

// Splits "--name=value", with one dash or two.
Word Taken(std::string_view text) {
  text.remove_prefix(text.starts_with("--") ? 2 : 1);
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return {std::string(text), std::nullopt};
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

// Returns gflags' type, such as "bool"; empty: there is no such flag.
std::string TypeOf(const std::string& name) {
  gflags::CommandLineFlagInfo info;
  return gflags::GetCommandLineFlagInfo(name.c_str(), &info) ? info.type : "";
}

const Retired* RetiredAs(std::string_view name) {
  const auto* const row = std::ranges::find(kRetired, name, &Retired::name);
  return row != std::end(kRetired) ? row : nullptr;
}

bool IsKnown(const std::string& name) {
  return !TypeOf(name).empty() || RetiredAs(name) != nullptr;
}

bool IsSwitch(const std::string& name) { return TypeOf(name) == "bool"; }

// Parses a flag; its value may be missing.
Result<Word> FlagIn(std::string_view text) {
  if (!text.starts_with('-')) return Invalid(Quoted(text) + " is not a flag: flags begin with --");
  Word word = Taken(text);
  if (IsKnown(word.name)) {
    if (!word.value && IsSwitch(word.name)) word.value = "true";
    return word;
  }
  const bool negated = word.name.starts_with("no") && IsSwitch(word.name.substr(2));
  if (!negated || word.value) return Invalid(Quoted("--" + word.name) + " is not a flag");
  return Word{word.name.substr(2), "false"};
}

void ReadEnvironment(const Word& word, const std::string& where, int depth, Found& found);

// `where` is the prefix of each fault.
void Set(const Word& word, const std::string& where, int depth, Found& found) {
  const Retired* const row = RetiredAs(word.name);
  const bool renamed = row != nullptr && !row->successor.empty();
  if (row != nullptr && (!renamed || word.value)) {
    const std::string warning =
        row->successor.empty() ? " is retired and has no effect; remove it"
                               : Cat(" is retired and read as --", row->successor, "; rename it");
    found.retired.emplace(word.name, Cat(where, "--", word.name, warning));
    if (renamed && !word.value->empty()) found.renamed[row->successor] = *word.value;
  } else if (!word.value) {
    found.faults.Add(
        Cat(where, Quoted("--" + word.name), " has no value: write --", word.name, "=..."));
  } else if (word.name == kFile) {
    ReadFiles(*word.value, depth + 1, found);
  } else if (word.name == kFromEnvironment || word.name == kTryFromEnvironment) {
    ReadEnvironment(word, where, depth + 1, found);
  } else if (gflags::SetCommandLineOption(word.name.c_str(), word.value->c_str()).empty()) {
    found.faults.Add(Cat(where, "--", word.name, " is ", Quoted(*word.value), ", which is no ",
                         TypeOf(word.name)));
  }
}

// Sets each flag that `word` lists from its variable, FLAGS_registry for --registry.
void ReadEnvironment(const Word& word, const std::string& where, int depth, Found& found) {
  for (const std::string& name : CommaParts(*word.value)) {
    const std::string variable = "FLAGS_" + name;
    const char* const value = std::getenv(variable.c_str());
    if (!IsKnown(name) || depth > kDepthMax) {
      found.faults.Add(Cat(where, "--", word.name, ": ", Quoted("--" + name), " is not a flag"));
    } else if (value != nullptr) {
      Set({name, value}, Cat(where, variable, ": "), depth, found);
    } else if (word.name == kFromEnvironment) {
      found.faults.Add(Cat(where, "--", word.name, ": the environment has no ", variable));
    }
  }
}

// `where`: the line's file and number.
void ReadLine(std::string_view line, const std::string& where, int depth, Found& found) {
  const size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos || line[begin] == '#') return;
  line = line.substr(begin, line.find_last_not_of(kBlank) + 1 - begin);
  const Result<Word> word = FlagIn(line);
  if (word.ok()) {
    Set(*word, where + ": ", depth, found);
  } else {
    found.faults.Add(where + ": " + word.status().message());
  }
}

void ReadFile(const std::string& path, int depth, Found& found) {
  // Opening a FIFO could block without end.
  const Status regular = OpenRegular(path, O_RDONLY).status();
  if (!regular.ok()) {
    found.faults.Add("--flagfile: " + regular.message());
    return;
  }
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    ReadLine(line, Cat(path, ":", number), depth, found);
  }
  if (file.bad()) found.faults.Add("--flagfile: cannot read " + path);
}

// Reads files whose names are separated by commas.
void ReadFiles(std::string_view names, int depth, Found& found) {
  if (depth > kDepthMax) {
    found.faults.Add(
        Cat("--flagfile: more than ", kDepthMax, " files include each other; is there a cycle?"));
    return;
  }
  for (const std::string& name : CommaParts(std::string(names))) ReadFile(name, depth, found);
}

// `renamed` has no empty values, so an empty one in a template does not override the new name.
void SetRenamed(Found& found) {
  for (const auto& [flag, value] : found.renamed) {
    const std::string name(flag);
    if (!gflags::GetCommandLineFlagInfoOrDie(name.c_str()).current_value.empty()) {
      found.faults.Add(Cat("--", flag, " is set, and so is its old name; set one of them"));
    } else {
      gflags::SetCommandLineOption(name.c_str(), value.c_str());
    }
  }
}

}  // namespace

Status ReadCommandLine(int argc, const char* const* argv, RetiredFlags& retired) {
  Found found{.faults = {}, .retired = retired};
  for (int i = 1; i < argc; ++i) {
    Result<Word> word = FlagIn(argv[i]);
    if (!word.ok()) {
      found.faults.Add(word.status().message());
      continue;
    }
    if (!word->value && i + 1 < argc) word->value = argv[++i];
    Set(*word, "", 0, found);
  }
  SetRenamed(found);
  return std::move(found.faults).ToStatus();
}

}  // namespace firn
