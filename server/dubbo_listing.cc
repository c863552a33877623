#include "server/dubbo_listing.h"

#include <string>
#include <utility>
#include <vector>

#include "common/log/log.h"
#include "registry/open/open_coordinator.h"
#include "server/front/dubbo/dubbo_request.h"

namespace firn {
namespace {

constexpr Milliseconds kDubboPatience{1'000};
constexpr Milliseconds kDubboPoll{10};

static_assert(kDubboInterfaces == front::kDubboServices);

std::vector<DubboInterface> Exported() {
  std::vector<DubboInterface> all;
  for (size_t i = 0; i < front::kDubboServices.size(); ++i) {
    const auto service = static_cast<front::DubboService>(i);
    all.push_back({std::string(front::kDubboServices[i]), std::string(front::MethodsOf(service))});
  }
  return all;
}

}  // namespace

Result<std::unique_ptr<DubboListing>> DubboListing::Open(const ServerOptions& options,
                                                         const Clock& clock, Entropy& entropy) {
  FIRN_ASSIGN(auto coordinator, OpenEnsemble(options.place.registry,
                                             {.auth = options.place.credentials,
                                              .session_time = options.place.session_timeout},
                                             clock));
  DubboProvider provider{.address = options.advertise.ToString(),
                         .tls = options.listen.tls.has_value(),
                         .since = clock.Wall(),
                         .pid = options.node.claim.identity.pid};
  return std::unique_ptr<DubboListing>(
      new DubboListing(std::move(coordinator), std::move(provider), clock, entropy));
}

DubboListing::DubboListing(std::unique_ptr<Coordinator> coordinator, DubboProvider provider,
                           const Clock& clock, Entropy& entropy)
    : clock_(clock),
      loop_(clock, std::move(coordinator)),
      publisher_(loop_.coordinator(), entropy, std::move(provider), Exported()) {}

void DubboListing::Start(Weight weight) {
  loop_.Start([this, weight = std::move(weight)](Now now) {
    publisher_.Want(withdrawn_ ? std::nullopt : weight());
    publisher_.Tick(now.boot);
  });
}

void DubboListing::Withdraw() {
  loop_.Post([this] { withdrawn_ = true; });
  const BootMs give_up = clock_.Boot() + kDubboPatience;
  while (announced() && clock_.Boot() < give_up) SleepFor(kDubboPoll);
  if (!announced()) return;
  LogWarning("withdrawal_unconfirmed")
      << "ZooKeeper has not confirmed that this server's Dubbo nodes are deleted";
}

}  // namespace firn
