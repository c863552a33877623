#include "server/service_manager.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log/log.h"

namespace firn {

void NotifyServiceManager(std::string_view line) {
  const char* const named = std::getenv("NOTIFY_SOCKET");
  if (named == nullptr) return;
  const std::string_view path(named);
  sockaddr_un address{};
  if (path.size() < 2 || path.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  if (path.front() == '@') address.sun_path[0] = '\0';  // a name in the abstract name space
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const ssize_t sent = sendto(socket, line.data(), line.size(), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&address), size);
  close(socket);
  if (sent < 0) LogWarning("service_manager") << "the service manager could not be notified";
}

}  // namespace firn
