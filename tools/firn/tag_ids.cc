#include "tools/firn/tag_ids.h"

#include <memory>

#include "common/base/quote.h"
#include "common/text/text_template.h"
#include "server/plugins/key_ring.h"
#include "server/plugins/obfuscate.h"

namespace firn {

Result<int64_t> ShownId(const TagDefinition& tag, const Layout& layout, std::string_view text) {
  FIRN_ASSIGN(const TextTemplate form,
              TextTemplate::Parse(tag.text, TimeZone::Utc(), tag.Dated(), layout));
  Result<int64_t> id = form.ParseId(text);
  // Programs may also show the number instead of the text.
  if (!id.ok() && !tag.text.empty()) {
    const Result<int64_t> number = ParseId(Base::kDecimal, text);
    if (number.ok()) return number;
  }
  if (!id.ok()) return id.status().WithContext(Quoted(text));
  return id;
}

Status FillKeyCheck(const std::string& key_dir, TagDefinition& tag) {
  const bool missing = tag.HasPlugin("obfuscate") && tag.obfuscate_check.empty();
  if (!missing || key_dir.empty() || tag.obfuscate_key.empty()) return {};
  FIRN_ASSIGN(const std::shared_ptr<const BlockCipher> cipher,
              KeyRing(key_dir).Cipher(tag.obfuscate_key));
  tag.obfuscate_check = KeyCheck(*cipher);
  return {};
}

Result<int64_t> PlainId(const TagDefinition& tag, int64_t shown, const std::string& key_dir) {
  if (!tag.HasPlugin("obfuscate")) return shown;
  const std::string who = "tag " + Quoted(tag.name);
  if (key_dir.empty()) {
    return Denied("the ids of " + who +
                  " are obfuscated; name the folder of the key with --key_dir");
  }
  FIRN_ASSIGN(const std::shared_ptr<const BlockCipher> cipher,
              KeyRing(key_dir).Cipher(tag.obfuscate_key));
  if (KeyCheck(*cipher) != tag.obfuscate_check) {
    return Invalid("the key " + Quoted(tag.obfuscate_key) + " in " + key_dir + " is not that of " +
                   who + ": its check value is " + KeyCheck(*cipher) + ", not " +
                   tag.obfuscate_check);
  }
  FIRN_ASSIGN(const auto plugin, ObfuscatePlugin::Make(cipher, tag.name, tag.obfuscate_width));
  return plugin->Reveal(shown);
}

}  // namespace firn
