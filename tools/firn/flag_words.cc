#include "tools/firn/flag_words.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/text/fold.h"

namespace firn {
namespace {

using gflags::CommandLineFlagInfo;

bool Find(std::string_view name, CommandLineFlagInfo& info) {
  return gflags::GetCommandLineFlagInfo(std::string(name).c_str(), &info);
}

bool IsYesOrNo(std::string_view name) {
  CommandLineFlagInfo info;
  return Find(name, info) && info.type == "bool";
}

// Returns the flags whose default the flags file sets, with the path of that file.
std::map<std::string, std::string, std::less<>>& FromFile() {
  static auto& from_file = *new std::map<std::string, std::string, std::less<>>;
  return from_file;
}

// Returns false for a number such as -5, and for a single -.
bool LooksLikeFlag(std::string_view argument) {
  return argument.size() > 1 && argument[0] == '-' && !(argument[1] >= '0' && argument[1] <= '9');
}

}  // namespace

Status ReadFlagsFile() {
  const char* const named = std::getenv("FIRN_FLAGS_FILE");
  const std::string path = named != nullptr ? named : kFlagsFile;
  if (path.empty() || !std::filesystem::exists(path)) return {};
  std::ifstream file(path);
  if (!file) return Denied("cannot read " + path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::string_view text = Trimmed(line, " \t\r");
    if (text.empty() || text.front() == '#') continue;
    const auto words = SplitCommandLine({std::string(text)});
    const std::string where = Cat(path, ":", number);
    if (!words.ok()) return words.status().WithContext(where);
    if (words->settings.size() != 1) return Invalid(where + ": expected one --name=value");
    const auto& [flag, value] = words->settings.front();
    if (gflags::SetCommandLineOptionWithMode(flag.c_str(), value.c_str(), gflags::SET_FLAGS_DEFAULT)
            .empty()) {
      return Invalid(Cat(where, ": --", flag, ": '", value, "' is not a valid value"));
    }
    FromFile()[flag] = path;
  }
  return {};
}

std::string SourceOf(const char* flag) {
  if (IsFlagSet(flag)) return Cat("--", flag);
  const auto found = FromFile().find(flag);
  return found == FromFile().end() ? "the default" : found->second;
}

bool IsFlagSet(const char* flag) { return !gflags::GetCommandLineFlagInfoOrDie(flag).is_default; }

Result<CommandLine> SplitCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string_view argument = arguments[i];
    if (argument == "--") {
      line.words.insert(line.words.end(), arguments.begin() + static_cast<ptrdiff_t>(i) + 1,
                        arguments.end());
      break;
    }
    if (!LooksLikeFlag(argument)) {
      line.words.emplace_back(argument);
      continue;
    }
    argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
    const size_t equals = argument.find('=');
    std::string name(argument.substr(0, equals));
    std::replace(name.begin(), name.end(), '-', '_');  // --brand-new is --brand_new
    CommandLineFlagInfo info;
    if (name == "help" || name == "h") {
      line.help = true;
    } else if (name == "version") {
      line.version = true;
    } else if (name.starts_with("no") && IsYesOrNo(name.substr(2)) &&
               equals == std::string_view::npos) {
      line.settings.push_back({name.substr(2), "false"});
    } else if (!Find(name, info)) {
      return Invalid("there is no flag --" + name);
    } else if (equals != std::string_view::npos) {
      line.settings.push_back({name, std::string(argument.substr(equals + 1))});
    } else if (info.type == "bool") {
      line.settings.push_back({name, "true"});
    } else if (++i < arguments.size()) {
      line.settings.push_back({name, arguments[i]});
    } else {
      return Invalid("--" + name + " requires a value");
    }
  }
  return line;
}

Status ApplySettings(const std::vector<CommandLine::Setting>& settings,
                     const std::vector<std::string_view>& permitted) {
  for (const auto& [flag, value] : settings) {
    if (std::find(permitted.begin(), permitted.end(), flag) == permitted.end()) {
      return Invalid("--" + flag + " is not a flag of this verb");
    }
    const bool adds = flag == "set" && IsFlagSet("set");
    const std::string before =
        adds ? gflags::GetCommandLineFlagInfoOrDie("set").current_value + kFlagSeparator : "";
    if (gflags::SetCommandLineOption(flag.c_str(), (before + value).c_str()).empty()) {
      return Invalid("--" + flag + ": '" + value + "' is not a valid value");
    }
  }
  return {};
}

std::string DescribeFlags(const std::vector<std::string_view>& flags) {
  std::string text;
  for (const std::string_view flag : flags) {
    CommandLineFlagInfo info;
    if (!Find(flag, info)) Die("a verb lists a flag that does not exist: " + std::string(flag));
    const bool is_switch = info.type == "bool";
    const bool has_default = !info.default_value.empty() && !is_switch;
    text += FlagLine(info.name, !is_switch,
                     info.description + (has_default ? " (" + info.default_value + ")" : ""));
  }
  return text;
}

}  // namespace firn
