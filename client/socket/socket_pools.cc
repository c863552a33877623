#include "client/socket/socket_pools.h"

#include <mutex>

namespace firn::client {

std::shared_ptr<SocketPool> SocketPools::Of(uint64_t server) {
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = pools_.find(server); found != pools_.end()) return found->second;
  }
  const std::unique_lock lock(mutex_);
  std::shared_ptr<SocketPool>& pool = pools_[server];
  if (pool == nullptr) pool = std::make_shared<SocketPool>(options_);
  return pool;
}

void SocketPools::KeepOnly(const std::set<uint64_t>& servers) {
  const std::unique_lock lock(mutex_);
  std::erase_if(pools_, [&](const auto& pool) { return !servers.contains(pool.first); });
}

void SocketPools::CloseOld(Micros now) {
  const std::unique_lock lock(mutex_);
  if (now < close_old_at_) return;
  close_old_at_ = now + SocketPool::kIdleMax / 8;
  for (const auto& [server, pool] : pools_) pool->CloseOld(now);
}

}  // namespace firn::client
