#include "registry/claim/owner.h"

#include "common/endpoint.h"

namespace firn {
namespace {

constexpr size_t kApplicationBytesMax = 100;
constexpr std::string_view kApplicationBytes =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

// Fowler, Noll and Vo's hash: names that differ shall look different, nobody is kept from forging.
class Digest {
 public:
  void Add(std::string_view bytes) {
    for (const char c : bytes) {
      value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }
  void Add(uint64_t number) { Add(std::to_string(number) + "/"); }
  std::string text() const {
    std::string hex(16, '0');
    for (size_t i = 0; i < hex.size(); ++i) {
      hex[i] = "0123456789abcdef"[value_ >> (60 - 4 * i) & 15];
    }
    return hex;
  }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

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

std::string OwnerName::TextIn(const FileIdentity& grant_file, std::string_view host) const {
  Digest digest;  // not the boot: the name outlives it
  digest.Add(grant_file.device);
  digest.Add(grant_file.inode);
  digest.Add(grant_file.born_ns);
  digest.Add(host);
  return text_ + "." + digest.text();
}

}  // namespace firn
