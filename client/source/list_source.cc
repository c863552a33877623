#include "client/source/list_source.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/cat.h"
#include "common/base/faults.h"
#include "common/base/quote.h"
#include "common/net/endpoint.h"

namespace firn {
namespace {

constexpr std::string_view kScheme = "list://";

class ListSource final : public ServerSource {
 public:
  explicit ListSource(ServerList list) : list_(std::move(list)) {}

  Status Start(Listener on_list) override {
    on_list(list_);
    return {};
  }
  void Stop() override {}

 private:
  const ServerList list_;
};

void AddServer(std::string_view text, std::vector<KnownServer>& servers, Faults& faults) {
  const Result<Endpoint> endpoint = Endpoint::ParseServer(text);
  if (!endpoint.ok()) return faults.Add(endpoint.status().message());
  KnownServer server{.address = endpoint->ToString()};
  if (std::find(servers.begin(), servers.end(), server) != servers.end()) {
    return faults.Add(Quoted(text) + " is given twice");
  }
  servers.push_back(std::move(server));
}

}  // namespace

Result<std::unique_ptr<ServerSource>> OpenListSource(const std::string& servers) {
  if (servers.starts_with("zk://") || servers.starts_with("dir://")) {
    return Invalid(
        Quoted(servers) +
        " names a registry, which this client cannot read; link firn::client_registry, include "
        "client/source/registry_source.h, and set ClientOptions::open_source to "
        "firn::RegistrySources()");
  }
  if (!servers.starts_with(kScheme)) {
    return Invalid(Quoted(servers) +
                   " does not begin with list:// or firn://; for a source of your own, set "
                   "ClientOptions::open_source");
  }
  FIRN_ASSIGN(std::vector<KnownServer> given,
              ParseServers(std::string_view(servers).substr(kScheme.size())));
  ServerList list{.servers = std::move(given), .fixed = true};
  return std::unique_ptr<ServerSource>(std::make_unique<ListSource>(std::move(list)));
}

Result<std::vector<KnownServer>> ParseServers(std::string_view text) {
  std::vector<KnownServer> servers;
  Faults faults;
  while (servers.size() <= ServerList::kServersMax) {
    const size_t comma = text.find(',');
    AddServer(text.substr(0, comma), servers, faults);
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  if (servers.size() > ServerList::kServersMax) {
    faults.Add(Cat("a list has at most ", ServerList::kServersMax, " servers"));
  }
  if (!faults.empty()) return std::move(faults).ToStatus().WithContext("servers");
  return servers;
}

}  // namespace firn
