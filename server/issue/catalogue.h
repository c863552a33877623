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

// The strategies and plugins that a program has, by the names that tag definitions use. `main`
// fills it, with those of users too; nothing registers itself. Thread-compatible.
//
// A maker is called for each tag that names it, and may give the same object to several: the
// snowflake strategy is one for all, a segment strategy one for each.
class Catalogue {
 public:
  // `layout` of the cluster, which texts of ids may show.
  explicit Catalogue(const Layout& layout = Layout::Firn()) : layout_(layout) {}

  using StrategyMaker = std::function<Result<std::shared_ptr<Strategy>>(const TagDefinition&)>;
  using PluginMaker = std::function<Result<std::shared_ptr<Plugin>>(const TagDefinition&)>;

  // kConflict when the name is taken.
  Status AddStrategy(std::string name, StrategyMaker maker);
  Status AddPlugin(std::string name, PluginMaker maker);

  // How the tag is to be served here, with its strategy and plugins made but not started. kNotFound
  // for a strategy, plugin or zone that this program lacks: the tag must then not be served at all.
  Result<TagBinding> Bind(const TagDefinition& tag) const;

  std::set<std::string> StrategyNames() const;
  std::set<std::string> PluginNames() const;

 private:
  const Layout layout_;
  std::map<std::string, StrategyMaker> strategies_;
  std::map<std::string, PluginMaker> plugins_;
};

}  // namespace firn
