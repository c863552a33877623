import java.io.File;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;

/**
 * Gives a node of a server that is down the version that it would have after as many sets: of
 * 2^31 or 2^32, which would take weeks. Arguments: data folder, path, version.
 */
public final class NodeVersion {
  public static void main(String[] args) throws Exception {
    File folder = new File(args[0]);
    FileTxnSnapLog files = new FileTxnSnapLog(folder, folder);
    DataTree tree = new DataTree();
    ConcurrentHashMap<Long, Integer> sessions = new ConcurrentHashMap<>();
    files.restore(tree, sessions, (header, record, digest) -> {});
    tree.getNode(args[1]).stat.setVersion(Integer.parseInt(args[2]));
    files.save(tree, sessions, true);
    files.close();
  }
}
