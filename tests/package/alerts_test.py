"""Tests that each alert fires on its condition, and not otherwise: Prometheus' own promtool evaluates
alerts.yml on test series.

    alerts_test.py ALERTS_YML
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import yaml

ALERTS = os.path.abspath(sys.argv[1])
with open(ALERTS) as alerts_file:
    RULES = [rule for group in yaml.safe_load(alerts_file)["groups"] for rule in group["rules"]]

HERE = 'job="firn",instance="a"'
THERE = 'job="firn",instance="b"'
STATE = "firn_state{%s,state=\"%s\"}"

# Series for promtool, with a value every 30 seconds for 10 minutes: series on which the alert fires, and
# similar ones on which it must not fire. The text after a comma names one of an alert's cases.
CASES = {
    "FirnNoServerReady": (
        {f"firn_ready{{{HERE}}}": "1 0x20", f"firn_ready{{{THERE}}}": "0x20"},
        {f"firn_ready{{{HERE}}}": "0x20", f"firn_ready{{{THERE}}}": "1x20"}),
    "FirnNoServerReady, none answers": (
        {f"up{{{HERE}}}": "0x20", f"up{{{THERE}}}": "0x20"},
        {f"up{{{HERE}}}": "0x20", f"firn_ready{{{THERE}}}": "1x20", f"up{{{THERE}}}": "1x20",
         'up{job="other",instance="c"}': "0x20"}),
    "FirnMachineIdTwice": (
        {f"firn_machine_id{{{HERE}}}": "7x20", f"firn_machine_id{{{THERE}}}": "7x20"},
        {f"firn_machine_id{{{HERE}}}": "7x20", f"firn_machine_id{{{THERE}}}": "8x20",
         'firn_machine_id{job="other",instance="c"}': "7x20"}),
    # The claim has lapsed, and the data are still lost.
    "FirnFrozen": (
        {f'firn_claim_state{{{HERE},state="seeking"}}': "1x20",
         f"firn_cluster_frozen{{{HERE}}}": "1x20"},
        {f'firn_claim_state{{{HERE},state="holding"}}': "1x20",
         f"firn_cluster_frozen{{{HERE}}}": "0x20"}),
    "FirnFrozen, lapsing": (
        {f'firn_claim_state{{{HERE},state="lapsing"}}': "1x20"},
        {f'firn_claim_state{{{HERE},state="holding"}}': "1x20"}),
    "FirnBoundShort": (
        {f"firn_bound_seconds{{{HERE}}}": "600-30x20",
         STATE % (HERE, "DRAINING"): "0x20"},
        {f"firn_bound_seconds{{{HERE}}}": "40 25 35 40x17",
         STATE % (HERE, "DRAINING"): "0x20",
         f"firn_bound_seconds{{{THERE}}}": "60-4x20",
         STATE % (THERE, "DRAINING"): "1x20"}),
    "FirnBoundShort, reached": (
        {f"firn_bound_seconds{{{HERE}}}": "0x80", STATE % (HERE, "DRAINING"): "0x80"},
        {f"firn_bound_seconds{{{HERE}}}": "590x20", STATE % (HERE, "DRAINING"): "0x20"}),
    "FirnServerSilent": (
        {f"up{{{HERE}}}": "0x20"}, {f"up{{{HERE}}}": "1x20", 'up{job="other"}': "0x20"}),
    "FirnServerNotReady": (
        {STATE % (HERE, "NOT_READY"): "1x20"},
        {STATE % (HERE, "NOT_READY"): "0x20", STATE % (HERE, "OFFLINE"): "1x20"}),
    "FirnRegistryAway": (
        {f"firn_registry_connected{{{HERE}}}": "0x20"},
        {f"firn_registry_connected{{{HERE}}}": "1x20"}),
    "FirnRenewalsFail": (
        {f'firn_renewals_total{{{HERE},outcome="failed"}}': "0+1x20"},
        {f'firn_renewals_total{{{HERE},outcome="failed"}}': "5x20",
         f'firn_renewals_total{{{HERE},outcome="done"}}': "0+5x20"}),
    "FirnClockOff": (
        {f"firn_clock_skew_seconds{{{HERE}}}": "-1.5x20"},
        {f"firn_clock_skew_seconds{{{HERE}}}": "0.9x20"}),
    "FirnClockOff, the registry's": (
        {f"firn_registry_clock_off_seconds{{{HERE}}}": "3600x20",
         f"firn_clock_skew_seconds{{{HERE}}}": "0x20"},
        {f"firn_registry_clock_off_seconds{{{HERE}}}": "0x20"}),
    "FirnClockStepped": (
        {f'firn_clock_steps_total{{{HERE},direction="back"}}': "0x10 1x10"},
        {f'firn_clock_steps_total{{{HERE},direction="back"}}': "3x20"}),
    "FirnRefusals": (
        {f'firn_refusals_total{{{HERE},reason="CLOCK"}}': "0+300x20",
         f"firn_calls_total{{{HERE}}}": "0+3000x20"},
        {f'firn_refusals_total{{{HERE},reason="UNKNOWN_TAG"}}': "0+300x20",
         f'firn_refusals_total{{{HERE},reason="CLOCK"}}': "0+3x20",
         f"firn_calls_total{{{HERE}}}": "0+3000x20"}),
    "FirnCallersMistaken": (
        {f'firn_refusals_total{{{HERE},reason="UNKNOWN_TAG"}}': "0+300x20"},
        {f'firn_refusals_total{{{HERE},reason="OVERLOADED"}}': "0+300x20"}),
    "FirnTagRefused": (
        {f'firn_tag_refused{{{HERE},tag="order",state="unsupported"}}': "1x20"},
        {f'firn_tag_refused{{{HERE},tag="order",state="disabled"}}': "1x20"}),
    "FirnTagOutdated": (
        {f'firn_tag_outdated{{{HERE},tag="order"}}': "1x20"},
        {f'firn_tag_refused{{{HERE},tag="order",state="unsupported"}}': "1x20"}),
    "FirnSupplyShort": (
        {f'firn_segment_supply_seconds{{{HERE},tag="t"}}': "4x20",
         f'firn_segment_per_second{{{HERE},tag="t"}}': "90x20"},
        {f'firn_segment_supply_seconds{{{HERE},tag="t"}}': "4x20",
         f'firn_segment_per_second{{{HERE},tag="t"}}': "0x20"}),
    "FirnStoreAway": (
        {f'firn_segment_store_away{{{HERE},tag="t"}}': "1x20"},
        {f'firn_segment_store_away{{{HERE},tag="t"}}': "0x20"}),
    "FirnTrouble": (
        {f'firn_trouble{{{HERE},urgency="soon"}}': "1x20"},
        {f'firn_trouble{{{HERE},urgency="note"}}': "1x20"}),
    "FirnStoreStoodInFor": (
        {f'firn_segment_stands_in{{{HERE},tag="t"}}': "1x20"},
        {f'firn_segment_stands_in{{{HERE},tag="t"}}': "0x20"}),
    "FirnLayoutEnding": (
        {f"firn_layout_remaining_seconds{{{HERE}}}": "26000000x20"},
        {f"firn_layout_remaining_seconds{{{HERE}}}": "1700000000x20"}),
    "FirnCertificateExpiring": (
        {f'firn_tls_certificate_expiry_seconds{{{HERE},door="public"}}': "1000000x20"},
        {f'firn_tls_certificate_expiry_seconds{{{HERE},door="public"}}': "3000000x20"}),
    "FirnCertificateExpiresThisWeek": (
        {f'firn_tls_certificate_expiry_seconds{{{HERE},door="admin"}}': "-60x20"},
        {f'firn_tls_certificate_expiry_seconds{{{HERE},door="admin"}}': "2700000x20"}),
    "FirnHistoryLost": (
        {f'firn_history_runs_total{{{HERE},outcome="lost"}}': "0x10 4x10"},
        {f'firn_history_runs_total{{{HERE},outcome="written"}}': "0+4x20",
         f'firn_history_runs_total{{{HERE},outcome="dropped"}}': "4x20"}),
    "FirnClientCaExpiring": (
        {f'firn_tls_client_ca_expiry_seconds{{{HERE},door="public"}}': "1000000x20"},
        {f'firn_tls_client_ca_expiry_seconds{{{HERE},door="public"}}': "3000000x20"}),
    "FirnClientCaExpiresThisWeek": (
        {f'firn_tls_client_ca_expiry_seconds{{{HERE},door="admin"}}': "-60x20"},
        {f'firn_tls_client_ca_expiry_seconds{{{HERE},door="admin"}}': "2700000x20"}),
    "FirnLeaseRevoked": (
        {f'firn_leases_total{{{HERE},event="copied"}}': "0x10 1x10"},
        {f'firn_leases_total{{{HERE},event="expired"}}': "0+4x20",
         f'firn_leases_total{{{HERE},event="lost"}}': "4x20"}),
    "FirnLeasesRefused": (
        {f'firn_leases_refused_total{{{HERE},reason="limit"}}': "0+30x20"},
        {f'firn_leases_refused_total{{{HERE},reason="later"}}': "0+1x20",
         f'firn_leases_refused_total{{{HERE},reason="elsewhere"}}': "0+30x20"}),
    "FirnLeasesShort": (
        {f'firn_lease_machine_ids{{{HERE},rack="1"}}': "128x20",
         f'firn_lease_machine_ids_free{{{HERE},rack="1"}}': "12x20",
         f'firn_lease_machine_ids{{{THERE},rack="1"}}': "128x20",
         f'firn_lease_machine_ids_free{{{THERE},rack="1"}}': "11x20"},
        {f'firn_lease_machine_ids{{{HERE},rack="0"}}': "10x20",
         f'firn_lease_machine_ids_free{{{HERE},rack="0"}}': "1x20",
         f'firn_lease_machine_ids{{{HERE},rack="1"}}': "0x20",
         f'firn_lease_machine_ids_free{{{HERE},rack="1"}}': "0x20"}),
    "FirnCrowded": (
        {f'firn_accept_failures_total{{{HERE},door="public"}}': "0x10 4x10"},
        {f'firn_accept_failures_total{{{HERE},door="public"}}': "4x20"}),
}


def played(alert, series, fires):
    """One test for promtool: the number of alerts of that name at the end."""
    return {"interval": "30s",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [{
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)',
                "eval_time": "8m", "exp_samples": [{"labels": "{}", "value": int(fires)}]}]}


class AlertsTest(unittest.TestCase):
    def test_every_alert_is_tried(self):
        self.assertEqual(sorted(rule["alert"] for rule in RULES),
                         sorted({case.split(",")[0] for case in CASES}))

    def test_alerts_fire_when_they_should_and_only_then(self):
        for case, (bad, good) in CASES.items():
            alert = case.split(",")[0]
            with self.subTest(case), tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
                json.dump({"rule_files": [ALERTS], "evaluation_interval": "30s",
                           "tests": [played(alert, bad, True), played(alert, good, False)]}, file)
                file.flush()
                done = subprocess.run(["promtool", "test", "rules", file.name],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      check=False)
                self.assertEqual(0, done.returncode, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
