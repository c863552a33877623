#include "registry/owner.h"

#include "common/endpoint.h"

namespace firn {
namespace {

constexpr size_t kApplicationBytesMax = 100;
constexpr std::string_view kApplicationBytes =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

}  // namespace

Result<OwnerName> OwnerName::Make(std::string_view application, uint16_t port,
                                  std::string_view ip) {
  if (application.empty() || application.size() > kApplicationBytesMax ||
      application.find_first_not_of(kApplicationBytes) != std::string_view::npos) {
    return Invalid("an application's name is 1 to 100 letters, digits, '-', '_' and '.'");
  }
  FIRN_ASSIGN(const std::string number, IpAsNumber(std::string(ip)));
  const std::string name(application);
  const std::string port_text = std::to_string(port);
  return OwnerName(name + "." + port_text + "." + number, name + ":" + port_text + ":" + number);
}

}  // namespace firn
