#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "common/base/status.h"
#include "common/id/layout.h"
#include "common/tag/tag_definition.h"
#include "server/issue/plugin.h"
#include "server/issue/strategy.h"
#include "server/issue/tag_table.h"

namespace firn {

// The strategies and plugins of a program, by the names that tag definitions use. `main` adds each
// one explicitly, also those of users. Thread-compatible.
//
// A maker is called once for each tag that uses its name. It may return the same object for several
// tags: all snowflake tags share one strategy, and each segment tag has its own.
class Catalogue {
 public:
  // `layout`: the cluster's layout, which the text forms of ids can show.
  explicit Catalogue(const Layout& layout = Layout::Firn()) : layout_(layout) {}

  using StrategyMaker = std::function<Result<std::shared_ptr<Strategy>>(const TagDefinition&)>;
  using PluginMaker = std::function<Result<std::shared_ptr<Plugin>>(const TagDefinition&)>;

  // kConflict if the name is in use.
  Status AddStrategy(std::string name, StrategyMaker maker);
  Status AddPlugin(std::string name, PluginMaker maker);

  // Makes the tag's strategy and plugins, but does not start them. kNotFound if this program lacks
  // the strategy, a plugin or the time zone: it must then not serve the tag.
  Result<TagBinding> Bind(const TagDefinition& tag) const;

  std::set<std::string> StrategyNames() const;
  std::set<std::string> PluginNames() const;

 private:
  const Layout layout_;
  std::map<std::string, StrategyMaker> strategies_;
  std::map<std::string, PluginMaker> plugins_;
};

}  // namespace firn
