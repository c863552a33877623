#pragma once

#include <cstdint>
#include <string>

#include "tests/support/json_of.h"

namespace firn {

// tests/contract/frames.json: the frames of the wire contract that the clients of all languages
// share. tests/contract/frames_test.py explains their fields.
inline const Json& Frames() {
  static const Json frames = JsonOfFile(FIRN_SOURCE_DIR "/tests/contract/frames.json");
  return frames;
}

inline std::string Bytes(const Json& of) {
  const std::string& hex = of.at("frame").text();
  std::string bytes;
  for (size_t at = 0; at < hex.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
  }
  return bytes;
}

inline int64_t Long(const Json& of, const char* name) {
  return of.contains(name) ? std::stoll(of.at(name).text()) : 0;
}

}  // namespace firn
