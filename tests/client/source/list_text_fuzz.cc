// Parses arbitrary bytes as a cached list of servers: refused with a reason, or equal when written
// again. Adds a correct checksum to some inputs, because random changes never produce one.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/crc.hpp>

#include "client/source/list_text.h"

namespace {

void Check(bool holds, std::string_view what) {
  if (!holds) firn::Die(what);
}

void Try(std::string_view text) {
  const auto kept = firn::ParseList(text);
  if (!kept.ok()) return Check(!kept.status().message().empty(), "refused without a reason");
  Check(firn::FormatList(*kept) == text, "one list, two spellings");
  Check(kept->list.from_cache, "a list from a file must be marked");
  Check(kept->list.servers.size() <= firn::ServerList::kServersMax, "too many servers");
}

std::string WithGoodCheck(std::string_view body) {
  boost::crc_32_type crc;
  crc.process_bytes(body.data(), body.size());
  std::string hex(8, '0');
  for (uint32_t left = crc.checksum(), i = 8; i > 0; left >>= 4) {
    hex[--i] = "0123456789abcdef"[left & 15];
  }
  return std::string(body) + "check " + hex + "\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Try(text);
  Try(WithGoodCheck(text.substr(0, text.rfind("check "))));
  return 0;
}
