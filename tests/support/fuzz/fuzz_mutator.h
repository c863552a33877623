#pragma once

#include <string>
#include <vector>

#include "common/time/entropy.h"

namespace firn {

// Derives hostile inputs from valid ones: changes bits and bytes; drops, doubles or moves parts, or
// takes them from another input; sets numbers to the limits of their types. The same corpus and
// entropy give the same inputs, so that a seed reproduces a failure. One thread at a time.
class FuzzMutator {
 public:
  static constexpr size_t kSizeMax = 4096;
  static constexpr int kChangesMax = 8;

  // `corpus` may be empty: then inputs start empty. Keeps a reference to `entropy`.
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
