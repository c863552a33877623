#include "registry/owners/owner_records.h"

#include "common/base/cat.h"
#include "common/json/json_object.h"

namespace firn {
namespace {

constexpr size_t kBytesMax = 8192;

}  // namespace

std::string BeatPath(const Nonce& tenure) { return Cat(kBeatsPath, "/", tenure.text()); }

std::string AlivePath(const Nonce& tenure) { return Cat(BeatPath(tenure), "/alive"); }

std::string PartitionPath(size_t partition) { return Cat(kPartitionsPath, "/", partition); }

std::string ChangePath(size_t partition, const Nonce& change) {
  return Cat(PartitionPath(partition), "/", change.text());
}

bool Lists(std::string_view addresses, std::string_view address) {
  return Cat(",", addresses, ",").find(Cat(",", address, ",")) != std::string::npos;
}

std::string FormatBeat(const Beat& beat) {
  JsonWriter json;
  json.Text("address", beat.address)
      .Text("secret", beat.secret.text())
      .Text("word", beat.word.text())
      .Number("window_ms", beat.window.count())
      .Flag("ended", beat.ended);
  if (!beat.unreachable.empty()) json.Text("unreachable", beat.unreachable);
  if (beat.tls) json.Flag("tls", *beat.tls);
  if (beat.leaving) json.Flag("leaving", true);
  if (beat.young) json.Flag("young", true);
  return json.Others(beat.others).Done();
}

std::string FormatPartitionOwner(const PartitionOwner& owner) {
  return JsonWriter()
      .Text("tenure", owner.tenure.text())
      .Text("address", owner.address)
      .Text("change", owner.change.text())
      .Others(owner.others)
      .Done();
}

Result<Beat> ParseBeat(std::string_view json) {
  JsonReader read(json, kBytesMax);
  Beat beat;
  std::string secret, word;
  int64_t window = 0;
  read.Text("address", beat.address)
      .Text("secret", secret)
      .Text("word", word)
      .Number("window_ms", window, Beat::kWindowMin.count(), Beat::kWindowReadMax.count())
      .Flag("ended", beat.ended);
  if (read.Find("unreachable") != nullptr) {
    read.Text("unreachable", beat.unreachable, Beat::kUnreachableBytesMax);
  }
  if (read.Find("tls") != nullptr) read.Flag("tls", beat.tls.emplace());
  if (read.Find("leaving") != nullptr) read.Flag("leaving", beat.leaving);
  if (read.Find("young") != nullptr) read.Flag("young", beat.young);
  read.Others(beat.others);
  FIRN_TRY(read.status().WithContext("an owner's beat"));
  FIRN_ASSIGN(beat.secret, Nonce::Parse(secret));
  FIRN_ASSIGN(beat.word, Nonce::Parse(word));
  beat.window = Milliseconds(window);
  return beat;
}

Result<PartitionOwner> ParsePartitionOwner(std::string_view json) {
  JsonReader read(json, kBytesMax);
  PartitionOwner owner;
  std::string tenure, change;
  read.Text("tenure", tenure)
      .Text("address", owner.address)
      .Text("change", change)
      .Others(owner.others);
  FIRN_TRY(read.status().WithContext("the owner of a partition"));
  FIRN_ASSIGN(owner.tenure, Nonce::Parse(tenure));
  FIRN_ASSIGN(owner.change, Nonce::Parse(change));
  if (!owner.tenure.zero() && owner.change.zero()) {
    return Corrupt("the owner of a partition: a tenure, but no change");
  }
  return owner;
}

}  // namespace firn
