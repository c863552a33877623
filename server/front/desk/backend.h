#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/id/rack_split.h"
#include "server/front/desk/reload_report.h"
#include "server/front/desk/server_view.h"
#include "server/front/desk/status_cache.h"
#include "server/front/desk/tag_rights.h"
#include "server/front/net/limits.h"
#include "server/front/net/tls_expiry.h"
#include "server/issue/issuer.h"
#include "server/issue/peer_take.h"
#include "server/issue/range.h"

namespace firn::front {

// When the certificates of a port expire: "public" or "admin".
struct CertificateReport {
  const char* door;
  TlsExpiry expiry;
};

// Objects that the handlers of a front door use; all outlive the handlers. Thread-safe.
struct Backend {
  Issuer& issuer;
  const ServerView& view;
  const Limits& limits;
  std::string default_tag;
  const StatusCache& status;
  // When a client is to request the list of servers again.
  std::function<Milliseconds()> ask_again;
  TagRights* rights = nullptr;  // null: every client may take ids of all tags
  std::function<std::vector<CertificateReport>()> certificates = [] {
    return std::vector<CertificateReport>();
  };
  // The last reload; null: there was none.
  std::function<std::shared_ptr<const ReloadReport>()> last_reload = [] {
    return std::shared_ptr<const ReloadReport>();
  };
  // Answers another server's take; an empty range: it must ask again; kNotFound: the caller need
  // not be a server, or has to ask another one. Null: this program takes no part in owning tags.
  std::function<Result<Range>(const PeerTake&)> take_owned{};

  // The refusal while the list of servers is unknown.
  static Refusal NoServersYet() {
    return {Reason::kNotReady, "this server has not read the list of servers yet", 1000, true};
  }

  // The layout that a request names; empty means the cluster's.
  Result<Layout> LayoutOf(std::string_view text) const {
    if (text.empty()) return view.layout();
    return Layout::Parse(text);
  }
  RackSplit SplitOf(const Layout& layout) const {
    return layout == view.layout() ? view.rack_split() : RackSplit::Default(layout);
  }
};

}  // namespace firn::front
