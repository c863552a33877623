#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace firn {

// A parsed command line: the words that are not flags, and the flags with their values.
struct CommandLine {
  struct Setting {
    std::string flag;
    std::string value;
  };
  std::vector<std::string> words;
  std::vector<Setting> settings;
  bool help = false;
  bool version = false;
};

// Parses the arguments without setting flags. gflags determines which flags exist. kInvalid names
// the first flag that does not exist or has no value.
Result<CommandLine> SplitCommandLine(const std::vector<std::string>& arguments);

// Separates the values of a flag that may be repeated (--set).
inline constexpr char kFlagSeparator = '\n';

// Sets the flags. kInvalid names the first flag that is not in `permitted` or whose value does not
// have its type.
Status ApplySettings(const std::vector<CommandLine::Setting>& settings,
                     const std::vector<std::string_view>& permitted);

// The file with the host's defaults, which the package installs: one flag or #comment per line.
inline constexpr const char* kFlagsFile = "/etc/firn/firn.flags";

// Sets flags' defaults from the file $FIRN_FLAGS_FILE, or from kFlagsFile without that variable.
// Ok if the file does not exist; kInvalid names the invalid line.
Status ReadFlagsFile();

// Returns where the flag's value comes from: "--registry", the flags file, or "the default".
std::string SourceOf(const char* flag);

// Returns whether the command line sets the flag. Aborts if the flag does not exist.
bool IsFlagSet(const char* flag);

// Returns the flags as --help lists them.
std::string DescribeFlags(const std::vector<std::string_view>& flags);

}  // namespace firn
