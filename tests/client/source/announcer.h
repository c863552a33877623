#pragma once

#include <memory>
#include <string>

#include "common/base/url_encoding.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/servers/provider.h"

namespace firn {

// Registers servers that do not exist, and operators' settings of them, in a real registry, for
// tests of clients. Used by one thread. The destructor ends the session, which removes the nodes.
class Announcer {
 public:
  explicit Announcer(const std::string& registry, Milliseconds session = Milliseconds(2000)) {
    const OpenOptions options{.session_time = session, .time_limit = Milliseconds(30'000)};
    auto opened = OpenCoordinator(registry, options, SystemClock(), SystemEntropy());
    if (!opened.ok()) Die(opened.status().ToString());
    coordinator_ = *std::move(opened);
    registry_ = std::make_unique<BlockingCoordinator>(*coordinator_, SystemClock());
    Must(registry_->Connect(Milliseconds(60'000)));
  }

  // Creates a cluster with one machine id and returns its uuid.
  std::string MakeCluster() {
    Must(registry_->PrepareRoot());
    Must(firn::MakeCluster(*registry_, {.workers = 1}, SystemEntropy()));
    Make(std::string(kServicePath), "", Lifetime::kPersistent);
    Make(std::string(kProvidersPath), "", Lifetime::kPersistent);
    Make(std::string(kConfiguratorsPath), "", Lifetime::kPersistent);
    return ReadMeta(*registry_).value().meta.uuid;
  }

  void Add(const std::string& address, ServerPhase phase = ServerPhase::kReady) {
    Make(PathOf(address), FormatReport({.phase = phase}), Lifetime::kEphemeral);
  }
  // Replaces the process at its address by another one, before a client notices.
  void StartAnew(const std::string& address, int64_t pid) {
    const Provider anew{.address = address, .pid = pid};
    Must(registry_
             ->Multi({Write::Erase(PathOf(address), Write::kAnyVersion),
                      Write::Create(std::string(kProvidersPath) + "/" + ProviderNodeName(anew),
                                    FormatReport({.phase = ServerPhase::kReady}),
                                    Lifetime::kEphemeral)})
             .status);
  }
  void Change(const std::string& address, ServerPhase phase) {
    Do(Write::Set(PathOf(address), FormatReport({.phase = phase}), Write::kAnyVersion));
  }
  void Remove(const std::string& address) { Do(Write::Erase(PathOf(address), Write::kAnyVersion)); }
  void Say(const std::string& address, const Configurator& word) {
    Make(std::string(kConfiguratorsPath) + "/" + UrlEncode(address), FormatConfigurator(word),
         Lifetime::kPersistent);
  }

 private:
  static void Must(const Status& status) {
    if (!status.ok()) Die(status.ToString());
  }
  static std::string PathOf(const std::string& address) {
    return std::string(kProvidersPath) + "/" + ProviderNodeName({.address = address});
  }
  void Do(Write write) { Must(registry_->Multi({std::move(write)}).status); }
  void Make(const std::string& path, const std::string& data, Lifetime lifetime) {
    Do(Write::Create(path, data, lifetime));
  }

  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<BlockingCoordinator> registry_;
};

}  // namespace firn
