#include "server/store/registry_source.h"

namespace firn {

void RegistrySource::Take(const TagDefinition& tag, int64_t size, TakeDone done) {
  control_([this, tag, size, done = std::move(done)] { ledger_.Extend(tag, size, done); });
}

void RegistrySource::GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) {
  control_([this, name = tag.name, tail, done = std::move(done)] {
    ledger_.GiveBack(name, tail, done);
  });
}

}  // namespace firn
