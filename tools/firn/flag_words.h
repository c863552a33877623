#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace firn {

// A command line taken apart: words that are no flags, and what was said to which flag.
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

// Knows which flags exist, and which are yes-or-no, from gflags; sets none of them. kInvalid names
// the first flag that does not exist or has no value.
Result<CommandLine> SplitCommandLine(const std::vector<std::string>& arguments);

// Sets the flags. kInvalid names the first one that is not among `permitted`, or whose value its
// type does not take.
Status ApplySettings(const std::vector<CommandLine::Setting>& settings,
                     const std::vector<std::string_view>& permitted);

// The file with the host's defaults, which the package installs: a flag a line, or a comment (#).
inline constexpr const char* kFlagsFile = "/etc/firn/firn.flags";

// Makes the values in kFlagsFile, or in the file that $FIRN_FLAGS_FILE names, the defaults of these
// flags. Ok when there is no such file; kInvalid names the line at fault.
Status ReadFlagsFile();

// Returns where the flag's value comes from: "--registry", the flags file, or "the default".
std::string SourceOf(const char* flag);

// Whether the command line says it. Ends the program when there is no such flag.
bool IsSaid(const char* flag);

// Returns the flags as --help lists them.
std::string DescribeFlags(const std::vector<std::string_view>& flags);

}  // namespace firn
