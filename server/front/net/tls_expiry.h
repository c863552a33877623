#pragma once

#include <optional>

#include "common/base/units.h"

namespace firn::front {

// When the certificates that a listener uses expire.
struct TlsExpiry {
  WallMs certificate;                    // the server's own
  std::optional<WallMs> client_ca = {};  // of several authorities, the earliest; empty: clients
                                         // need no certificate
};

}  // namespace firn::front
