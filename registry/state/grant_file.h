#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/slot.h"
#include "registry/state/state_folder.h"

namespace firn {

// The id clock's time at a reading of CLOCK_BOOTTIME. The reading is valid only within one boot and
// one time namespace, since each namespace has its own zero.
struct ClockPair {
  WallMs id_time;
  BootMs boot;
  uint64_t time_namespace = 0;  // the inode of /proc/self/ns/time; 0: unknown

  // Whether TimeAt is valid for `now` of the boot clock, read in time namespace `here`.
  bool Tells(BootMs now, uint64_t here) const {
    return here != 0 && here == time_namespace && now >= boot && id_time != WallMs();
  }
  WallMs TimeAt(BootMs now) const { return id_time + (now - boot); }

  friend bool operator==(const ClockPair&, const ClockPair&) = default;
};

// A process that resumed a claim without the registry: its ids begin at `first`. The registry's
// record does not name it before the first renewal.
struct OfflineHolder {
  WallMs first;
  int64_t pid = 0;  // 0: several merged holders; `first` is the earliest

  friend bool operator==(const OfflineHolder&, const OfflineHolder&) = default;
};

inline constexpr size_t kOfflineHoldersMax = 8;

// Adds the newest holder. If there are too many, merges the two before it.
void AddOfflineHolder(std::vector<OfflineHolder>& holders, OfflineHolder holder);

// The permission to resume the claim of a dead process: every time of `slot` in [limit, bound) is
// unused, because only the dead process held the claim, and it used none of them.
struct Grant {
  Nonce nonce;
  Nonce word{};          // of the record as last acknowledged; zero: none
  Nonce pending_word{};  // of a write that was sent and may have been applied; zero: none
  Slot slot;
  MachineId machine;         // worker and rack as one number
  WallMs bound;              // R, as the registry acknowledged it
  WallMs limit;              // L: times below it may have been used
  int64_t version = 0;       // V of the slot's record, or older; 32 bits, which wrap
  int64_t created_zxid = 0;  // Z: the creation of that record
  int64_t meta_version = 0;  // M, under which the claim was made; 32 bits, which wrap
  std::string uuid;          // of the cluster
  ClockPair clocks{};        // the latest pair
  // Since the holder that the registry's record names, oldest first. Only `firn who` uses them.
  std::vector<OfflineHolder> offline{};

  friend bool operator==(const Grant&, const Grant&) = default;
};

// The grant file: two records of 1024 bytes, written alternately and in place. No disk sector
// contains parts of both.
//
//     0                                                                         1023
//     +---------------------------------------------------------------------------+
//     | firn-grant 2 <counter> <nonce> <word> <pending word> <rack> <worker>      |
//     | <machine> <bound> <limit> <version> <zxid> <meta version> <uuid>          |
//     | <id clock> <boot clock> <time namespace> <boot id>                        |
//     | <device> <inode> <birth> <the same three of the lock file>                |
//     | [<first>:<pid>,<first>:<pid>,...] <check> blanks, newline                 |
//     +---------------------------------------------------------------------------+
//     | the other record                                                          |
//     +---------------------------------------------------------------------------+
//
// The record with the higher counter is valid. A write is complete before the times that it permits
// are used, so a record torn by a crash never covers used times: the other record is still valid. A
// nonce of zero: no permission (void). A record with offline holders has format 3, which earlier
// versions do not read: they make a new claim. Owned by the control thread.
class GrantFile {
 public:
  static constexpr size_t kRecordBytes = StateFolder::kGrantBytes / 2;

  // The result of Read.
  struct Found {
    Grant grant;
    GrantIdentity identity;  // as written: the file that the permission belongs to
    bool damaged = false;    // the other record is neither blank nor valid
  };

  // `folder` must outlive the object.
  explicit GrantFile(StateFolder& folder) : folder_(folder) {}

  // Returns the newest record. kNotFound: a new file, or void. kCorrupt: neither record is valid.
  // Call it once, before the first write: it also determines which record is the older one.
  Result<Found> Read();

  // Overwrites the older record. After a failure the next call writes the same record again.
  Status Write(const Grant& grant, StateFolder::Durability durability);

  // Overwrites both, so that no later damage can restore a permission.
  Status Void(StateFolder::Durability durability);

  Status Remove() { return folder_.RemoveGrant(); }

  GrantIdentity identity() const { return folder_.grant_identity(); }

 private:
  StateFolder& folder_;
  uint64_t counter_ = 0;  // of the newest record
  size_t next_ = 0;       // 0 or 1: the record to write next
};

// One record, and its conversion to bytes and back. kNotFound: all blanks. Pure functions.
struct GrantRecord {
  uint64_t counter = 0;
  Grant grant;
  GrantIdentity identity;

  friend bool operator==(const GrantRecord&, const GrantRecord&) = default;
};
std::string FormatGrantRecord(const GrantRecord& record);
Result<GrantRecord> ParseGrantRecord(std::string_view bytes);

}  // namespace firn
