#include "registry/state/owner.h"

#include "common/net/endpoint.h"
#include "registry/state/digest.h"

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
    return Invalid("an application's name has 1 to 100 letters, digits, '-', '_' and '.'");
  }
  FIRN_ASSIGN(const std::string number, IpAsNumber(std::string(ip)));
  const std::string name(application);
  const std::string port_text = std::to_string(port);
  return OwnerName(name + "." + port_text + "." + number, name + ":" + port_text + ":" + number);
}

// Does not include the boot, which the name outlives. Includes the device only if there is no birth
// time: an overlay, btrfs or ZFS gets another device number at each mount.
std::string OwnerName::TextIn(const FileIdentity& lock_file, std::string_view host) const {
  Digest digest;
  digest.Add(lock_file.inode);
  const bool untold = lock_file.born_ns == FileIdentity::kUntold;
  digest.Add(untold ? lock_file.device : lock_file.born_ns);
  digest.Add(host);
  return text_ + "." + digest.text();
}

}  // namespace firn
