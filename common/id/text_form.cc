#include "common/id/text_form.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "common/base/cat.h"
#include "common/base/quote.h"

namespace firn {
namespace {

constexpr int8_t kNoDigit = -1;
constexpr int8_t kIgnored = -2;

struct Alphabet {
  std::string_view name;
  std::string_view digits;
  std::array<int8_t, 256> values;
};

constexpr Alphabet MakeAlphabet(std::string_view name, std::string_view digits) {
  Alphabet alphabet{name, digits, {}};
  alphabet.values.fill(kNoDigit);
  for (size_t i = 0; i < digits.size(); ++i) {
    alphabet.values[static_cast<unsigned char>(digits[i])] = static_cast<int8_t>(i);
  }
  return alphabet;
}

// Parses upper-case digits in lower case, too.
constexpr Alphabet MakeAnyCase(std::string_view name, std::string_view digits) {
  Alphabet alphabet = MakeAlphabet(name, digits);
  auto& values = alphabet.values;
  for (size_t letter = 'A'; letter <= 'Z'; ++letter) values[letter - 'A' + 'a'] = values[letter];
  return alphabet;
}

constexpr Alphabet MakeCrockford() {
  Alphabet alphabet = MakeAnyCase("Crockford base 32", "0123456789ABCDEFGHJKMNPQRSTVWXYZ");
  auto& values = alphabet.values;
  for (const size_t one : {size_t{'I'}, size_t{'i'}, size_t{'L'}, size_t{'l'}}) values[one] = 1;
  for (const size_t zero : {size_t{'O'}, size_t{'o'}}) values[zero] = 0;
  values['-'] = kIgnored;
  return alphabet;
}

constexpr Alphabet kDecimal = MakeAlphabet("decimal", "0123456789");
constexpr Alphabet kBase62 =
    MakeAlphabet("base 62", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
constexpr Alphabet kBase36 = MakeAnyCase("base 36", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
constexpr Alphabet kCrockford = MakeCrockford();

const Alphabet& AlphabetOf(Base base) {
  switch (base) {
    case Base::kDecimal:
      return kDecimal;
    case Base::kBase62:
      return kBase62;
    case Base::kBase36:
      return kBase36;
    case Base::kCrockford32:
      return kCrockford;
  }
  Die("no such base");
}

// Writes digits from right to left to the end of a buffer. The base is a constant, so that the
// compiler replaces the division by a multiplication.
template <uint64_t kRadix>
char* WriteDigits(char* end, uint64_t number, std::string_view digits) {
  do {
    *--end = digits[number % kRadix];
    number /= kRadix;
  } while (number != 0);
  return end;
}

char* WriteNumber(Base base, char* end, uint64_t number) {
  switch (base) {
    case Base::kDecimal:
      return WriteDigits<10>(end, number, kDecimal.digits);
    case Base::kBase62:
      return WriteDigits<62>(end, number, kBase62.digits);
    case Base::kBase36:
      return WriteDigits<36>(end, number, kBase36.digits);
    case Base::kCrockford32:
      return WriteDigits<32>(end, number, kCrockford.digits);
  }
  Die("no such base");
}

Status Refuse(const Alphabet& alphabet, std::string_view text, size_t at, const char* why) {
  return Invalid(Cat("position ", at + 1, " of ", Quoted(text), " ", why, " ", alphabet.name));
}

// Parses the digits of `text` from `begin` on as a number of at most `max`.
Result<uint64_t> ReadDigits(const Alphabet& alphabet, std::string_view text, size_t begin,
                            uint64_t max) {
  uint64_t number = 0;
  bool any = false;
  for (size_t i = begin; i < text.size(); ++i) {
    const int8_t digit = alphabet.values[static_cast<unsigned char>(text[i])];
    if (digit == kIgnored) continue;
    if (digit == kNoDigit) return Refuse(alphabet, text, i, "is not a digit of");
    any = true;
    if (__builtin_mul_overflow(number, alphabet.digits.size(), &number) ||
        __builtin_add_overflow(number, static_cast<uint64_t>(digit), &number) || number > max) {
      return Refuse(alphabet, text, i, "makes the number larger than any id in");
    }
  }
  if (!any) return Refuse(alphabet, text, text.size(), "lacks a digit of");
  return number;
}

}  // namespace

std::optional<Base> BaseNamed(std::string_view name) {
  if (name == "base62") return Base::kBase62;
  if (name == "base36") return Base::kBase36;
  if (name == "base32") return Base::kCrockford32;
  return std::nullopt;
}

void TextForm::AppendTo(std::string& out, int64_t id) const {
  char buffer[kPadMax];
  char* const end = buffer + sizeof buffer;
  const auto bits = static_cast<uint64_t>(id);
  const bool minus = base == Base::kDecimal && id < 0;
  char* begin = WriteNumber(base, end, minus ? 0 - bits : bits);
  const std::ptrdiff_t pad = std::min(pad_to, kPadMax) - (minus ? 1 : 0);
  while (end - begin < pad) *--begin = '0';
  if (minus) out += '-';
  out.append(begin, end);
}

std::string TextForm::Format(int64_t id) const {
  std::string text;
  AppendTo(text, id);
  return text;
}

Result<int64_t> ParseId(Base base, std::string_view text) {
  const Alphabet& alphabet = AlphabetOf(base);
  if (text.size() > TextForm::kPadMax) {
    return Invalid(Cat("position ", TextForm::kPadMax + 1, ": an id's text has at most ",
                       TextForm::kPadMax, " characters"));
  }
  const bool decimal = base == Base::kDecimal;
  const bool minus = decimal && text.starts_with('-');
  const uint64_t max = !decimal ? UINT64_MAX : uint64_t{INT64_MAX} + (minus ? 1 : 0);
  FIRN_ASSIGN(const uint64_t number, ReadDigits(alphabet, text, minus ? 1 : 0, max));
  if (minus && number == 0) return Refuse(alphabet, text, 0, "is the minus of a zero in");
  return static_cast<int64_t>(minus ? 0 - number : number);
}

}  // namespace firn
