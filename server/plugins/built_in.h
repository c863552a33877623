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

// What the built-in plugins use. All of it must outlive the catalogue's tags.
struct PluginParts {
  const Clock& clock;
  std::shared_ptr<RateBoard> rates;    // metrics and the console read the rates there
  std::shared_ptr<History> history{};  // started; null: tags with the plugin `history` are refused
  std::shared_ptr<KeyRing> keys{};     // null: tags with the plugin `obfuscate` are refused
};

// Adds `limit`, `rate`, `history` and `obfuscate` to the catalogue. kConflict if a name is
// taken.
Status AddBuiltInPlugins(const PluginParts& parts, Catalogue& catalogue);

// Whether a tag returns its strategy's ids unchanged. False if it has a plugin that changes them,
// or a plugin that is not known here.
bool ShowsIdsAsIssued(const TagDefinition& tag);

}  // namespace firn
