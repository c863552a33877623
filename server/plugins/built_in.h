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

// What the built-in plugins work with. All of it outlives the catalogue's tags.
struct PluginParts {
  const Clock& clock;
  std::shared_ptr<RateBoard> rates;    // whoever shows rates reads them there
  std::shared_ptr<History> history{};  // started; null: tags with the plugin `history` are refused
  std::shared_ptr<KeyRing> keys{};     // null: tags with the plugin `obfuscate` are refused
};

// Puts `limit`, `rate`, `history` and `obfuscate` into the catalogue. kConflict when a name is
// taken.
Status AddBuiltInPlugins(const PluginParts& parts, Catalogue& catalogue);

// Whether the ids that a tag gives are those that its strategy made. False when it has a plugin
// that changes them, or one of which that is not known.
bool ShowsIdsAsIssued(const TagDefinition& tag);

}  // namespace firn
