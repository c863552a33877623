#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "server/issue/plugin.h"
#include "server/issue/rejection_handler.h"
#include "server/issue/segment/range_store.h"
#include "server/issue/strategy.h"

namespace firn {

// A program's own strategies, plugins and stores, in addition to Firn's, for ServerMain
// (server/server_main.h) and Embedded. The keys are the names in tag definitions: a lower-case
// letter, then lower-case letters, digits, dashes and underscores. The start fails if a name is
// already in use.
//
// A maker is called on the control thread, when a tag with its name begins to be served. An error
// says why this program cannot serve the tag; an exception counts as an error. One object may serve
// several tags. A strategy is started once, before its first tag, and stopped with the node. Stores
// are created once per opened node, and their name() must return their key.
struct Extensions {
  using StrategyMaker = std::function<Result<std::shared_ptr<Strategy>>(const TagDefinition&)>;
  using PluginMaker = std::function<Result<std::shared_ptr<Plugin>>(const TagDefinition&)>;
  using StoreMaker = std::function<std::unique_ptr<RangeStore>()>;

  std::map<std::string, StrategyMaker> strategies{};
  std::map<std::string, PluginMaker> plugins{};
  std::map<std::string, StoreMaker> stores{};
  std::shared_ptr<RejectionHandler> rejections{};  // null: refusals are logged
};

}  // namespace firn
