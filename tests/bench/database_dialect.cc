#include "tests/bench/database_dialect.h"

#include <string>

namespace firn {
namespace {

using Answer = Dialect::Answer;
using namespace std::string_literals;

std::string BigEndian(uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}
uint64_t ReadBigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

// --- PostgreSQL: a letter, a length that counts itself, and the body ----------------------------

std::string Message(const std::string& letter, const std::string& body) {
  return letter + BigEndian(body.size() + 4, 4) + body;
}

std::string PostgresqlHello(std::string_view sequence) {
  const std::string version = BigEndian(3 << 16, 4);
  const std::string who = "user\0bench\0database\0postgres\0\0"s;
  const std::string statement = "next\0SELECT nextval('"s + std::string(sequence) + "')\0\0\0"s;
  return Message("", version + who) + Message("P", statement) + Message("S", "");
}
std::string PostgresqlRequest() {
  // No portal name, the statement, no parameters and formats, one result column in binary.
  const std::string bind = "\0next\0"s + BigEndian(0, 2) + BigEndian(0, 2) + BigEndian(0x10001, 4);
  return Message("B", bind) + Message("E", "\0"s + BigEndian(0, 4)) + Message("S", "");
}

class PostgresqlDialect final : public Dialect {
 public:
  explicit PostgresqlDialect(std::string_view sequence)
      : Dialect(PostgresqlRequest(), PostgresqlHello(sequence)) {}

  // Two ends of answers: after the start, and after the statement is prepared.
  Answer ReadHello(std::string_view bytes) const override {
    const Answer start = Read(bytes);
    if (start.length == 0) return {};
    Answer prepared = Read(bytes.substr(start.length));
    if (prepared.length == 0) return {};
    prepared.length += start.length;
    prepared.refused |= start.refused;
    return prepared;
  }

  // Reads messages until the server is ready.
  Answer Read(std::string_view bytes) const override {
    Answer answer;
    for (size_t at = 0; at + 5 <= bytes.size();) {
      const size_t end = at + 1 + ReadBigEndian(bytes.substr(at + 1, 4));
      if (end > bytes.size()) return {};
      const std::string_view body = bytes.substr(at + 5, end - at - 5);
      const char letter = bytes[at];
      if (letter == 'E') answer.refused = true;
      if (letter == 'D' && body.size() == 14) {  // one column of eight bytes
        answer.id = static_cast<int64_t>(ReadBigEndian(body.substr(6)));
      }
      at = end;
      if (letter == 'Z') return answer.length = end, answer;
    }
    return {};
  }
};

// --- MySQL: a length of three bytes, the packet's number, and the body --------------------------

std::string LittleEndian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

std::string Packet(uint64_t number, const std::string& body) {
  return LittleEndian(body.size(), 3) + LittleEndian(number, 1) + body;
}

std::string MysqlHello() {
  // Long passwords, a database, protocol 4.1, secure connection, an authentication plugin.
  constexpr uint64_t kCapabilities = 0x1 | 0x8 | 0x200 | 0x8000 | 0x80000;
  constexpr uint64_t kUtf8 = 33;
  return Packet(1, LittleEndian(kCapabilities, 4) + LittleEndian(1 << 24, 4) +
                       LittleEndian(kUtf8, 1) + std::string(23, '\0') +
                       "bench\0\0bench\0mysql_native_password\0"s);
}
std::string MysqlRequest(std::string_view table) {
  return Packet(0, "\3UPDATE "s + std::string(table) + " SET id = LAST_INSERT_ID(id + 1)");
}

// The length of the packet at the front of `bytes`; 0: incomplete.
size_t PacketLength(std::string_view bytes) {
  if (bytes.size() < 4) return 0;
  size_t length = 4;
  for (int i = 2; i >= 0; --i)
    length += size_t{static_cast<uint8_t>(bytes[static_cast<size_t>(i)])} << (8 * i);
  return length <= bytes.size() ? length : 0;
}

class MysqlDialect final : public Dialect {
 public:
  explicit MysqlDialect(std::string_view table) : Dialect(MysqlRequest(table), MysqlHello()) {}

  // Reads the server's greeting, which comes first, and its answer to hello().
  Answer ReadHello(std::string_view bytes) const override {
    const size_t greeting = PacketLength(bytes);
    if (greeting == 0) return {};
    Answer answer = Read(bytes.substr(greeting));
    if (answer.length > 0) answer.length += greeting;
    return answer;
  }

  // Reads 0, the number of rows (one byte), and the new number: below 251 in one byte, else after
  // its size.
  Answer Read(std::string_view bytes) const override {
    Answer answer{.length = PacketLength(bytes)};
    if (answer.length == 0) return {};
    const std::string_view body = bytes.substr(4, answer.length - 4);
    answer.refused = body.size() < 3 || body[0] != 0;
    if (answer.refused) return answer;
    const auto first = static_cast<uint8_t>(body[2]);
    const size_t size = first < 251 ? 0 : first == 252 ? 2 : first == 253 ? 3 : 8;
    if (size == 0) return answer.id = first, answer;
    if (body.size() < 3 + size) return answer.refused = true, answer;
    uint64_t id = 0;
    for (size_t i = size; i > 0; --i) id = id << 8 | static_cast<uint8_t>(body[2 + i]);
    answer.id = static_cast<int64_t>(id);
    return answer;
  }
};

}  // namespace

std::unique_ptr<Dialect> MakePostgresqlDialect(std::string_view subject) {
  return std::make_unique<PostgresqlDialect>(subject);
}
std::unique_ptr<Dialect> MakeMysqlDialect(std::string_view subject) {
  return std::make_unique<MysqlDialect>(subject);
}

}  // namespace firn
