#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/id/id_clock.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/front/desk/backend.h"
#include "server/front/desk/server_view.h"
#include "server/issue/issuer.h"
#include "server/issue/snowflake/snowflake.h"

namespace firn::front {

// The backend of a measured server: snowflake tags `default` and `counter:__rand_int__`, the key of
// redis-benchmark, under a claim that is not in any registry, valid for a day. For measurements
// only: two of these would issue the same ids.
class BenchServer final : public ServerView, public ServerControl, public RejectionHandler {
 public:
  explicit BenchServer(const Layout& layout = Layout::Firn()) : layout_(layout) {
    const WallMs now = SystemClock().Wall();
    auto claim = std::make_shared<Claim>(layout_, MachineId(1), now);
    claim->ExtendTo(now + Milliseconds(86'400'000));
    if (!snowflake_->Adopt(claim).ok()) Die("the claim was not adopted");
    for (const char* const tag : {"default", "counter:__rand_int__"}) {
      if (!issuer_.Set({tag, snowflake_, {}}).ok()) Die("a tag was not defined");
    }
  }

  Issuer& issuer() { return issuer_; }
  const Backend& backend() const { return backend_; }

  ServerReport Report() const override { return {}; }
  uint64_t version() const override { return 0; }
  ServerPhase phase() const override { return ServerPhase::kReady; }
  std::optional<MachineId> machine() const override { return MachineId(1); }
  const Layout& layout() const override { return layout_; }
  RackSplit rack_split() const override { return RackSplit::Default(layout_); }
  WallMs wall() const override { return SystemClock().Wall(); }
  Status GoOffline() override { return Unavailable("not here"); }
  Status GoOnline() override { return Unavailable("not here"); }
  void OnRefusal(const Request&, const Refusal&) override {}

 private:
  const Layout layout_;
  const Limits limits_;
  IdClock id_clock_;
  TickSource ticks_{layout_, id_clock_, SystemClock()};
  std::shared_ptr<Snowflake> snowflake_ = std::make_shared<Snowflake>(ticks_, SystemEntropy());
  Issuer issuer_{*this};
  const StatusCache status_{*this, [] { return DeskCounters::Sums(); }, SystemClock()};
  const Backend backend_{issuer_,   *this,   limits_,
                         "default", status_, [] { return Milliseconds(60'000); }};
};

}  // namespace firn::front
