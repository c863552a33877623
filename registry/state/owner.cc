#include "registry/state/owner.h"

#include <array>

#include <arpa/inet.h>

#include "common/base/cat.h"
#include "common/base/hex.h"
#include "common/base/parse.h"
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

constexpr size_t kIpv6Bytes = 16;
constexpr size_t kDigestSize = 16;  // of an owner's text

// The inverse of IpAsNumber. Returns "" if `number` is not an IP address.
std::string IpOfNumber(std::string_view number) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (number.size() != 2 * kIpv6Bytes) {
    const auto ipv4 = ParseNumber<uint32_t>(number);
    const in_addr address{.s_addr = htonl(ipv4.value_or(0))};
    return ipv4 ? inet_ntop(AF_INET, &address, text.data(), text.size()) : "";
  }
  if (!IsLowerHex(number)) return {};
  std::array<uint8_t, kIpv6Bytes> address{};
  for (size_t i = 0; i < kIpv6Bytes; ++i) {
    const int high = HexDigit(number[2 * i]).value_or(0),
              low = HexDigit(number[2 * i + 1]).value_or(0);
    address[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return inet_ntop(AF_INET6, address.data(), text.data(), text.size());
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

std::string FormatOwner(std::string_view owner) {
  if (const size_t slash = owner.find('/'); slash != owner.npos) {
    return Cat(FormatOwner(owner.substr(0, slash)), " for ", owner.substr(slash + 1));
  }
  std::string_view rest = owner;
  const auto take_last = [&rest] {
    const size_t dot = rest.rfind('.');
    if (dot == rest.npos) return std::string_view();
    const std::string_view last = rest.substr(dot + 1);
    rest = rest.substr(0, dot);
    return last;
  };
  const std::string_view folder = take_last();  // the digest of the state folder
  const std::string ip = IpOfNumber(take_last());
  const auto port = ParseNumber<uint16_t>(take_last());
  const bool written = folder.size() == kDigestSize && IsLowerHex(folder);
  if (!written || ip.empty() || !port || rest.empty()) return std::string(owner);
  return Cat(rest, " ", Endpoint{ip, *port}.ToString());
}

}  // namespace firn
