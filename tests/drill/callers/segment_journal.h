#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace firn {

// One call of a process that takes segment numbers: its numbers and their time, on the machine's
// boot clock. The process writes it with one write before its next call.
struct TakenNumber {
  int64_t begin_ms = 0;
  int64_t end_ms = 0;
  int64_t number = 0;
};

// Prefix of lines that contain the reason of a failed call.
inline constexpr const char* kNoNumber = "no number: ";

// Returns all complete entries of a journal.
inline std::vector<TakenNumber> ReadTaken(const std::string& file) {
  std::vector<TakenNumber> all;
  std::ifstream in(file, std::ios::binary);
  for (TakenNumber one; in.read(reinterpret_cast<char*>(&one), sizeof one);) all.push_back(one);
  return all;
}

}  // namespace firn
