#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <shared_mutex>

#include "client/socket/socket_pool.h"

namespace firn::client {

// The pools of all servers, by the servers' numbers. Thread-safe.
class SocketPools {
 public:
  explicit SocketPools(const SocketPool::Options& options) : options_(options) {}

  // The server's, which is made when there is none. It lives as long as somebody holds it.
  std::shared_ptr<SocketPool> Of(uint64_t server);

  // These are the servers that there are. Connections to others are closed, those in use when they
  // are given back.
  void KeepOnly(const std::set<uint64_t>& servers);

  // Closes connections that were idle for long. Mostly it is too soon to look, and nothing is done.
  void CloseOld(Micros now);

 private:
  const SocketPool::Options options_;
  std::shared_mutex mutex_;
  std::map<uint64_t, std::shared_ptr<SocketPool>> pools_;  // under mutex_, as the next
  Micros close_old_at_{0};
};

}  // namespace firn::client
