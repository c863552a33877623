#pragma once

#include "common/base/status.h"

namespace firn {

// Looks through a command line, and through the flag files that it names and those that they name
// in turn, before gflags reads them: gflags passes over whatever it does not know in a file. A
// mistyped --registry would then be no registry at all, and several such servers several clusters.
//
// A word is a flag of this program, --name=value (a switch may stand alone); on the command line
// the value may be the next word. A file has one a line, or a comment (#), or nothing. kInvalid
// names the first fault, with its file and line.
Status CheckCommandLine(int argc, const char* const* argv);

}  // namespace firn
