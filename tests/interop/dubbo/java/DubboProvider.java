import io.firn.IdService;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ProtocolConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.ServiceConfig;

/** Dubbo's own provider of io.firn.IdService, which counts: what Firn is compared with. Argument: its port. */
public class DubboProvider implements IdService {
  private final AtomicLong next = new AtomicLong();

  public static void main(String[] arguments) throws Exception {
    ApplicationConfig application = new ApplicationConfig("provider");
    application.setQosEnable(false);
    ProtocolConfig protocol = new ProtocolConfig("dubbo", Integer.parseInt(arguments[0]));
    protocol.setSerialization("hessian2");
    ServiceConfig<IdService> service = new ServiceConfig<>();
    service.setApplication(application);
    service.setRegistry(new RegistryConfig("N/A"));
    service.setProtocol(protocol);
    service.setInterface(IdService.class);
    service.setRef(new DubboProvider());
    service.export();
    Thread.currentThread().join();
  }

  @Override
  public long nextId(String tag) {
    return next.incrementAndGet();
  }

  @Override
  public List<Long> nextIds(String tag, int count) {
    List<Long> ids = new ArrayList<>();
    for (int i = 0; i < count; ++i) ids.add(next.incrementAndGet());
    return ids;
  }

  @Override
  public String nextText(String tag) {
    return Long.toString(next.incrementAndGet());
  }
}
