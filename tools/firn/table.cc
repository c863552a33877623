#include "tools/firn/table.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>

#include "common/base/cat.h"
#include "common/base/hex.h"
#include "common/base/parse.h"
#include "common/net/endpoint.h"

namespace firn {
namespace {

constexpr size_t kIpv6Bytes = 16;
constexpr size_t kDigestSize = 16;  // of an owner's text

// The inverse of IpAsNumber; empty for any other text.
std::string IpOfNumber(std::string_view number) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (number.size() != 2 * kIpv6Bytes) {
    const auto ipv4 = ParseNumber<uint32_t>(number);
    const in_addr address{.s_addr = htonl(ipv4.value_or(0))};
    return ipv4 ? inet_ntop(AF_INET, &address, text.data(), text.size()) : "";
  }
  if (!IsLowerHex(number)) return {};
  std::array<uint8_t, kIpv6Bytes> address{};
  for (size_t i = 0; i < kIpv6Bytes; ++i) {
    const int high = HexDigit(number[2 * i]).value_or(0),
              low = HexDigit(number[2 * i + 1]).value_or(0);
    address[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return inet_ntop(AF_INET6, address.data(), text.data(), text.size());
}

}  // namespace

std::string Table::Text() const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row.at(i).size());
  }
  std::string text;
  for (const auto& row : rows_) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      text += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    }
    text += row.back() + "\n";
  }
  return text;
}

std::string FormatOwner(std::string_view owner) {
  if (const size_t slash = owner.find('/'); slash != owner.npos) {
    return Cat(FormatOwner(owner.substr(0, slash)), " for ", owner.substr(slash + 1));
  }
  std::string_view rest = owner;
  const auto take_last = [&rest] {
    const size_t dot = rest.rfind('.');
    if (dot == rest.npos) return std::string_view();
    const std::string_view last = rest.substr(dot + 1);
    rest = rest.substr(0, dot);
    return last;
  };
  const std::string_view folder = take_last();  // the digest of the state folder
  const std::string ip = IpOfNumber(take_last());
  const auto port = ParseNumber<uint16_t>(take_last());
  const bool written = folder.size() == kDigestSize && IsLowerHex(folder);
  if (!written || ip.empty() || !port || rest.empty()) return std::string(owner);
  return Cat(rest, " ", Endpoint{ip, *port}.ToString());
}

}  // namespace firn
