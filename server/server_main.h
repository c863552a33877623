#pragma once

#include "server/node/extensions.h"

namespace firn {

// A whole firn-server, with whatever a program adds to it: its flags, its signals, its log on
// stderr. `main` returns what it returns, once the server has ended:
//
//   0   drained after SIGTERM or SIGINT, or asked to end while it started
//   1   it could not start, or a second signal came
//   2   the configuration is wrong, or the host's limits; every fault is named at once
int ServerMain(int argc, char** argv, const Extensions& extensions = {});

}  // namespace firn
