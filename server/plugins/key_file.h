#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace firn {

// The bytes of a secret key. Overwritten on destruction; movable, not copyable; cannot be printed.
class SecretKey {
 public:
  explicit SecretKey(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}
  ~SecretKey() { Wipe(); }
  SecretKey(SecretKey&& other) noexcept : bytes_(std::move(other.bytes_)) {}
  SecretKey& operator=(SecretKey&& other) noexcept;

  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  void Wipe();

  std::vector<uint8_t> bytes_;
};

// Reads an AES key: one line of 32, 48 or 64 hexadecimal digits, as `openssl rand -hex 32` prints.
//
// The file must be a regular file, owned by this user or root, without permissions for group and
// others (mode 0600 or less); otherwise kDenied, because a key that others can read is not secret.
// kNotFound if the file is missing, kInvalid if its content is not a key. Error messages never
// contain a part of the key.
Result<SecretKey> ReadKeyFile(const std::string& path);

}  // namespace firn
