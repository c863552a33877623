#include "server/issue/catalogue.h"

#include <exception>
#include <utility>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "common/tag/tag_fields.h"
#include "common/text/text_template.h"
#include "common/text/time_zone.h"

namespace firn {
namespace {

template <typename Makers>
Status Add(Makers& makers, std::string name, typename Makers::mapped_type maker) {
  if (!IsTagWord(name))
    return Invalid(Quoted(name) + " is not a valid name: a tag could not use it");
  if (maker == nullptr) return Invalid(Cat("'", name, "' has no maker function"));
  if (makers.contains(name)) return Conflict("'" + name + "' is already registered");
  makers.emplace(std::move(name), std::move(maker));
  return {};
}

// If a user's factory fails, only that tag is affected, not the program.
template <typename Maker>
typename Maker::result_type MakeOne(const Maker& maker, const std::string& name,
                                    std::string_view kind, const TagDefinition& tag) {
  try {
    auto made = maker(tag);
    if (!made.ok() || *made != nullptr) return made;
  } catch (const std::exception& e) {
    return Internal(Cat("making the ", kind, " '", name, "' threw: ", e.what()));
  } catch (...) {
    return Internal(Cat("making the ", kind, " '", name, "' threw"));
  }
  return Internal(Cat("the maker of the ", kind, " '", name, "' returned null"));
}

template <typename Makers>
std::set<std::string> NamesIn(const Makers& makers) {
  std::set<std::string> names;
  for (const auto& [name, maker] : makers) names.insert(name);
  return names;
}

template <typename Makers>
auto Make(const Makers& makers, const std::string& name, std::string_view kind,
          const TagDefinition& tag) -> typename Makers::mapped_type::result_type {
  const auto maker = makers.find(name);
  if (maker == makers.end()) {
    std::string known;
    for (const auto& [other, unused] : makers) known += (known.empty() ? "" : ", ") + other;
    return NotFound(Cat("this server has no ", kind, " '", name, "', only: ", known));
  }
  return MakeOne(maker->second, name, kind, tag);
}

Result<std::shared_ptr<const TextTemplate>> TextOf(const TagDefinition& tag, const Layout& layout) {
  if (tag.text.empty()) return std::shared_ptr<const TextTemplate>();
  FIRN_ASSIGN(TimeZone zone, TimeZone::Load(tag.zone));
  FIRN_ASSIGN(TextTemplate text,
              TextTemplate::Parse(tag.text, std::move(zone), tag.Dated(), layout));
  return std::make_shared<const TextTemplate>(std::move(text));
}

}  // namespace

Status Catalogue::AddStrategy(std::string name, StrategyMaker maker) {
  return Add(strategies_, std::move(name), std::move(maker));
}

Status Catalogue::AddPlugin(std::string name, PluginMaker maker) {
  return Add(plugins_, std::move(name), std::move(maker));
}

Result<TagBinding> Catalogue::Bind(const TagDefinition& tag) const {
  TagBinding binding{tag.name, nullptr, {}};
  for (const std::string& name : tag.plugins) {
    auto plugin = Make(plugins_, name, "plugin", tag);
    if (!plugin.ok()) return plugin.status();
    binding.plugins.push_back(*std::move(plugin));
  }
  FIRN_ASSIGN(binding.text, TextOf(tag, layout_));
  auto strategy = Make(strategies_, tag.strategy, "strategy", tag);
  if (!strategy.ok()) return strategy.status();
  binding.strategy = *std::move(strategy);
  return binding;
}

std::set<std::string> Catalogue::StrategyNames() const { return NamesIn(strategies_); }

std::set<std::string> Catalogue::PluginNames() const { return NamesIn(plugins_); }

}  // namespace firn
