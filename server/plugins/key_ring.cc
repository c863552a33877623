#include "server/plugins/key_ring.h"

#include "server/plugins/key_file.h"
#include "server/plugins/obfuscate.h"

namespace firn {

Result<std::shared_ptr<const BlockCipher>> KeyRing::Cipher(const std::string& key_id) {
  const std::scoped_lock lock(mutex_);
  if (const auto known = ciphers_.find(key_id); known != ciphers_.end()) return known->second;
  FIRN_ASSIGN(const SecretKey key, ReadKeyFile(folder_ + "/" + key_id + ".key"));
  FIRN_ASSIGN(std::shared_ptr<const BlockCipher> cipher, MakeAes(key));
  return ciphers_[key_id] = std::move(cipher);
}

}  // namespace firn
