#include "registry/state/owner.h"

#include "common/net/endpoint.h"
#include "registry/state/digest.h"

namespace firn {
namespace {

constexpr size_t kNameBytesMax = 100;
constexpr std::string_view kNameBytes =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

bool IsName(std::string_view name, std::string_view bytes) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         name.find_first_not_of(bytes) == std::string_view::npos;
}

}  // namespace

Result<OwnerName> OwnerName::Make(std::string_view application, uint16_t port,
                                  std::string_view ip) {
  if (!IsName(application, kNameBytes)) {
    return Invalid("an application's name has 1 to 100 letters, digits, '-', '_' and '.'");
  }
  FIRN_ASSIGN(const std::string number, IpAsNumber(std::string(ip)));
  const std::string name(application);
  const std::string port_text = std::to_string(port);
  return OwnerName(name + "." + port_text + "." + number, name + ":" + port_text + ":" + number);
}

// No '.', which separates the numbers of further machine ids.
Result<OwnerName> OwnerName::WithFilesOf(std::string_view name) const {
  if (!IsName(name, kNameBytes.substr(0, kNameBytes.size() - 1))) {
    return Invalid("must have 1 to 100 letters, digits, '-' and '_'");
  }
  const std::string application = file_stem_.substr(0, file_stem_.find(':'));
  return OwnerName(text_, application + ":" + std::string(name));
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
