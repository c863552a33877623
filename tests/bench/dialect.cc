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

uint64_t ReadU64(const char* at) {
  uint64_t wire;
  std::memcpy(&wire, at, sizeof wire);
  return __builtin_bswap64(wire);
}

// A framed strict binary call with a tag, followed by the fields of `rest`. Written by hand, so
// that the generator neither measures another encoder nor allocates per request.
std::string ThriftCall(std::string_view method, std::string_view tag, std::string_view rest = {}) {
  std::string body;
  AppendU32(body, 0x80010001);
  AppendU32(body, static_cast<uint32_t>(method.size()));
  body += method;
  AppendU32(body, 1);                  // sequence id
  body += std::string("\x0b\0\1", 3);  // a string, field 1
  AppendU32(body, static_cast<uint32_t>(tag.size()));
  body += tag;
  body += rest;
  body.push_back('\0');
  std::string frame;
  AppendU32(frame, static_cast<uint32_t>(body.size()));
  return frame + body;
}

// Answers of one method: a frame with a message whose struct has the result as field 0.
class ThriftDialect : public Dialect {
 public:
  Answer Read(std::string_view bytes) const override {
    if (bytes.size() < 4) return {};
    const size_t length = 4 + size_t{ReadU32(bytes.data())};
    if (length > (1U << 24)) return {.length = length, .broken = true};
    if (bytes.size() < length) return {};
    const bool success = length >= result_ + smallest_ && ReadU32(bytes.data() + 4) == 0x80010002 &&
                         bytes[result_] == type_ && bytes[result_ + 1] == 0 &&
                         bytes[result_ + 2] == 0;
    if (!success) return {.length = length, .refused = true};
    Answer answer{.length = length};
    answer.broken = !ReadResult(bytes.substr(result_ + 3, length - result_ - 3), answer.id);
    return answer;
  }

 protected:
  // The type of the result, and its minimum number of bytes.
  ThriftDialect(std::string_view method, std::string request, char type, size_t smallest)
      : Dialect(std::move(request)),
        result_(4 + 4 + 4 + method.size() + 4),
        smallest_(3 + smallest),
        type_(type) {}

 private:
  // Returns false for an unexpected answer.
  virtual bool ReadResult(std::string_view bytes, int64_t& first) const = 0;

  const size_t result_, smallest_;
  const char type_;
};

class IdDialect final : public ThriftDialect {
 public:
  explicit IdDialect(std::string_view tag)
      : ThriftDialect("getId", ThriftCall("getId", tag), '\x0a', sizeof(int64_t)) {}

 private:
  bool ReadResult(std::string_view bytes, int64_t& first) const override {
    first = static_cast<int64_t>(ReadU64(bytes.data()));
    return true;
  }
};

constexpr size_t kListHead = 1 + 4;  // the type of its elements, and their number

class ListDialect final : public ThriftDialect {
 public:
  ListDialect(std::string_view tag, uint32_t ids)
      : ThriftDialect("getIds", ThriftCall("getIds", tag, Count(ids)), '\x0f', kListHead),
        ids_(ids) {}

 private:
  static std::string Count(uint32_t ids) {
    std::string field("\x08\0\2", 3);
    AppendU32(field, ids);
    return field;
  }
  bool ReadResult(std::string_view bytes, int64_t& first) const override {
    if (ReadU32(bytes.data() + 1) != ids_ || bytes.size() < kListHead + 8 * size_t{ids_})
      return false;
    first = static_cast<int64_t>(ReadU64(bytes.data() + kListHead));
    return true;
  }

  const uint32_t ids_;
};

class RunsDialect final : public ThriftDialect {
 public:
  RunsDialect(std::string_view tag, uint32_t ids)
      : ThriftDialect("getRuns", ThriftCall("getRuns", tag, Count(ids)), '\x0f', kListHead),
        ids_(ids) {}

 private:
  // Three fields and a stop; each field follows its type and number.
  static constexpr size_t kFirst = 3, kCount = kFirst + 8 + 3, kRun = kCount + 4 + 3 + 8 + 1;

  static std::string Count(uint32_t ids) {
    std::string field("\x0a\0\2\0\0\0\0", 7);
    AppendU32(field, ids);
    return field;
  }
  bool ReadResult(std::string_view bytes, int64_t& first) const override {
    const size_t runs = ReadU32(bytes.data() + 1);
    bytes.remove_prefix(kListHead);
    if (runs == 0 || runs > bytes.size() / kRun) return false;
    first = static_cast<int64_t>(ReadU64(bytes.data() + kFirst));
    uint64_t ids = 0;
    for (size_t i = 0; i < runs; ++i) ids += ReadU32(bytes.data() + i * kRun + kCount);
    return ids == ids_;
  }

  const uint32_t ids_;
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
  explicit EchoDialect(std::string_view tag) : Dialect(ThriftCall("getId", tag)) {}

  Answer Read(std::string_view bytes) const override {
    if (bytes.size() < request().size()) return {};
    return {.length = request().size()};
  }
};

}  // namespace

Result<std::unique_ptr<Dialect>> MakeDialect(std::string_view name, std::string_view subject,
                                             int32_t ids) {
  std::unique_ptr<Dialect> made;
  if (ids < 1) return Invalid("a request asks for one id at least");
  const auto many = static_cast<uint32_t>(ids);
  if (name == "list") made = std::make_unique<ListDialect>(subject, many);
  if (name == "runs") made = std::make_unique<RunsDialect>(subject, many);
  if (made != nullptr) return made;
  if (ids > 1) return Invalid("only list and runs ask for several ids");
  if (name == "thrift") made = std::make_unique<IdDialect>(subject);
  if (name == "resp") made = std::make_unique<RespDialect>(subject);
  if (name == "http") made = std::make_unique<HttpDialect>(subject);
  if (name == "echo") made = std::make_unique<EchoDialect>(subject);
  if (name == "postgresql") made = MakePostgresqlDialect(subject);
  if (name == "mysql") made = MakeMysqlDialect(subject);
  if (!made) return Invalid("no dialect is called " + std::string(name));
  return made;
}

}  // namespace firn
