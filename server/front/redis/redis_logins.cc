#include "server/front/redis/redis_logins.h"

#include <algorithm>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/base/secret_file.h"

namespace firn::front {
namespace {

constexpr size_t kUserBytesMax = 64;

// Compares every byte of `given`, so that the time does not reveal the first difference.
bool IsEqual(std::string_view given, std::string_view secret) {
  size_t differences = given.size() ^ secret.size();
  for (size_t i = 0; i < given.size(); ++i) {
    const char other = secret.empty() ? '\0' : secret[i % secret.size()];
    differences |= static_cast<unsigned char>(given[i] ^ other);
  }
  return differences == 0;
}

bool IsUserName(std::string_view user) {
  return !user.empty() && user.size() <= kUserBytesMax &&
         std::all_of(user.begin(), user.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

Result<RedisLogins::Table> RedisLogins::Parse(std::string_view text) {
  Table table;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end), "\r");
    text.remove_prefix(std::min(end + 1, text.size()));
    if (Trimmed(line).empty() || line.front() == '#') continue;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon + 1 == line.size()) {
      return Invalid(Cat("line ", number, " is not user:password"));
    }
    const std::string_view user = line.substr(0, colon);
    if (!IsUserName(user)) {
      return Invalid(Cat("line ", number, ": a user has 1 to ", kUserBytesMax,
                         " printable ASCII characters without spaces"));
    }
    const bool is_new = table.try_emplace(std::string(user), line.substr(colon + 1)).second;
    if (!is_new) return Invalid(Cat("line ", number, ": ", Quoted(user), " has a line already"));
  }
  if (table.empty()) return Invalid("the file has no user");
  return table;
}

Status RedisLogins::Load() {
  FIRN_ASSIGN(const std::string text, ReadSecretFile(file_));
  Result<Table> table = Parse(text);
  FIRN_TRY(table.status().WithContext(file_));
  auto made = std::make_shared<const Table>(*std::move(table));
  const std::lock_guard lock(mutex_);
  table_.swap(made);
  edition_.fetch_add(1, std::memory_order_release);
  return {};
}

const RedisLogins::Table& RedisLogins::Reader::Latest() {
  if (edition_ != edition()) {
    const std::lock_guard lock(logins_->mutex_);
    table_ = logins_->table_;
    edition_ = logins_->edition_.load(std::memory_order_relaxed);
  }
  return *table_;
}

bool RedisLogins::Reader::Accepts(std::string_view user, std::string_view password) {
  const Table& table = Latest();
  const auto found = table.find(user);
  // Compares for unknown users, too, so that the time does not reveal them.
  const bool equal = IsEqual(password, found == table.end() ? "" : found->second);
  return found != table.end() && equal;
}

bool RedisLogins::Reader::Has(std::string_view user) { return Latest().contains(user); }

}  // namespace firn::front
