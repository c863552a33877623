#include "server/front/server_front.h"

#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "server/front/desk/backend.h"
#include "server/front/desk/id_desk.h"
#include "server/front/http/http_admin.h"
#include "server/front/http/http_protocol.h"
#include "server/front/thrift/thrift_protocol.h"

namespace firn::front {
namespace {

// What one IO thread of the public door works with.
struct Desk {
  explicit Desk(const Backend& backend)
      : http(backend.issuer, http_counters, Method::kHttp, backend.default_tag) {}

  DeskCounters thrift_counters, http_counters;
  IdDesk http;
};

}  // namespace

class ServerFront::Impl {
 public:
  Impl(ServerFrontOptions options, Issuer& issuer, const ServerView& view, ServerControl& control,
       const Clock& clock)
      : options_(std::move(options)),
        control_(control),
        backend_{issuer, view, options_.listen.limits, options_.default_tag,
                 [this] { return Sums(); }},
        public_(options_.listen, clock, [this] { return PublicProtocols(); }) {
    if (!options_.admin) return;
    admin_.emplace(*options_.admin, clock, [this] { return AdminProtocols(); });
  }

  Status Start() {
    FIRN_TRY(public_.Start().WithContext("public port"));
    if (!admin_) return {};
    Status started = admin_->Start().WithContext("admin port");
    if (!started.ok()) public_.Shutdown(Milliseconds(0));
    return started;
  }

  void Shutdown(Milliseconds patience) {
    public_.Shutdown(patience);
    if (admin_) admin_->Shutdown(patience);
  }

  DeskCounters::Sums Sums() const {
    DeskCounters::Sums sums;
    std::lock_guard lock(mutex_);
    for (const Desk& desk : desks_) {
      desk.thrift_counters.AddTo(sums);
      desk.http_counters.AddTo(sums);
    }
    return sums;
  }

  std::string Metrics() const {
    MetricsPage page;
    Describe(public_.totals(), "public", page);
    if (admin_) Describe(admin_->totals(), "admin", page);
    Describe(Sums(), page);
    Describe(backend_.view, page);
    if (options_.more_metrics) options_.more_metrics(page);
    return page.Text();
  }

  FrontDoor& public_door() { return public_; }
  FrontDoor& admin_door() { return admin_ ? *admin_ : public_; }

 private:
  Desk& NewDesk() {
    std::lock_guard lock(mutex_);
    return desks_.emplace_back(backend_);
  }
  std::unique_ptr<HttpHandler> Admin() {
    return MakeAdminHandler(backend_, control_, [this] { return Metrics(); });
  }
  ProtocolSet PublicProtocols();
  ProtocolSet AdminProtocols();

  const ServerFrontOptions options_;
  ServerControl& control_;
  const Backend backend_;
  mutable std::mutex mutex_;
  std::deque<Desk> desks_;  // under mutex_; each is one IO thread's, but for its counters
  FrontDoor public_;        // ends before what it works with
  std::optional<FrontDoor> admin_;
};

ProtocolSet ServerFront::Impl::PublicProtocols() {
  const Limits& limits = options_.listen.limits;
  Desk& desk = NewDesk();
  std::vector<std::unique_ptr<HttpHandler>> handlers;
  handlers.push_back(MakeNativeHandler(backend_, desk.http));
  handlers.push_back(MakeLeafHandler(backend_, desk.http));
  handlers.push_back(MakeTinyidHandler(backend_, desk.http, options_.tinyid_tokens));
  handlers.push_back(MakeVestaHandler(backend_, desk.http));
  if (!options_.admin) handlers.push_back(Admin());
  ProtocolSet set;
  set.thrift_binary = MakeThriftProtocol(ThriftCoding::kBinary, backend_, desk.thrift_counters);
  set.thrift_compact = MakeThriftProtocol(ThriftCoding::kCompact, backend_, desk.thrift_counters);
  set.http = MakeHttpProtocol(limits, std::move(handlers));
  return set;
}

ProtocolSet ServerFront::Impl::AdminProtocols() {
  std::vector<std::unique_ptr<HttpHandler>> handlers;
  handlers.push_back(Admin());
  ProtocolSet set;
  set.http = MakeHttpProtocol(options_.admin->limits, std::move(handlers));
  return set;
}

ServerFront::ServerFront(ServerFrontOptions options, Issuer& issuer, const ServerView& view,
                         ServerControl& control, const Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), issuer, view, control, clock)) {}

ServerFront::~ServerFront() = default;

Status ServerFront::Start() { return impl_->Start(); }
uint16_t ServerFront::port() const { return impl_->public_door().port(); }
uint16_t ServerFront::admin_port() const { return impl_->admin_door().port(); }
Status ServerFront::ReloadTls() { return impl_->public_door().ReloadTls(); }
void ServerFront::WakeParked() { impl_->public_door().WakeParked(); }
void ServerFront::Shutdown(Milliseconds patience) { impl_->Shutdown(patience); }
Totals ServerFront::totals() const { return impl_->public_door().totals(); }
DeskCounters::Sums ServerFront::sums() const { return impl_->Sums(); }
std::string ServerFront::Metrics() const { return impl_->Metrics(); }

}  // namespace firn::front
