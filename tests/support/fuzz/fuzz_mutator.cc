#include "tests/support/fuzz/fuzz_mutator.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace firn {
namespace {

// Texts that parsers often mishandle.
constexpr std::array<std::string_view, 22> kTokens = {"0",
                                                      "-1",
                                                      "-0",
                                                      "127",
                                                      "128",
                                                      "255",
                                                      "256",
                                                      "65535",
                                                      "65536",
                                                      "2147483647",
                                                      "2147483648",
                                                      "4294967295",
                                                      "4294967296",
                                                      "9223372036854775807",
                                                      "9223372036854775808",
                                                      "-9223372036854775808",
                                                      "18446744073709551616",
                                                      "\r\n",
                                                      std::string_view("\0", 1),
                                                      "\xff\xfe",
                                                      "\xc3\xa9",
                                                      "\\u0000"};

}  // namespace

FuzzMutator::FuzzMutator(std::vector<std::string> corpus, Entropy& entropy)
    : corpus_(corpus.empty() ? std::vector<std::string>{""} : std::move(corpus)),
      entropy_(entropy) {}

std::string FuzzMutator::Next() {
  std::string input = AnyOfCorpus();
  const uint64_t changes = 1 + entropy_.Below(kChangesMax);
  for (uint64_t i = 0; i < changes; ++i) Change(input);
  if (input.size() > kSizeMax) input.resize(kSizeMax);
  return input;
}

const std::string& FuzzMutator::AnyOfCorpus() { return corpus_[entropy_.Below(corpus_.size())]; }

void FuzzMutator::Change(std::string& input) {
  const uint64_t kind = entropy_.Below(10);
  if (kind < 5) {
    ChangeBytes(input, kind);
  } else {
    ChangeStretch(input, kind);
  }
}

void FuzzMutator::ChangeBytes(std::string& input, uint64_t kind) {
  const size_t at = PlaceIn(input);
  const char byte = static_cast<char>(entropy_.Below(256));
  if (at == input.size() || kind == 0) {
    input.insert(at, 1, byte);
  } else if (kind == 1) {
    input[at] = static_cast<char>(input[at] ^ (1 << entropy_.Below(8)));
  } else if (kind == 2) {
    input[at] = byte;
  } else if (kind == 3) {
    input.erase(at, 1);
  } else {
    std::swap(input[at], input[entropy_.Below(input.size())]);
  }
}

void FuzzMutator::ChangeStretch(std::string& input, uint64_t kind) {
  const size_t at = PlaceIn(input);
  const size_t length = entropy_.Below(input.size() - at + 1);
  if (kind == 5) {
    input.erase(at, length);
  } else if (kind == 6) {
    input.insert(PlaceIn(input), input.substr(at, length));
  } else if (kind == 7) {
    input.resize(at);
  } else if (kind == 8) {
    const std::string& other = AnyOfCorpus();
    const size_t from = PlaceIn(other);
    input.replace(at, length, other, from, entropy_.Below(other.size() - from + 1));
  } else {
    input.replace(at, std::min<size_t>(length, 4), kTokens[entropy_.Below(kTokens.size())]);
  }
}

}  // namespace firn
