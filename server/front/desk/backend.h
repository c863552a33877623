#pragma once

#include <functional>
#include <string>

#include "common/id/layout.h"
#include "common/id/rack_split.h"
#include "server/front/desk/desk_counters.h"
#include "server/front/desk/server_view.h"
#include "server/front/net/limits.h"
#include "server/issue/issuer.h"

namespace firn::front {

// What the handlers of a front door work with; all of it outlives them. Thread-safe.
struct Backend {
  Issuer& issuer;
  const ServerView& view;
  const Limits& limits;
  std::string default_tag;
  // What all desks of the server have counted since it started.
  std::function<DeskCounters::Sums()> sums;

  // The layout of a text in a request; an empty one means the cluster's.
  Result<Layout> LayoutOf(std::string_view text) const {
    if (text.empty()) return view.layout();
    return Layout::Parse(text);
  }
  RackSplit SplitOf(const Layout& layout) const {
    return layout == view.layout() ? view.rack_split() : RackSplit::Default(layout);
  }
};

}  // namespace firn::front
