#include "server/peers/owners_setup.h"

#include <memory>
#include <optional>
#include <utility>

#include "server/node/open_node.h"
#include "server/peers/peer_links.h"

namespace firn {

OwnersSetup OwnersOf(const ServerOptions& options) {
  if (options.place.registry.starts_with(kStaticRegistry)) return {};
  std::optional<PeerTls> tls;
  if (const auto& files = options.listen.tls) {
    tls = {.cert = files->cert, .key = files->key, .ca = files->client_ca};
  }
  const auto links = std::make_shared<PeerLinks>(std::move(tls));
  return {.address = options.advertise.ToString(),
          .tls = options.listen.tls.has_value(),
          .ask =
              [links](const std::string& address, PeerTake take, OwnerLink::Count count,
                      RangeSource::TakeDone done) {
                links->Take(address, std::move(take), std::move(count), std::move(done));
              },
          .unreachable = [links] { return links->Unreachable(); },
          .stop = [links] { links->Stop(); }};
}

void AddMetrics(const OwnersReport& owners, front::MetricsPage& page) {
  for (const auto& [tag, address] : owners.tags) {
    page.Gauge("firn_tag_owner",
               "1: this server owns the numbers of this tag with buffer = owner, or the "
               "owner has answered it lately.",
               address.empty() ? 0 : 1, {{"tag", tag}, {"owner", address}});
  }
  page.Gauge("firn_owned_partitions", "Partitions of such tags that this server owns.",
             static_cast<double>(owners.owned));
  page.Counter("firn_partitions_taken_total", "Partitions of such tags that this server has taken.",
               owners.taken_over);
  const char* const help = "Takes of numbers between servers.";
  page.Counter("firn_owner_takes_total", help, owners.asked, {{"side", "asked"}});
  page.Counter("firn_owner_takes_total", help, owners.answered, {{"side", "answered"}});
}

}  // namespace firn
