#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/front/desk_counters.h"
#include "server/front/limits.h"
#include "server/front/server_view.h"
#include "server/front/thrift_protocol.h"
#include "server/issue/issuer.h"

namespace firn::front {

// What the handlers of a front door work with; all of it outlives them.
struct Backend {
  Issuer& issuer;
  const ServerView& view;
  const Limits& limits;
  std::string default_tag;
  // Ids by tag, of the whole server since it started. Any thread.
  std::function<DeskCounters::Sums()> sums;
};

// The wire contract on one IO thread: Twitter's methods and Firn's, over the issuer. Every "no" is
// a declared refusal. A call that has to wait leaves its state in the attempt and throws NoIdsYet.
// `backend` and `counters` must outlive it.
std::unique_ptr<ThriftHandler> MakeThriftService(const Backend& backend, DeskCounters& counters);

}  // namespace firn::front
