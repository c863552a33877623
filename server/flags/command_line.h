#pragma once

#include "common/base/status.h"

namespace firn {

// Sets the flags of a command line, and of the flag files that it names, directly or through other
// flag files. gflags itself ends the program at the first fault, and ignores unknown flags in a
// file: a mistyped --registry would be no registry at all, and several such servers would be
// several clusters.
//
// A word is a flag of this program, --name=value (a switch may stand alone); on the command line
// the value may be the next word. A line of a file is a flag, a comment (#) or empty. kInvalid
// names every fault, with its file and line.
Status ReadCommandLine(int argc, const char* const* argv);

}  // namespace firn
