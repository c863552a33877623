#include <gmock/gmock.h>

#include "common/tag/obfuscated_end.h"
#include "registry/cluster/tag_node.h"
#include "tests/registry/operate/audit_fixture.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AuditTagsTest : public AuditTest {};

TEST_F(AuditTagsTest, NotesAnObfuscatedTagWhoseIdsOutgrowItsWidthWithinTenYears) {
  TagDefinition tag{.name = "order", .strategy = "snowflake", .plugins = {"obfuscate"}};
  tag.obfuscate_width = 18;
  tag.obfuscate_key = "k1";
  tag.obfuscate_check = "c6a13b";
  const std::string node = *WriteTagNode({.tag = tag});
  Put(std::string(kTagsPath), "");
  Put(TagPath("order"), node);
  const Audit audit = Read();
  EXPECT_THAT(audit.Faults(), IsEmpty());
  EXPECT_THAT(audit.Notes(), ElementsAre(HasSubstr("from 2031-07-22")));
  const WallMs end = ObfuscatedEnd(tag, Layout::Firn()).value_or(WallMs());
  const Audit late = *ReadAudit(registry_, end - std::chrono::days(100));
  EXPECT_THAT(late.Faults(), ElementsAre(HasSubstr("from 2031-07-22")));
}

}  // namespace
}  // namespace firn
