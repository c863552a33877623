#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/base/status.h"
#include "server/plugins/ff1.h"

namespace firn {

// The ciphers of the keys in one folder, by key id: the key `k1` is in the file k1.key. A key is
// read when it is first requested and then cached, so the permutation does not change while the
// program runs. Tags with the same key share its cipher. Thread-safe; reads files under its lock.
class KeyRing {
 public:
  explicit KeyRing(std::string folder) : folder_(std::move(folder)) {}

  // Returns the cipher of a key. Fails like ReadKeyFile. A failure is not cached, so a later call
  // can succeed once the file is fixed.
  Result<std::shared_ptr<const BlockCipher>> Cipher(const std::string& key_id);

 private:
  const std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const BlockCipher>> ciphers_;  // under mutex_
};

}  // namespace firn
