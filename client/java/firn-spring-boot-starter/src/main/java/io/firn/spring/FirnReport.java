package io.firn.spring;

import io.firn.FirnClient;
import io.firn.FirnException;
import io.firn.SeenServer;
import java.util.LinkedHashMap;
import java.util.Map;

/** What a health check says of a client: whether a server answers, and each server's standing. */
record FirnReport(boolean healthy, String fault, Map<String, String> servers) {
  static FirnReport of(FirnClient client) {
    String fault = "";
    try {
      client.ping();
    } catch (FirnException failure) {
      fault = failure.getMessage();
    }
    Map<String, String> servers = new LinkedHashMap<>();
    boolean usable = false;
    for (SeenServer one : client.servers()) {
      servers.put(one.address, one.why.isEmpty() ? one.health : one.health + ": " + one.why);
      usable |= one.health.equals("healthy") || one.health.equals("failing");
    }
    if (fault.isEmpty() && !usable) {
      fault = "no server is ready";
    }
    return new FirnReport(fault.isEmpty(), fault, servers);
  }
}
