import java.io.FileInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;

/** Writes what java.util.Properties reads from each file: "<file> <hex key>=<hex value>;...". */
public final class PropertiesEcho {
  public static void main(String[] args) throws IOException {
    List<Path> files;
    try (var listed = Files.list(Path.of(args[0]))) {
      files = listed.sorted().toList();
    }
    for (Path file : files) {
      System.out.println(file.getFileName() + " " + echo(file));
    }
  }

  private static String echo(Path file) throws IOException {
    var properties = new Properties();
    try (var in = new FileInputStream(file.toFile())) {
      properties.load(in);
    } catch (IllegalArgumentException malformed) {
      return "refused";
    }
    var sorted = new TreeMap<String, String>();
    properties.forEach((key, value) -> sorted.put(hex((String) key), hex((String) value)));
    var out = new StringBuilder();
    sorted.forEach((key, value) -> out.append(key).append('=').append(value).append(';'));
    return out.toString();
  }

  private static String hex(String text) {
    return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
  }
}
