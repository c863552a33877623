#include "server/plugins/built_in.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "common/base/cat.h"
#include "server/plugins/limit.h"
#include "server/plugins/obfuscate.h"

namespace firn {

namespace {

using MadePlugin = Result<std::shared_ptr<Plugin>>;

// If two servers had different keys under one key id, two ids could be mapped to the same number.
Status CheckKey(const TagDefinition& tag, const BlockCipher& cipher) {
  const std::string check = KeyCheck(cipher);
  if (check.empty()) return Internal("the cipher of the plugin obfuscate failed");
  if (tag.obfuscate_check == check) return {};
  return Denied(Cat("this server's key ", tag.obfuscate_key, " is not the tag's key: its check is ",
                    check, ", obfuscate.check of the tag is ", tag.obfuscate_check));
}

}  // namespace

Status AddBuiltInPlugins(const PluginParts& parts, Catalogue& catalogue) {
  FIRN_TRY(catalogue.AddPlugin(
      "limit", [&clock = parts.clock](const TagDefinition& tag) { return MakeLimit(clock, tag); }));
  FIRN_TRY(catalogue.AddPlugin("rate", [rates = parts.rates](const TagDefinition& tag) {
    return MadePlugin(rates->ForTag(tag.name));
  }));
  FIRN_TRY(catalogue.AddPlugin(
      "history", [history = parts.history](const TagDefinition& tag) -> MadePlugin {
        if (history == nullptr) return NotFound("this program keeps no history");
        return std::shared_ptr<Plugin>(std::make_shared<HistoryPlugin>(history, tag.name));
      }));
  return catalogue.AddPlugin(
      "obfuscate", [keys = parts.keys](const TagDefinition& tag) -> MadePlugin {
        if (keys == nullptr) return NotFound("this program has no keys");
        FIRN_ASSIGN(auto cipher, keys->Cipher(tag.obfuscate_key));
        FIRN_TRY(CheckKey(tag, *cipher));
        FIRN_ASSIGN(auto plugin, ObfuscatePlugin::Make(cipher, tag.name, tag.obfuscate_width));
        return std::shared_ptr<Plugin>(std::move(plugin));
      });
}

bool ShowsIdsAsIssued(const TagDefinition& tag) {
  constexpr std::array<std::string_view, 3> kOnlyObserve{"history", "limit", "rate"};
  return std::all_of(tag.plugins.begin(), tag.plugins.end(), [&](const std::string& plugin) {
    return std::find(kOnlyObserve.begin(), kOnlyObserve.end(), plugin) != kOnlyObserve.end();
  });
}

}  // namespace firn
