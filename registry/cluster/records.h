#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"

namespace firn {

// What the registry's nodes hold, as values, and their one text form: a flat JSON object, so that
// any tool that shows a node's data shows the record.
//
//   /                                {"format":2,"uuid":..,"era":"<32 hex>","layout":"firn",
//                                     "rack_bits":2,"default_strategy":"","ids_since_ms":..,
//                                     "floor_ms":..,
//                                     "frozen":false,"reason":""}
//   /machines/<rack>/<worker>        {"nonce":"<32 hex>","word":"<32 hex>","bound_ms":..,
//                                     "owner":"firn.7609.2130706433.9e107d9d372bb682",
//                                     "since_ms":..,"host":..,"pid":..,"build":..,"retired":false}
//   /machines/<rack>/<worker>/live   {"endpoint":"10.1.2.3:7609","nonce":"<32 hex>",
//                                     "format":2}                                      ephemeral
//
// Readers are strict: whatever lacks one of these members, or has one out of its range, is kCorrupt
// with a reason. Members beside them are a later version's: they are not looked at, and stand in
// `others`, so that they are written again with all else. Thread-compatible.

// More is not one of ours. Read limits, not write limits: what is written stays far below.
inline constexpr size_t kRecordBytesMax = 8192;
// Times in records lie between 1970 and the year 10000.
inline constexpr WallMs kRecordTimeMax{253'402'300'800'000};

// The cluster's root node. Its version guards every claim: any change of it ends renewals of the
// claims that were made before.
struct ClusterMeta {
  // What this program speaks. Format 1 was Firn 0.1's, and nobody's since.
  static constexpr int64_t kFormatOldest = 2, kFormat = 2;
  static constexpr size_t kReasonBytesMax = 1000;

  int64_t format = kFormat;  // what the cluster uses: raised by `firn upgrade`, never lowered
  std::string uuid;
  Nonce era{};         // of these data: see EraPath
  std::string layout;  // Layout::text()
  int rack_bits = 2;
  // How ids of tags that nobody has defined are made: "snowflake", or empty: there are none. Fixed
  // when the cluster is made: where it is not empty, plain ids may be out under any name.
  std::string default_strategy{};
  // No id under these names is older. Written where there is a default strategy; 0: unknown.
  WallMs ids_since{};
  WallMs floor;         // no claim begins below it
  bool frozen = false;  // no claim begins at all
  std::string reason;   // of the freeze, in words
  std::string others{};

  friend bool operator==(const ClusterMeta&, const ClusterMeta&) = default;
};

// A slot's record: who owns its time up to `bound`.
struct SlotRecord {
  Nonce nonce{};  // zero: nobody; what lies before `bound` is used up all the same
  // Drawn for every version that the holder writes from, so that a copy of a running process is
  // told from itself. Whoever else rewrites the record leaves it as it is.
  Nonce word{};
  WallMs bound{};
  std::string owner{};  // OwnerName::TextIn()
  WallMs since{};       // the claim's base
  std::string host{};
  int64_t pid = 0;
  std::string build{};
  bool retired = false;  // by `firn restore`: never to be claimed again
  std::string others{};

  bool never_used() const { return nonce.zero() && bound == WallMs(); }

  friend bool operator==(const SlotRecord&, const SlotRecord&) = default;
};

// The claim as others see it, for as long as its session lives.
struct LiveMark {
  std::string endpoint;
  Nonce nonce;
  int64_t format = ClusterMeta::kFormat;  // the newest that its holder speaks

  friend bool operator==(const LiveMark&, const LiveMark&) = default;
};

// Where the numbers of all ledgers of a cluster end, and why. In a cluster that serves undefined
// tags, plain ids may be in use under any name, so numbers end below the first id of `ids_since`;
// there are none while that is unknown.
struct LedgerLimit {
  int64_t end = INT64_MAX;
  std::string why{};  // empty without a limit

  // kInvalid, with the reason, for numbers that reach beyond it; `to` is the first one after them.
  Status CheckEnd(int64_t to) const;
};
LedgerLimit LimitOf(const ClusterMeta& meta);

// Whether undefined tags may be served so: "snowflake", or empty.
bool IsDefaultStrategy(std::string_view text);

std::string FormatMeta(const ClusterMeta& meta);
std::string FormatSlotRecord(const SlotRecord& record);
std::string FormatLiveMark(const LiveMark& mark);

// kInvalid: a cluster of a format that this program does not speak; the sentence says which.
Result<ClusterMeta> ParseMeta(std::string_view json);
Result<SlotRecord> ParseSlotRecord(std::string_view json);
Result<LiveMark> ParseLiveMark(std::string_view json);

// "8-4-4-4-12" hexadecimal digits, version 4.
std::string DrawUuid(Entropy& entropy);
bool IsUuid(std::string_view text);

}  // namespace firn
