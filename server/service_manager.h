#pragma once

#include <string_view>

namespace firn {

// Sends a line such as "READY=1" to the service manager, by the protocol of sd_notify(3): a
// datagram to the socket that $NOTIFY_SOCKET names. Does nothing where there is none.
void NotifyServiceManager(std::string_view line);

}  // namespace firn
