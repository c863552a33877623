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

// Whether the command line says it. Ends the program when there is no such flag.
bool IsSaid(const char* flag);

// "  --name  description (default: value)", one line a flag.
std::string DescribeFlags(const std::vector<std::string_view>& flags);

}  // namespace firn
