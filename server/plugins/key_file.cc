#include "server/plugins/key_file.h"

#include <cstring>
#include <string_view>

#include "common/base/hex.h"
#include "common/base/secret_file.h"

namespace firn {
namespace {

Result<SecretKey> ParseKey(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != text.npos) {
    text.remove_suffix(1);
  }
  const Status wrong = Invalid("does not hold 32, 48 or 64 hexadecimal digits and nothing else");
  if (text.size() != 32 && text.size() != 48 && text.size() != 64) return wrong;
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const auto high = HexDigit(text[i]), low = HexDigit(text[i + 1]);
    if (!high || !low) return wrong;
    bytes.push_back(static_cast<uint8_t>(*high * 16 + *low));
  }
  return SecretKey(std::move(bytes));
}

}  // namespace

SecretKey& SecretKey::operator=(SecretKey&& other) noexcept {
  Wipe();
  bytes_ = std::move(other.bytes_);
  return *this;
}

void SecretKey::Wipe() {
  if (!bytes_.empty()) explicit_bzero(bytes_.data(), bytes_.size());
}

Result<SecretKey> ReadKeyFile(const std::string& path) {
  constexpr std::string_view kContext = "the key file";
  Result<std::string> text = ReadSecretFile(path);
  if (!text.ok()) return text.status().WithContext(kContext);
  Result<SecretKey> key = ParseKey(*text);
  explicit_bzero(text->data(), text->size());
  if (!key.ok()) return key.status().WithContext(path).WithContext(kContext);
  return key;
}

}  // namespace firn
