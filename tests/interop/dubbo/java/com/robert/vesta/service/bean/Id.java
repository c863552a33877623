package com.robert.vesta.service.bean;

import java.io.Serializable;

/** The fields of an id, as Vesta's consumers receive them. */
public class Id implements Serializable {
  private static final long serialVersionUID = 1L;

  private long machine;
  private long seq;
  private long time;
  private long genMethod;
  private long type;
  private long version;

  @Override
  public String toString() {
    return machine + " " + seq + " " + time + " " + genMethod + " " + type + " " + version;
  }
}
