#pragma once

#include <string>
#include <vector>

#include "common/time/entropy.h"

namespace firn {

// Makes hostile inputs out of good ones: bits and bytes changed, stretches dropped, doubled, moved
// or taken from another input, numbers put at the edges of their types. The same corpus and the
// same entropy give the same inputs, so that a seed replays a failure. One thread at a time.
class FuzzMutator {
 public:
  static constexpr size_t kSizeMax = 4096;
  static constexpr int kChangesMax = 8;

  // `corpus` may be empty: then inputs start from nothing. Holds on to `entropy`.
  FuzzMutator(std::vector<std::string> corpus, Entropy& entropy);

  // An input with one to kChangesMax changes, at most kSizeMax bytes.
  std::string Next();

 private:
  void Change(std::string& input);
  void ChangeBytes(std::string& input, uint64_t kind);
  void ChangeStretch(std::string& input, uint64_t kind);
  const std::string& AnyOfCorpus();
  size_t PlaceIn(const std::string& input) { return entropy_.Below(input.size() + 1); }

  const std::vector<std::string> corpus_;
  Entropy& entropy_;
};

}  // namespace firn
