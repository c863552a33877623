#include "tests/drill/callers/awkward_readers.h"

#include <string>

#include <gtest/gtest.h>

namespace firn {
namespace {

bool Reads(const Manner& manner) { return manner.send_bytes > 1 && !manner.finishes_sending; }

}  // namespace

AwkwardReaders::AwkwardReaders(const std::vector<int>& ports, const std::string& tag) {
  constexpr TongueName kTongues[] = {TongueName::kThriftBinary, TongueName::kThriftCompact,
                                     TongueName::kHttp};
  for (const Manner& manner : AwkwardManners()) {
    if (!Reads(manner)) continue;
    const size_t n = clients_.size();
    clients_.push_back(
        std::make_unique<AwkwardClient>(AwkwardClient::Options{.ports = ports,
                                                               .first = n,
                                                               .tag = tag,
                                                               .tongue = kTongues[n % 3],
                                                               .manner = Modest(manner)}));
  }
}

int64_t AwkwardReaders::answered() const {
  int64_t sum = 0;
  for (const auto& client : clients_) sum += client->answered();
  return sum;
}

void AwkwardReaders::Stop() {
  for (const auto& client : clients_) client->Stop();
}

std::vector<int64_t> AwkwardReaders::ids() const {
  std::vector<int64_t> ids;
  for (const auto& client : clients_) {
    for (const std::string& fault : client->faults()) ADD_FAILURE() << fault;
    ids.insert(ids.end(), client->ids().begin(), client->ids().end());
  }
  return ids;
}

int64_t AwkwardReaders::Confess(DuplicateOracle& oracle) const {
  const std::vector<int64_t> all = ids();
  for (const int64_t id : all) {
    const Status added =
        oracle.Add("awkward readers", {BootMs(0), {.first = id, .count = 1, .stride = 1}});
    if (!added.ok()) ADD_FAILURE() << added;
  }
  return static_cast<int64_t>(all.size());
}

}  // namespace firn
