package com.robert.vesta.service.intf;

import com.robert.vesta.service.bean.Id;
import java.util.Date;

/** Vesta's service, with the methods that its consumers call. */
public interface IdService {
  long genId();

  Id expId(long id);

  long makeId(long time, long seq);

  long makeId(long time, long seq, long machine);

  long makeId(long genMethod, long time, long seq, long machine);

  long makeId(long type, long genMethod, long time, long seq, long machine);

  long makeId(long version, long type, long genMethod, long time, long seq, long machine);

  Date transTime(long time);
}
