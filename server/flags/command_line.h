#pragma once

#include <map>
#include <string>

#include "common/base/status.h"

namespace firn {

// A warning for each flag of the version before that was set and that this version does not have.
using RetiredFlags = std::map<std::string, std::string>;

// Sets the flags of a command line, and of the flag files that it names, directly or through other
// flag files. gflags itself ends the program at the first fault, and ignores unknown flags in a
// file: a mistyped --registry would be no registry at all, and several such servers would be
// several clusters.
//
// A word is a flag of this program, --name=value (a switch may stand alone); on the command line
// the value may be the next word. A line of a file is a flag, a comment (#) or empty. kInvalid
// names every fault, with its file and line. A retired flag is no fault: it is ignored, or read
// under its new name.
Status ReadCommandLine(int argc, const char* const* argv, RetiredFlags& retired);

}  // namespace firn
