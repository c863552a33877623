// The sample vectors that NIST publishes for FF1 (SP 800-38G, examples 1 to 9), all of them.

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "server/plugins/ff1.h"
#include "server/plugins/obfuscate.h"

namespace firn {
namespace {

constexpr std::string_view kNumerals = "0123456789abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kKey256 =
    "2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94";
constexpr std::string_view kKey192 = kKey256.substr(0, 48);
constexpr std::string_view kKey128 = kKey256.substr(0, 32);

struct Sample {
  int number;
  std::string_view key;
  uint32_t radix;
  std::string_view tweak;
  std::string_view plain;
  std::string_view cipher;
};

constexpr Sample kSamples[] = {
    {1, kKey128, 10, "", "0123456789", "2433477484"},
    {2, kKey128, 10, "39383736353433323130", "0123456789", "6124200773"},
    {3, kKey128, 36, "3737373770717273373737", "0123456789abcdefghi", "a9tv40mll9kdu509eum"},
    {4, kKey192, 10, "", "0123456789", "2830668132"},
    {5, kKey192, 10, "39383736353433323130", "0123456789", "2496655549"},
    {6, kKey192, 36, "3737373770717273373737", "0123456789abcdefghi", "xbj3kv35jrawxv32ysr"},
    {7, kKey256, 10, "", "0123456789", "6657667009"},
    {8, kKey256, 10, "39383736353433323130", "0123456789", "1001623463"},
    {9, kKey256, 36, "3737373770717273373737", "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"},
};

std::vector<uint8_t> Bytes(std::string_view hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

uint64_t Number(std::string_view numerals, uint32_t radix) {
  uint64_t number = 0;
  for (const char c : numerals) number = number * radix + kNumerals.find(c);
  return number;
}

std::string Numerals(uint64_t number, uint32_t radix, size_t length) {
  std::string out(length, '0');
  for (size_t i = length; i-- > 0; number /= radix) out[i] = kNumerals[number % radix];
  return out;
}

Ff1 MakeFor(const Sample& sample) {
  const std::vector<uint8_t> tweak = Bytes(sample.tweak);
  const std::string_view text(reinterpret_cast<const char*>(tweak.data()), tweak.size());
  return *Ff1::Make(*MakeAes(SecretKey(Bytes(sample.key))), sample.radix,
                    static_cast<int>(sample.plain.size()), text);
}

Ff1::Halves Split(std::string_view numerals, uint32_t radix) {
  const size_t left = numerals.size() / 2;
  return {Number(numerals.substr(0, left), radix), Number(numerals.substr(left), radix)};
}

std::string Join(const Ff1::Halves& halves, uint32_t radix, size_t length) {
  return Numerals(halves.left, radix, length / 2) +
         Numerals(halves.right, radix, length - length / 2);
}

class Ff1VectorTest : public testing::TestWithParam<Sample> {};

TEST_P(Ff1VectorTest, EncryptsAsPublished) {
  const Sample& sample = GetParam();
  Ff1::Halves string = Split(sample.plain, sample.radix);
  ASSERT_TRUE(MakeFor(sample).Encrypt({&string, 1}));
  EXPECT_EQ(Join(string, sample.radix, sample.plain.size()), sample.cipher);
}

TEST_P(Ff1VectorTest, DecryptsAsPublished) {
  const Sample& sample = GetParam();
  Ff1::Halves string = Split(sample.cipher, sample.radix);
  ASSERT_TRUE(MakeFor(sample).Decrypt({&string, 1}));
  EXPECT_EQ(Join(string, sample.radix, sample.plain.size()), sample.plain);
}

INSTANTIATE_TEST_SUITE_P(Nist, Ff1VectorTest, testing::ValuesIn(kSamples), [](const auto& sample) {
  return "Sample" + std::to_string(sample.param.number);
});

}  // namespace
}  // namespace firn
