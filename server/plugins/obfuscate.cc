#include "server/plugins/obfuscate.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

#include <openssl/evp.h>

#include "common/base/cat.h"
#include "common/base/hex.h"

namespace firn {
namespace {

// --- AES ----------------------------------------------------------------------------------------

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

// A context of OpenSSL can serve only one thread at a time, so there are several contexts with the
// same key. A caller takes a free one, and never waits for another caller. A context that was in
// use during a fork remains marked as in use in the child, which has enough others.
class Aes final : public BlockCipher {
 public:
  explicit Aes(const SecretKey& key);

  bool ok() const { return ok_; }
  bool Encrypt(uint8_t* blocks, size_t count) const override;

 private:
  static constexpr size_t kSlots = 64;
  static constexpr size_t kBlocksMax = 1 << 20;

  struct alignas(64) Slot {
    std::atomic<bool> taken{false};
    Context context;
  };

  bool EncryptIn(EVP_CIPHER_CTX* context, uint8_t* blocks, size_t count) const;

  mutable std::array<Slot, kSlots> slots_;
  Context model_;  // never encrypts; further contexts are copied from it
  bool ok_ = false;
};

const EVP_CIPHER* CipherFor(size_t key_bytes) {
  switch (key_bytes) {
    case 16:
      return EVP_aes_128_ecb();
    case 24:
      return EVP_aes_192_ecb();
    case 32:
      return EVP_aes_256_ecb();
    default:
      return nullptr;
  }
}

Aes::Aes(const SecretKey& key) : model_(EVP_CIPHER_CTX_new()) {
  const EVP_CIPHER* cipher = CipherFor(key.bytes().size());
  if (cipher == nullptr || model_ == nullptr) return;
  if (EVP_EncryptInit_ex(model_.get(), cipher, nullptr, key.bytes().data(), nullptr) != 1) return;
  EVP_CIPHER_CTX_set_padding(model_.get(), 0);
  for (Slot& slot : slots_) {
    slot.context.reset(EVP_CIPHER_CTX_new());
    if (slot.context == nullptr) return;
    if (EVP_CIPHER_CTX_copy(slot.context.get(), model_.get()) != 1) return;
  }
  ok_ = true;
}

bool Aes::EncryptIn(EVP_CIPHER_CTX* context, uint8_t* blocks, size_t count) const {
  const int bytes = static_cast<int>(count * kBlockBytes);
  int written = 0;
  return EVP_EncryptUpdate(context, blocks, &written, blocks, bytes) == 1 && written == bytes;
}

bool Aes::Encrypt(uint8_t* blocks, size_t count) const {
  if (count > kBlocksMax) return false;
  const size_t first = std::hash<std::thread::id>()(std::this_thread::get_id());
  for (size_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots_[(first + i) % kSlots];
    if (slot.taken.exchange(true, std::memory_order_acquire)) continue;
    const bool done = EncryptIn(slot.context.get(), blocks, count);
    slot.taken.store(false, std::memory_order_release);
    return done;
  }
  const Context extra(EVP_CIPHER_CTX_new());
  return extra != nullptr && EVP_CIPHER_CTX_copy(extra.get(), model_.get()) == 1 &&
         EncryptIn(extra.get(), blocks, count);
}

// --- the plugin ---------------------------------------------------------------------------------

Refusal CipherFailed() {
  return {Reason::kInternal, "the cipher of the plugin obfuscate failed", 0, true};
}

// A buffer for a group of strings.
class Batch {
 public:
  static constexpr size_t kSize = 64;

  void Add(Ff1::Halves string) { strings_[size_++] = string; }
  bool full() const { return size_ == kSize; }
  std::span<Ff1::Halves> strings() { return {strings_.data(), size_}; }
  void Clear() { size_ = 0; }

 private:
  std::array<Ff1::Halves, kSize> strings_;
  size_t size_ = 0;
};

}  // namespace

Result<std::shared_ptr<const BlockCipher>> MakeAes(const SecretKey& key) {
  auto aes = std::make_shared<const Aes>(key);
  if (!aes->ok()) return Internal("OpenSSL has no AES cipher for a key of this size");
  return std::shared_ptr<const BlockCipher>(std::move(aes));
}

std::string KeyCheck(const BlockCipher& cipher) {
  std::array<uint8_t, BlockCipher::kBlockBytes> block{};
  if (!cipher.Encrypt(block.data(), 1)) return "";
  return ToHex(std::span(block).first<3>());
}

Result<std::shared_ptr<ObfuscatePlugin>> ObfuscatePlugin::Make(
    std::shared_ptr<const BlockCipher> cipher, std::string_view tag, int64_t width) {
  if (width < kWidthLeast || width > kWidthMost)
    return Invalid(Cat("obfuscate.width must be ", kWidthLeast, " to ", kWidthMost));
  FIRN_ASSIGN(Ff1 ff1, Ff1::Make(std::move(cipher), 10, static_cast<int>(width), tag));
  const uint64_t last = ff1.left_size() * ff1.right_size() - 1;
  constexpr uint64_t kLastId = std::numeric_limits<int64_t>::max();
  const auto most = static_cast<int64_t>(std::min(last, kLastId));
  return std::shared_ptr<ObfuscatePlugin>(new ObfuscatePlugin(std::move(ff1), most));
}

std::optional<Refusal> ObfuscatePlugin::Before(const Request& request) {
  if (request.form != Form::kRuns && request.form != Form::kOneRun) return std::nullopt;
  return Refusal{Reason::kRejected, "this tag's ids are permuted and do not form runs", 0, false};
}

std::optional<Refusal> ObfuscatePlugin::After(const Request&, Runs& runs) {
  if (!Holds(runs)) return TooLarge();
  Runs hidden;
  Batch batch;
  bool ok = true;
  const auto flush = [&] {
    ok = ok && Permute(batch.strings());
    for (const Ff1::Halves& string : batch.strings()) {
      hidden.Add({static_cast<int64_t>(Join(string)), 1, 1});
    }
    batch.Clear();
  };
  runs.ForEach([&](int64_t id) {
    batch.Add(Split(id));
    if (batch.full()) flush();
  });
  flush();
  if (!ok) return CipherFailed();
  runs = std::move(hidden);
  return std::nullopt;
}

Result<int64_t> ObfuscatePlugin::Hide(int64_t id) const {
  FIRN_TRY(CheckRange(id));
  Ff1::Halves string = Split(id);
  if (!Permute({&string, 1})) return Internal(CipherFailed().message);
  return static_cast<int64_t>(Join(string));
}

Result<int64_t> ObfuscatePlugin::Reveal(int64_t shown) const {
  FIRN_TRY(CheckRange(shown));
  Ff1::Halves string = Split(shown);
  do {
    if (!ff1_.Decrypt({&string, 1})) return Internal(CipherFailed().message);
  } while (Join(string) > static_cast<uint64_t>(most_));
  return static_cast<int64_t>(Join(string));
}

// Encrypts each string until the result is an id. Of the numbers with 19 digits, 1 in 13 is not an
// id.
bool ObfuscatePlugin::Permute(std::span<Ff1::Halves> strings) const {
  if (!ff1_.Encrypt(strings)) return false;
  for (Ff1::Halves& string : strings) {
    while (Join(string) > static_cast<uint64_t>(most_)) {
      if (!ff1_.Encrypt({&string, 1})) return false;
    }
  }
  return true;
}

bool ObfuscatePlugin::Holds(const Runs& runs) const {
  for (const IdRun& run : runs.runs()) {
    if (!CheckRange(run.first).ok() || !CheckRange(run.last()).ok()) return false;
  }
  return true;
}

Status ObfuscatePlugin::CheckRange(int64_t id) const {
  if (id >= 0 && id <= most_) return {};
  return Invalid(Cat("the id is above ", most_, " or negative"));
}

Ff1::Halves ObfuscatePlugin::Split(int64_t id) const {
  const auto number = static_cast<uint64_t>(id);
  return {number / ff1_.right_size(), number % ff1_.right_size()};
}

uint64_t ObfuscatePlugin::Join(const Ff1::Halves& halves) const {
  return halves.left * ff1_.right_size() + halves.right;
}

Refusal ObfuscatePlugin::TooLarge() const {
  return {Reason::kExhausted,
          "the next id has more digits than this tag's obfuscate.width; make another tag (another "
          "server may have smaller ids in memory)",
          0, true};
}

}  // namespace firn
