#pragma once

#include "common/base/status.h"

namespace firn {

// Checks a command line, and the flag files that it names, directly or through other flag files,
// before gflags reads them: gflags ignores unknown flags in a file. A mistyped --registry would
// then be no registry at all, and several such servers would be several clusters.
//
// A word is a flag of this program, --name=value (a switch may stand alone); on the command line
// the value may be the next word. A line of a file is a flag, a comment (#) or empty. kInvalid
// names every fault, with its file and line.
Status CheckCommandLine(int argc, const char* const* argv);

}  // namespace firn
