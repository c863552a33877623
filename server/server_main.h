#pragma once

#include "server/node/extensions.h"

namespace firn {

// A whole firn-server, with everything that a program adds to it: flags, signals, and a log on
// stderr. `main` must return its result, which it returns when the server has ended:
//
//   0   drained after SIGTERM or SIGINT, or asked to end while it started
//   1   it could not start, or a second signal came
//   2   the configuration or the host's limits are wrong; every fault is reported at once
int ServerMain(int argc, char** argv, const Extensions& extensions = {});

}  // namespace firn
