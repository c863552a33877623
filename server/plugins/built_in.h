#pragma once

#include <memory>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "common/time/clock.h"
#include "server/issue/catalogue.h"
#include "server/plugins/history.h"
#include "server/plugins/key_ring.h"
#include "server/plugins/rate.h"

namespace firn {

// Dependencies of the built-in plugins. All must outlive the catalogue's tags.
struct PluginParts {
  const Clock& clock;
  std::shared_ptr<RateBoard> rates;    // metrics and the console read the rates here
  std::shared_ptr<History> history{};  // started; null: tags with the plugin `history` are refused
  std::shared_ptr<KeyRing> keys{};     // null: tags with the plugin `obfuscate` are refused
};

// Adds `limit`, `rate`, `history` and `obfuscate` to the catalogue. kConflict if a name is in use.
Status AddBuiltInPlugins(const PluginParts& parts, Catalogue& catalogue);

// Returns whether clients get a tag's ids exactly as its strategy issued them. False if the tag has
// a plugin that changes ids, or an unknown plugin.
bool ShowsIdsAsIssued(const TagDefinition& tag);

}  // namespace firn
