#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/base/status.h"
#include "server/plugins/ff1.h"

namespace firn {

// The ciphers of the keys in one folder, by key id: the key `k1` is in the file k1.key there. A key
// is read when it is first asked for and then kept, so one file is one permutation as long as the
// program runs, and tags under one key share its cipher. Thread-safe; reads files under its lock.
class KeyRing {
 public:
  explicit KeyRing(std::string folder) : folder_(std::move(folder)) {}

  // As ReadKeyFile fails. A failure is not kept: mend the file and ask again.
  Result<std::shared_ptr<const BlockCipher>> Cipher(const std::string& key_id);

 private:
  const std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const BlockCipher>> ciphers_;  // under mutex_
};

}  // namespace firn
