#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"

namespace firn::front {

// The users of the Redis protocol and their passwords, from a file that other users cannot read:
//
//     # one `user:password` per line; AUTH without a user means `default`
//     alice:correct horse
//
// Thread-safe.
class RedisLogins {
  using Table = std::map<std::string, std::string, std::less<>>;

 public:
  // One thread's access: it takes the lock only when the file has been read again. The logins must
  // outlive it.
  class Reader {
   public:
    explicit Reader(const RedisLogins& logins) : logins_(&logins) {}

    // Whether this is the user's password. Its duration depends only on the given password.
    bool Accepts(std::string_view user, std::string_view password);
    // Whether the file still has this user.
    bool Has(std::string_view user);
    // Changes when the file has been read again.
    uint64_t edition() const { return logins_->edition_.load(std::memory_order_acquire); }

   private:
    const Table& Latest();

    const RedisLogins* logins_;
    uint64_t edition_ = 0;
    std::shared_ptr<const Table> table_;
  };

  explicit RedisLogins(std::string file) : file_(std::move(file)) {}

  // Reads the file. A failure names the file or the line, never a password, and the earlier logins
  // stay in use.
  Status Load();

 private:
  static Result<Table> Parse(std::string_view text);

  const std::string file_;
  std::atomic<uint64_t> edition_ = 1;  // of table_: set under the mutex, after it
  mutable std::mutex mutex_;           // guards table_
  std::shared_ptr<const Table> table_ = std::make_shared<const Table>();
};

}  // namespace firn::front
