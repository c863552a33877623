#pragma once

#include "server/node/extensions.h"

namespace firn {

// Runs a whole firn-server, with flags, signals, and a log on stderr. `main` must return the
// result, which is available once the server has ended:
//
//   0   drained after SIGTERM or SIGINT, or a signal came during the start
//   1   the start failed, or a second signal came
//   2   the configuration or the host's limits are invalid; all faults are reported at once
int ServerMain(int argc, char** argv, const Extensions& extensions = {});

}  // namespace firn
