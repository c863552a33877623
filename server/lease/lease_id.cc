#include "server/lease/lease_id.h"

#include <algorithm>
#include <optional>

#include "common/base/cat.h"
#include "common/base/hex.h"
#include "registry/cluster/nonce.h"

namespace firn {
namespace {

constexpr size_t kSecretBytes = Nonce::kTextBytes;
constexpr size_t kAddressBytesMax = 300;

bool IsOfAddress(char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\' && c != '<'; }

// Returns an empty string if the digits are not hexadecimal.
std::string FromHex(std::string_view digits) {
  std::string text;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    const std::optional<uint8_t> high = HexDigit(digits[i]), low = HexDigit(digits[i + 1]);
    if (!high || !low) return {};
    text += static_cast<char>(*high * 16 + *low);
  }
  return text;
}

}  // namespace

std::string DrawLeaseId(Entropy& entropy, std::string_view server) {
  return Cat(Nonce::Draw(entropy).text(), ".", ToHex(server));
}

Result<std::string> ServerOfLease(std::string_view id) {
  const std::string_view secret = id.substr(0, kSecretBytes);
  const std::string_view address =
      id.size() > kSecretBytes ? id.substr(kSecretBytes + 1) : std::string_view();
  const bool has_form = IsLeaseToken(secret) && id.size() > kSecretBytes &&
                        id[kSecretBytes] == '.' && IsLowerHex(address) && !address.empty() &&
                        address.size() % 2 == 0 && address.size() <= 2 * kAddressBytesMax;
  std::string server = has_form ? FromHex(address) : std::string();
  if (server.empty() || !std::all_of(server.begin(), server.end(), IsOfAddress)) {
    return Invalid("that is not the id of a lease");
  }
  return server;
}

bool IsLeaseToken(std::string_view text) { return text.size() == kSecretBytes && IsLowerHex(text); }

}  // namespace firn
