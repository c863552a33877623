#include "tests/bench/dialect.h"

#include <charconv>
#include <cstring>

#include "tests/bench/database_dialect.h"

namespace firn {
namespace {

using Answer = Dialect::Answer;

uint32_t ReadU32(const char* at) {
  uint32_t wire;
  std::memcpy(&wire, at, sizeof wire);
  return __builtin_bswap32(wire);
}

void AppendU32(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

constexpr std::string_view kMethod = "getId";

// One framed strict binary call of getId. Written out so that the generator does not measure
// another encoder, and has no allocation a request.
std::string ThriftCall(std::string_view tag) {
  std::string body;
  AppendU32(body, 0x80010001);
  AppendU32(body, kMethod.size());
  body += kMethod;
  AppendU32(body, 1);                  // sequence id
  body += std::string("\x0b\0\1", 3);  // a string, field 1
  AppendU32(body, static_cast<uint32_t>(tag.size()));
  body += tag;
  body.push_back('\0');
  std::string frame;
  AppendU32(frame, static_cast<uint32_t>(body.size()));
  return frame + body;
}

class ThriftDialect final : public Dialect {
 public:
  explicit ThriftDialect(std::string_view tag) : Dialect(ThriftCall(tag)) {}

  Answer Read(std::string_view bytes) const override {
    constexpr size_t kResult = 4 + 4 + 4 + kMethod.size() + 4;  // where the result struct starts
    constexpr size_t kSuccess = kResult + 3 + 8;
    if (bytes.size() < 4) return {};
    const size_t length = 4 + size_t{ReadU32(bytes.data())};
    if (length > (1U << 24)) return {.length = length, .broken = true};
    if (bytes.size() < length) return {};
    const bool success = length >= kSuccess && ReadU32(bytes.data() + 4) == 0x80010002 &&
                         std::memcmp(bytes.data() + kResult, "\x0a\0\0", 3) == 0;
    if (!success) return {.length = length, .refused = true};
    uint64_t id;
    std::memcpy(&id, bytes.data() + kResult + 3, sizeof id);
    return {.length = length, .id = static_cast<int64_t>(__builtin_bswap64(id))};
  }
};

class RespDialect final : public Dialect {
 public:
  explicit RespDialect(std::string_view key)
      : Dialect("*2\r\n$4\r\nINCR\r\n$" + std::to_string(key.size()) + "\r\n" + std::string(key) +
                "\r\n") {}

  Answer Read(std::string_view bytes) const override {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) return {};
    if (bytes[0] != ':') return {.length = end + 1, .refused = true};
    Answer answer{.length = end + 1};
    std::from_chars(bytes.data() + 1, bytes.data() + end, answer.id);
    return answer;
  }
};

class HttpDialect final : public Dialect {
 public:
  explicit HttpDialect(std::string_view path)
      : Dialect("GET " + std::string(path) + " HTTP/1.1\r\nHost: bench\r\n\r\n") {}

  Answer Read(std::string_view bytes) const override {
    const size_t head = bytes.find("\r\n\r\n");
    if (head == std::string_view::npos) return {};
    const std::string_view header = bytes.substr(0, head);
    constexpr std::string_view kLength = "Content-Length: ";
    const size_t at = header.find(kLength);
    if (at == std::string_view::npos) return {.length = head + 4, .broken = true};
    size_t body = 0;
    std::from_chars(header.data() + at + kLength.size(), header.data() + head, body);
    Answer answer{.length = head + 4 + body};
    if (bytes.size() < answer.length) return {};
    answer.refused = !header.starts_with("HTTP/1.1 200");
    const std::string_view text = bytes.substr(head + 4, body);
    if (const size_t digit = text.find_first_of("0123456789"); digit != std::string_view::npos) {
      std::from_chars(text.data() + digit, text.data() + text.size(), answer.id);
    }
    return answer;
  }
};

class EchoDialect final : public Dialect {
 public:
  explicit EchoDialect(std::string_view tag) : Dialect(ThriftCall(tag)) {}

  Answer Read(std::string_view bytes) const override {
    if (bytes.size() < request().size()) return {};
    return {.length = request().size()};
  }
};

}  // namespace

Result<std::unique_ptr<Dialect>> MakeDialect(std::string_view name, std::string_view subject) {
  std::unique_ptr<Dialect> made;
  if (name == "thrift") made = std::make_unique<ThriftDialect>(subject);
  if (name == "resp") made = std::make_unique<RespDialect>(subject);
  if (name == "http") made = std::make_unique<HttpDialect>(subject);
  if (name == "echo") made = std::make_unique<EchoDialect>(subject);
  if (name == "postgresql") made = MakePostgresqlDialect(subject);
  if (name == "mysql") made = MakeMysqlDialect(subject);
  if (!made) return Invalid("no dialect is called " + std::string(name));
  return made;
}

}  // namespace firn
