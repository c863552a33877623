#include "server/front/server_front.h"

#include <algorithm>
#include <utility>

#include "server/front/desk/id_desk.h"
#include "server/front/http/http_protocol.h"
#include "server/front/redis/redis_protocol.h"
#include "server/front/thrift/thrift_protocol.h"

namespace firn::front {

struct ServerFront::Desk {
  explicit Desk(const Backend& backend)
      : http(backend.issuer, http_counters, Method::kHttp, backend.default_tag, backend.rights),
        redis(backend.issuer, redis_counters, Method::kRedis, backend.default_tag, backend.rights),
        dubbo(backend.issuer, dubbo_counters, Method::kDubbo, backend.default_tag, backend.rights) {
  }

  DeskCounters thrift_counters, http_counters, redis_counters, dubbo_counters;
  IdDesk http, redis, dubbo;
  DubboCounters dubbo_messages;
};

// Every connection requests the list, so this limits the requests to 20 per second. The random
// variation separates clients that started at the same time.
Milliseconds AskAgain(uint64_t connections, Entropy& entropy) {
  constexpr int64_t kEachMs = 50, kLeastMs = 2'000, kMostMs = 60'000;
  const auto ms = static_cast<int64_t>(std::min<uint64_t>(connections, kMostMs)) * kEachMs;
  const int64_t middle = std::clamp(ms, kLeastMs, kMostMs);
  const auto spread = static_cast<uint64_t>(middle * 2 / 5);
  return Milliseconds(middle * 4 / 5 + static_cast<int64_t>(entropy.Below(spread + 1)));
}

ServerFront::ServerFront(ServerFrontOptions options, Issuer& issuer, const ServerView& view,
                         ServerControl& control, const Clock& clock)
    : options_(std::move(options)),
      control_(control),
      clock_(clock),
      rights_(options_.rights_file.empty() ? nullptr
                                           : std::make_unique<TagRights>(options_.rights_file)),
      logins_(options_.redis_auth_file.empty()
                  ? nullptr
                  : std::make_unique<RedisLogins>(options_.redis_auth_file)),
      status_(
          view, [this] { return sums(); }, clock),
      backend_{issuer,
               view,
               options_.listen.limits,
               options_.default_tag,
               status_,
               [this] { return AskAgain(totals().open(), SystemEntropy()); },
               rights_.get(),
               [this] { return certificates(); },
               [this] { return reloads_.last(); },
               options_.take_owned},
      public_(options_.listen, clock, [this] { return PublicProtocols(); }) {
  dubbo_.make_id_order = options_.dubbo.value_or(VestaOrder::kTimeFirst);
  if (!options_.admin) return;
  admin_.emplace(*options_.admin, clock, [this] { return AdminProtocols(); });
}

ServerFront::~ServerFront() = default;

void ServerFront::ListFiles() {
  if (const std::optional<TlsFiles>& tls = options_.listen.tls) {
    reloads_.Add(
        {{"tls_cert", tls->cert}, {"tls_key", tls->key}, {"tls_client_ca", tls->client_ca}},
        [this] { return public_.ReloadTls(); });
  }
  if (admin_ && options_.admin->tls) {
    const TlsFiles& tls = *options_.admin->tls;
    reloads_.Add({{"admin_tls_cert", tls.cert},
                  {"admin_tls_key", tls.key},
                  {"admin_tls_client_ca", tls.client_ca}},
                 [this] { return admin_->ReloadTls(); });
  }
  if (logins_ != nullptr) {
    reloads_.Add({{"redis_auth_file", options_.redis_auth_file}},
                 [this] { return ReloadLogins(); });
  }
  if (rights_ != nullptr) {
    reloads_.Add({{"rights_file", options_.rights_file}},
                 [this] { return rights_->Reload().WithContext("--rights_file"); });
  }
}

Status ServerFront::Start() {
  ListFiles();
  FIRN_TRY(RefreshRights());
  FIRN_TRY(ReloadLogins());
  FIRN_TRY(public_.Start().WithContext("public port"));
  if (!admin_) return {};
  Status started = admin_->Start().WithContext("admin port");
  if (!started.ok()) public_.Shutdown(Milliseconds(0));
  return started;
}

void ServerFront::Shutdown(Milliseconds patience) {
  public_.Shutdown(patience);
  if (admin_) admin_->Shutdown(patience);
}

DeskCounters::Sums ServerFront::sums() const {
  DeskCounters::Sums sums;
  sums.protocols[ProtocolKind::kThrift].served = true;
  sums.protocols[ProtocolKind::kHttp].served = true;
  sums.protocols[ProtocolKind::kRedis].served = options_.redis;
  sums.protocols[ProtocolKind::kDubbo].served = options_.dubbo.has_value();
  const Totals connections = totals();
  for (size_t i = 0; i < kProtocolKinds; ++i) {
    const auto kind = static_cast<ProtocolKind>(i);
    sums.protocols[kind].connections = connections.open(kind);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& desk : desks_) {
    desk->thrift_counters.AddTo(sums, ProtocolKind::kThrift);
    desk->http_counters.AddTo(sums, ProtocolKind::kHttp);
    desk->redis_counters.AddTo(sums, ProtocolKind::kRedis);
    desk->dubbo_counters.AddTo(sums, ProtocolKind::kDubbo);
  }
  return sums;
}

Status ServerFront::ReloadLogins() {
  return logins_ == nullptr ? Status() : logins_->Load().WithContext("--redis_auth_file");
}

Status ServerFront::RefreshRights() {
  return rights_ == nullptr ? Status() : rights_->Load().WithContext("--rights_file");
}

std::vector<CertificateReport> ServerFront::certificates() const {
  std::vector<CertificateReport> reports;
  const auto add = [&reports](const char* door, std::optional<TlsExpiry> expiry) {
    if (expiry) reports.push_back({door, *expiry});
  };
  add("public", public_.tls_expiry());
  if (admin_) add("admin", admin_->tls_expiry());
  return reports;
}

std::string ServerFront::Metrics() const {
  MetricsPage page;
  const WallMs now = clock_.Wall();
  Describe(public_.totals(), "public", public_.tls_expiry(), now, page);
  if (admin_) Describe(admin_->totals(), "admin", admin_->tls_expiry(), now, page);
  Describe(sums(), page);
  if (rights_ != nullptr) {
    for (const auto& [name, times] : rights_->refused()) {
      page.Counter("firn_tls_names_refused_total",
                   "Calls for tags to which the client's names give no right.", times,
                   {{"name", name}});
    }
  }
  Describe(backend_.view, page);
  if (options_.dubbo) DescribeDubbo(page);
  if (options_.leases != nullptr) Describe(options_.leases->counts(), page);
  if (options_.more_metrics) options_.more_metrics(page);
  return page.Text();
}

void ServerFront::DescribeDubbo(MetricsPage& page) const {
  uint64_t one_way = 0, heartbeats = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& desk : desks_) {
      one_way += desk->dubbo_messages.one_way.Get();
      heartbeats += desk->dubbo_messages.heartbeats.Get();
    }
  }
  page.Counter("firn_dubbo_one_way_total", "Calls that asked for no answer, and got no id.",
               one_way);
  page.Counter("firn_dubbo_heartbeats_total", "Heartbeats of Dubbo's consumers.", heartbeats);
}

void ServerFront::AddAdmin(std::vector<std::unique_ptr<HttpHandler>>& handlers) {
  handlers.push_back(MakeAdminHandler(
      backend_, control_, [this] { return Metrics(); }, options_.admin_hosts));
  handlers.push_back(MakeConsoleHandler(options_.history, options_.admin_hosts));
  if (options_.leases != nullptr) {
    handlers.push_back(MakeLeaseListHandler(*options_.leases, options_.admin_hosts));
  }
  if (options_.cluster == nullptr) return;
  handlers.push_back(MakeClusterHandler(*options_.cluster, options_.admin_hosts));
}

ProtocolSet ServerFront::PublicProtocols() {
  auto made = std::make_unique<Desk>(backend_);
  Desk& desk = *made;
  {
    const std::lock_guard lock(mutex_);
    desks_.push_back(std::move(made));
  }
  std::vector<std::unique_ptr<HttpHandler>> handlers;
  handlers.push_back(MakePageGuardHandler(options_.http_hosts));
  handlers.push_back(MakeNativeHandler(backend_, desk.http));
  handlers.push_back(MakeLeafHandler(backend_, desk.http));
  handlers.push_back(MakeTinyidHandler(backend_, desk.http, options_.tinyid_tokens));
  handlers.push_back(MakeVestaHandler(backend_, desk.http));
  handlers.push_back(MakeServersHandler(backend_));
  if (options_.leases != nullptr) {
    handlers.push_back(MakeLeaseHandler(backend_, *options_.leases));
  }
  handlers.push_back(MakeOpenApiHandler());
  if (!options_.admin) AddAdmin(handlers);
  ProtocolSet protocols{.thrift_binary = MakeThriftProtocol(ThriftCoding::kBinary, backend_,
                                                            desk.thrift_counters, options_.leases),
                        .thrift_compact = MakeThriftProtocol(ThriftCoding::kCompact, backend_,
                                                             desk.thrift_counters, options_.leases),
                        .http = MakeHttpProtocol(&desk.http, std::move(handlers))};
  if (options_.redis) {
    protocols.redis =
        MakeRedisProtocol(backend_, desk.redis, logins_.get(), options_.redis_incr_64bit);
  }
  if (options_.dubbo) {
    protocols.dubbo = MakeDubboProtocol(backend_, desk.dubbo, dubbo_, desk.dubbo_messages);
  }
  return protocols;
}

ProtocolSet ServerFront::AdminProtocols() {
  std::vector<std::unique_ptr<HttpHandler>> handlers;
  handlers.push_back(MakeGuardHandler(options_.admin_hosts));
  AddAdmin(handlers);
  handlers.push_back(MakeServersHandler(backend_));
  handlers.push_back(MakeOpenApiHandler());
  return {.http = MakeHttpProtocol(nullptr, std::move(handlers))};
}

}  // namespace firn::front
