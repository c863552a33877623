#include "server/plugins/ff1.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/entropy.h"

namespace firn {
namespace {

// Not a secure cipher, but fast, and different for every key and block.
class ToyCipher final : public BlockCipher {
 public:
  explicit ToyCipher(uint64_t key) : key_(key) {}

  bool Encrypt(uint8_t* blocks, size_t count) const override {
    for (size_t i = 0; i < count; ++i) Mix(blocks + i * kBlockBytes);
    return !broken;
  }

  bool broken = false;

 private:
  void Mix(uint8_t* block) const {
    uint64_t words[2];
    std::memcpy(words, block, sizeof words);
    SeededEntropy out(SeededEntropy(key_ ^ words[0]).Next() ^ words[1]);
    for (uint64_t& word : words) word = out.Next();
    std::memcpy(block, words, sizeof words);
  }

  const uint64_t key_;
};

Ff1 Decimal(int width, uint64_t key = 1, std::string_view tweak = "order") {
  return *Ff1::Make(std::make_shared<ToyCipher>(key), 10, width, tweak);
}

Ff1::Halves Random(const Ff1& ff1, Entropy& entropy) {
  return {entropy.Below(ff1.left_size()), entropy.Below(ff1.right_size())};
}

std::string RandomTweak(Entropy& entropy) {
  std::string tweak(entropy.Below(Ff1::kTweakBytesMax + 1), 'x');
  for (char& c : tweak) c = static_cast<char>(entropy.Next());
  return tweak;
}

TEST(Ff1Test, DecryptIsTheInverseOfEncrypt) {
  SeededEntropy entropy(11);
  for (const uint32_t radix : {2u, 3u, 10u, 16u, 36u, 62u, 256u, 65535u, 65536u}) {
    for (int length = 2; length <= 64; ++length) {
      const Result<Ff1> ff1 =
          Ff1::Make(std::make_shared<ToyCipher>(7), radix, length, RandomTweak(entropy));
      if (!ff1.ok()) continue;
      std::vector<Ff1::Halves> strings;
      for (int i = 0; i < 5; ++i) strings.push_back(Random(*ff1, entropy));
      strings.push_back({ff1->left_size() - 1, ff1->right_size() - 1});
      strings.push_back({0, 0});
      const std::vector<Ff1::Halves> before = strings;
      ASSERT_TRUE(ff1->Encrypt(strings));
      for (const Ff1::Halves& s : strings) {
        ASSERT_LT(s.left, ff1->left_size()) << radix << " " << length;
        ASSERT_LT(s.right, ff1->right_size()) << radix << " " << length;
      }
      ASSERT_TRUE(ff1->Decrypt(strings));
      ASSERT_EQ(strings, before) << radix << " " << length;
    }
  }
}

TEST(Ff1Test, PermutesAllNumbersOfSixDigits) {
  const Ff1 ff1 = Decimal(6);
  std::vector<Ff1::Halves> strings;
  for (uint64_t i = 0; i < 1'000'000; ++i) strings.push_back({i / 1000, i % 1000});
  ASSERT_TRUE(ff1.Encrypt(strings));
  std::vector<bool> seen(1'000'000);
  for (const Ff1::Halves& s : strings) {
    const uint64_t number = s.left * 1000 + s.right;
    ASSERT_LT(number, 1'000'000u);
    ASSERT_FALSE(seen[number]) << number;
    seen[number] = true;
  }
}

TEST(Ff1Test, ManyStringsAtOnceEncryptAsOneByOne) {
  SeededEntropy entropy(5);
  const Ff1 ff1 = Decimal(13);
  for (const size_t count : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{200}}) {
    std::vector<Ff1::Halves> together;
    for (size_t i = 0; i < count; ++i) together.push_back(Random(ff1, entropy));
    std::vector<Ff1::Halves> alone = together;
    ASSERT_TRUE(ff1.Encrypt(together));
    for (Ff1::Halves& s : alone) ASSERT_TRUE(ff1.Encrypt({&s, 1}));
    EXPECT_EQ(together, alone);
  }
}

TEST(Ff1Test, KeyTweakAndLengthEachChangeThePermutation) {
  const auto image = [](const Ff1& ff1) {
    std::vector<Ff1::Halves> strings = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
    EXPECT_TRUE(ff1.Encrypt(strings));
    return strings;
  };
  EXPECT_EQ(image(Decimal(8)), image(Decimal(8)));
  EXPECT_NE(image(Decimal(8)), image(Decimal(8, 2)));
  EXPECT_NE(image(Decimal(8)), image(Decimal(8, 1, "user")));
  EXPECT_NE(image(Decimal(8)), image(Decimal(9)));
  EXPECT_NE(image(Decimal(8, 1, "")), image(Decimal(8, 1, std::string_view("\0", 1))));
}

TEST(Ff1Test, RefusesDomainsThatTheStandardOrTheArithmeticForbids) {
  const auto code = [](uint32_t radix, int length, std::string_view tweak = "") {
    return Ff1::Make(std::make_shared<ToyCipher>(1), radix, length, tweak).code();
  };
  EXPECT_EQ(code(10, 6), Code::kOk);
  EXPECT_EQ(code(10, 5), Code::kInvalid);
  EXPECT_EQ(code(2, 20), Code::kOk);
  EXPECT_EQ(code(2, 19), Code::kInvalid);
  EXPECT_EQ(code(2, 124), Code::kOk);
  EXPECT_EQ(code(2, 125), Code::kInvalid);
  EXPECT_EQ(code(10, 36), Code::kOk);
  EXPECT_EQ(code(10, 37), Code::kInvalid);
  EXPECT_EQ(code(1, 20), Code::kInvalid);
  EXPECT_EQ(code(65537, 2), Code::kInvalid);
  EXPECT_EQ(code(65536, 2), Code::kOk);
  EXPECT_EQ(code(10, -1), Code::kInvalid);
  EXPECT_EQ(code(10, 6, std::string(128, 't')), Code::kOk);
  EXPECT_EQ(code(10, 6, std::string(129, 't')), Code::kInvalid);
}

TEST(Ff1Test, ReportsAFailingCipher) {
  const auto cipher = std::make_shared<ToyCipher>(1);
  const Ff1 ff1 = *Ff1::Make(cipher, 10, 8, "");
  cipher->broken = true;
  Ff1::Halves string{1, 2};
  EXPECT_FALSE(ff1.Encrypt({&string, 1}));
  EXPECT_FALSE(ff1.Decrypt({&string, 1}));
  EXPECT_EQ(Ff1::Make(cipher, 10, 8, "a tweak of some length").code(), Code::kInternal);
}

}  // namespace
}  // namespace firn
