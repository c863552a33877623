#include "client/source/seed_list.h"

#include <algorithm>

namespace firn::client {

bool SeedList::Wants(const ToldServers& told, Micros now) const {
  if (!told.list || told.list->servers.empty() || told.version <= 0) return false;
  if (told.version >= version_) return told.version > version_;
  return nobody_answers_ || now - Micros(told.age) > taken_at_ + kPutBackAfter;
}

bool SeedList::Hear(const ToldServers& told, Micros now) {
  const bool wanted = Wants(told, now);
  if (wanted) {
    own_ = *told.list;
    version_ = told.version;
    taken_at_ = now;
  }
  nobody_answers_ = false;
  if (!own_.servers.empty()) with_seeds_.reset();
  return wanted;
}

void SeedList::OnNoAnswer() {
  nobody_answers_ = true;
  AddSeeds();
}

void SeedList::AddSeeds() {
  with_seeds_ = own_;
  for (const KnownServer& seed : seeds_) {
    const bool listed =
        std::any_of(own_.servers.begin(), own_.servers.end(),
                    [&](const KnownServer& server) { return server.address == seed.address; });
    if (!listed) with_seeds_->servers.push_back(seed);
  }
}

}  // namespace firn::client
