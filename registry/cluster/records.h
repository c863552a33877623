#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"

namespace firn {

// The contents of the registry's nodes, as values and as text: a flat JSON object, which any tool
// that shows a node's data can display.
//
//   /                                {"format":2,"uuid":..,"era":"<32 hex>","layout":"firn",
//                                     "rack_bits":2,"default_strategy":"","ids_since_ms":..,
//                                     "floor_ms":..,
//                                     "lease_share":50,"frozen":false,"reason":""}
//   /machines/<rack>/<worker>        {"nonce":"<32 hex>","word":"<32 hex>","bound_ms":..,
//                                     "owner":"firn.7609.2130706433.9e107d9d372bb682",
//                                     "since_ms":..,"host":..,"pid":..,"build":..,"retired":false,
//                                     "lease":{"nonce":"<32 hex>","name":..,"server":..},
//                                     "writer":{"word":"<32 hex>","nonce":"<32 hex>",
//                                     "era":"<32 hex>","id_ms":..}}
//   /machines/<rack>/<worker>/live   {"endpoint":"10.1.2.3:7609","nonce":"<32 hex>",
//                                     "format":2}                                      ephemeral
//
// Readers are strict: a missing member, or one out of its range, makes the node kCorrupt, with a
// reason. Other members belong to later versions: they are kept unread in `others`, and written
// back with the rest. Thread-compatible.

// Larger nodes are not Firn's. Limits for reading; nodes that Firn writes are far smaller.
inline constexpr size_t kRecordBytesMax = 8192;
// Times in records lie between 1970 and the year 10000.
inline constexpr WallMs kRecordTimeMax{253'402'300'800'000};

// The cluster's root node. Its version guards every claim: any change of the node ends the renewals
// of earlier claims.
struct ClusterMeta {
  // The formats that this program supports. Format 1 was that of Firn 0.1.
  static constexpr int64_t kFormatOldest = 2, kFormat = 2;
  static constexpr size_t kReasonBytesMax = 1000;
  static constexpr int64_t kLeaseShare = 50;

  int64_t format = kFormat;  // the cluster's format: raised by `firn upgrade`, never lowered
  std::string uuid;
  Nonce era{};         // of these data: see EraPath
  std::string layout;  // Layout::text()
  int rack_bits = 2;
  // The strategy of undefined tags: "snowflake", or empty if they are not served. Fixed when the
  // cluster is made: if it is not empty, plain ids may have been issued under any name.
  std::string default_strategy{};
  // No id of an undefined tag is older. Written if there is a default strategy; 0: unknown.
  WallMs ids_since{};
  WallMs floor;  // no claim begins below it
  // The part of each rack's machine ids, in percent, that is for leases: the upper one. Written
  // unless it is kLeaseShare.
  int64_t lease_share = kLeaseShare;
  bool frozen = false;  // no server may claim
  std::string reason;   // of the freeze, as a sentence
  std::string others{};

  friend bool operator==(const ClusterMeta&, const ClusterMeta&) = default;
};

// The lease that a slot's claim backs: a program issues ids of the machine id by itself. Servers
// that do not know leases hand this member on, so it counts only with the nonce of its record.
struct SlotLease {
  std::string name;    // chosen by the program: a label, not unique
  std::string server;  // the address of the server that granted it

  friend bool operator==(const SlotLease&, const SlotLease&) = default;
};

// The last write by the holder of a claim, also after its release. Servers that do not know this
// member hand it on, so it counts only with the word of its record.
struct SlotWriter {
  Nonce nonce;     // of the claim
  Nonce era;       // of the data
  WallMs id_time;  // ids below it are certainly the claim's; up to the bound, as long as no data
                   // are lost

  friend bool operator==(const SlotWriter&, const SlotWriter&) = default;
};

// A slot's record: the holder, which owns the slot's time up to `bound`.
struct SlotRecord {
  Nonce nonce{};  // zero: there is no holder, but the time below `bound` is used up
  // Drawn for every version that the holder writes from, so that a copy of a running process is
  // recognised. Any other writer of the record leaves it unchanged.
  Nonce word{};
  WallMs bound{};
  std::string owner{};  // OwnerName::TextIn()
  WallMs since{};       // the claim's base
  std::string host{};
  int64_t pid = 0;
  std::string build{};
  bool retired = false;  // by `firn restore`: never claimed again
  std::optional<SlotLease> lease{};
  std::optional<SlotWriter> writer{};
  std::string others{};

  // The claim of the last holder, also after its release; zero: unknown.
  Nonce claim() const { return writer.has_value() ? writer->nonce : nonce; }
  bool never_used() const { return nonce.zero() && bound == WallMs(); }

  friend bool operator==(const SlotRecord&, const SlotRecord&) = default;
};

// The visible sign of a claim; it exists as long as the holder's session.
struct LiveMark {
  std::string endpoint;
  Nonce nonce;
  int64_t format = ClusterMeta::kFormat;  // the newest that its holder supports

  friend bool operator==(const LiveMark&, const LiveMark&) = default;
};

// The upper limit for the numbers of all ledgers of a cluster, and its reason. In a cluster that
// serves undefined tags, plain ids may be in use under any name, so numbers end below the first id
// of `ids_since`; while that is unknown, no numbers are issued.
struct LedgerLimit {
  int64_t end = INT64_MAX;
  std::string why{};  // empty without a limit

  // kInvalid, with the reason, if the numbers exceed it; `to` is the first number after them.
  Status CheckEnd(int64_t to) const;
};
LedgerLimit LimitOf(const ClusterMeta& meta);

// Whether the text is a strategy for undefined tags: "snowflake", or empty.
bool IsDefaultStrategy(std::string_view text);

std::string FormatMeta(const ClusterMeta& meta);
std::string FormatSlotRecord(const SlotRecord& record);
std::string FormatLiveMark(const LiveMark& mark);

// kInvalid: the cluster has a format that this program does not support; the message names it.
Result<ClusterMeta> ParseMeta(std::string_view json);
Result<SlotRecord> ParseSlotRecord(std::string_view json);
Result<LiveMark> ParseLiveMark(std::string_view json);

// "8-4-4-4-12" hexadecimal digits, version 4.
std::string DrawUuid(Entropy& entropy);
bool IsUuid(std::string_view text);

}  // namespace firn
