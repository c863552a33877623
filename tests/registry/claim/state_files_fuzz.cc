// Parses arbitrary bytes as a hint file, a grant record or a whole grant file: refused with a
// reason, or equal when written again. Over any contents of a grant file, the next write can be
// read.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/utf8.h"
#include "registry/cluster/records.h"
#include "registry/state/grant_file.h"
#include "registry/state/hint.h"
#include "tests/support/registry/memory_state_folder.h"

namespace {

using firn::Code;
using firn::GrantFile;
using firn::GrantRecord;
using firn::StateFolder;

constexpr size_t kRecordBytes = GrantFile::kRecordBytes;
constexpr auto kVolatile = StateFolder::Durability::kPageCache;

void Check(bool holds, std::string_view what) {
  if (!holds) firn::Die(what);
}

void TryHint(std::string_view text) {
  const firn::Result<firn::Hint> hint = firn::ParseHint(text);
  if (hint.ok()) Check(*firn::ParseHint(firn::FormatHint(*hint)) == *hint, "another hint");
}

void TryRecord(std::string_view text) {
  const auto record = firn::ParseGrantRecord(text);
  if (record.ok()) {
    Check(*firn::ParseGrantRecord(firn::FormatGrantRecord(*record)) == *record, "another grant");
    Check(
        record->grant.bound <= firn::kRecordTimeMax && record->grant.limit <= firn::kRecordTimeMax,
        "a time out of range");
  } else {
    Check(firn::IsPrintableUtf8(record.status().message()), "the reason is not printable");
  }
}

// Returns a grant with numbers from the input, within the permitted ranges.
GrantRecord RecordFrom(std::string_view bytes, firn::GrantIdentity identity) {
  const auto number = [&bytes]() {
    uint64_t value = 0;
    for (size_t i = 0; i < 8 && !bytes.empty(); ++i, bytes.remove_prefix(1)) {
      value = value << 8 | static_cast<unsigned char>(bytes.front());
    }
    return value;
  };
  const auto count = [&number]() { return static_cast<int64_t>(number() >> 1); };
  const auto version = [&number]() { return int64_t{static_cast<int32_t>(number())}; };
  const auto time = [&count]() { return firn::WallMs(count() % firn::kRecordTimeMax.ms()); };
  GrantRecord record{.counter = number(), .grant = {}, .identity = std::move(identity)};
  record.grant = {.nonce = firn::Nonce(number(), number()),
                  .word = firn::Nonce(number(), number()),
                  .pending_word = firn::Nonce(number(), number()),
                  .slot = {static_cast<uint32_t>(number()), static_cast<uint32_t>(number())},
                  .machine = firn::MachineId(static_cast<uint32_t>(number())),
                  .bound = time(),
                  .limit = time(),
                  .version = version(),
                  .created_zxid = count(),
                  .meta_version = version(),
                  .uuid = {},
                  .clocks = {time(), firn::BootMs(count()), number()}};
  return record;
}

// Reads the file as a start does, and checks the result.
void TryRead(firn::MemoryDisk& disk) {
  firn::MemoryStateFolder folder(disk);
  GrantFile file(folder);
  const auto found = file.Read();
  const auto first = firn::ParseGrantRecord(std::string_view(disk.grant).substr(0, kRecordBytes));
  const auto second = firn::ParseGrantRecord(std::string_view(disk.grant).substr(kRecordBytes));
  if (found.ok()) {
    const bool both = first.ok() && second.ok();
    const GrantRecord& other = first.ok() ? *first : *second;
    const GrantRecord& newest = both && second->counter > first->counter ? *second : other;
    Check(found->grant == newest.grant && found->identity == newest.identity, "not the newest");
    Check(found->damaged == (first.code() == Code::kCorrupt || second.code() == Code::kCorrupt),
          "damage is not reported, or reported without cause");
    Check(!found->grant.nonce.zero(), "a void grant permits");
  } else {
    Check(found.code() == Code::kNotFound || found.code() == Code::kCorrupt, "another failure");
    Check(firn::IsPrintableUtf8(found.status().message()), "the reason is not printable");
    const bool torn = first.code() == Code::kCorrupt || second.code() == Code::kCorrupt;
    Check(found.code() == Code::kNotFound || torn, "corrupt without any damage");
  }

  const firn::Grant next{.nonce = firn::Nonce(7, 7),
                         .slot = {},
                         .machine = {},
                         .bound = firn::WallMs(9),
                         .limit = firn::WallMs(8),
                         .uuid = {}};
  Check(file.Write(next, kVolatile).ok(), "it cannot be written");
  const auto again = GrantFile(folder).Read();
  Check(again.ok() && again->grant == next, "what was written last is not what is read");
  Check(file.Void(kVolatile).ok() && GrantFile(folder).Read().code() == Code::kNotFound,
        "a voided file still permits");
}

void TryGrantFile(std::string_view bytes) {
  firn::MemoryDisk disk;
  disk.grant = bytes.substr(0, StateFolder::kGrantBytes);
  disk.grant.resize(StateFolder::kGrantBytes, ' ');
  TryRead(disk);
  // The input beside any record with a correct checksum.
  const GrantRecord record = RecordFrom(bytes, disk.identity);
  const std::string good = FormatGrantRecord(record);
  TryRecord(good);
  disk.grant.resize(StateFolder::kGrantBytes, ' ');
  disk.grant.replace(bytes.size() % 2 * kRecordBytes, kRecordBytes, good);
  TryRead(disk);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TryHint(text);
  TryRecord(text);
  TryGrantFile(text);
  return 0;
}
