#!/usr/bin/env python3
"""tools/checks/states.py passes the unchanged page, and catches a state, a reason, a metric, an alert, a field
and an audit line that the page and the code do not share.

    states_test.py ROOT
"""

import unittest

import checks_test  # finds the checks
import cpp
import states


class StatesTest(checks_test.Folder):
    def setUp(self):
        super().setUp()
        for path in (*states.NAMED.values(), states.ROOTS[1], states.ALERTS):
            self.write(path, cpp.read(checks_test.ROOT, path))
        for path in cpp.files_below(checks_test.ROOT, ".cc"):
            if path.startswith(("server/", "registry/")):
                self.write(path, cpp.read(checks_test.ROOT, path))
        self.page = cpp.read(checks_test.ROOT, states.PAGE)
        self.write(states.PAGE, self.page)

    def faults(self, before, after, path=states.PAGE):
        text = cpp.read(checks_test.ROOT, path)
        self.assertIn(before, text)
        self.write(path, text.replace(before, after))
        return "\n".join(states.faults_of(self.root))

    def test_a_complete_page_passes(self):
        self.assertEqual(list(states.faults_of(self.root)), [])

    def test_catches_a_tag_state_without_a_row(self):
        self.assertIn("no row for `no_key`",
                      self.faults('return "lost";', 'return "no_key";',
                                  states.NAMED["TagStateName"]))

    def test_catches_a_root_state_without_a_row(self):
        self.assertIn("no row for `half_made`",
                      self.faults("kForeign,", "kForeign, kHalfMade,", states.ROOTS[1]))

    def test_catches_an_outcome_of_a_lease_without_a_row(self):
        self.assertIn("no row for `quota`",
                      self.faults('return "limit";', 'return "quota";', states.NAMED["LeaseVerdictName"]))
        self.assertIn("no row for `ANOTHER_SERVERS`", self.faults("421 `ANOTHER_SERVERS`", "421"))

    def test_catches_a_reason_without_a_row(self):
        self.assertIn("no row for `CLOCK`", self.faults("| `CLOCK` |", "| ids |"))

    def test_catches_a_metric_a_field_an_alert_and_a_line_that_do_not_exist(self):
        self.assertIn("firn_no_such", self.faults("`firn_tag_refused` |", "`firn_no_such` |"))
        self.assertIn("`no_field`", self.faults("`refused_tags`,", "`no_field`,"))
        self.assertIn("FirnNoSuch", self.faults("FirnTagRefused", "FirnNoSuch"))
        self.assertIn("`never said`", self.faults("`refuses tag`", "`never said`"))


if __name__ == "__main__":
    unittest.main()
