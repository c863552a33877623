package io.firn;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

/** TLS options. The PEM files are read again when they change; while they are unusable, such
 * as half written, the last usable ones stay in force. Thread-safe. */
public final class Tls {
  private final String ca;
  private final String cert;
  private final String key;
  private final String name;
  private List<Long> stamp;
  private SSLContext context;

  /** Each may be null: authorities of the system; no certificate of the client's own, whose key is in
   * PKCS 8; the listed host for the name that the server's certificate must have. */
  public Tls(String ca, String cert, String key, String name) {
    this.ca = ca;
    this.cert = cert;
    this.key = key;
    this.name = name;
  }

  /** TLS on a connection; the handshake is the caller's. */
  SSLSocket over(Socket plain, String host, int port) throws IOException {
    try {
      String wanted = name == null ? host : name;
      SSLSocket secure =
          (SSLSocket) current().getSocketFactory().createSocket(plain, wanted, port, true);
      SSLParameters parameters = secure.getSSLParameters();
      parameters.setEndpointIdentificationAlgorithm("HTTPS");
      secure.setSSLParameters(parameters);
      return secure;
    } catch (GeneralSecurityException fault) {
      throw new IOException("cannot use the TLS files: " + fault.getMessage(), fault);
    }
  }

  private synchronized SSLContext current() throws IOException, GeneralSecurityException {
    List<Long> now = new ArrayList<>();
    for (String file : new String[] {ca, cert, key}) {
      now.add(file == null ? 0 : new File(file).lastModified());
    }
    if (context == null || !now.equals(stamp)) {
      try {
        context = read();
        stamp = now;
      } catch (IOException | GeneralSecurityException | RuntimeException fault) {
        if (context == null) {
          throw fault;
        } // otherwise the next connection tries again
      }
    }
    return context;
  }

  private SSLContext read() throws IOException, GeneralSecurityException {
    SSLContext made = SSLContext.getInstance("TLS");
    made.init(cert == null ? null : ownKeys().getKeyManagers(),
        ca == null ? null : authorities().getTrustManagers(), null);
    return made;
  }

  private TrustManagerFactory authorities() throws IOException, GeneralSecurityException {
    KeyStore store = emptyStore();
    for (Certificate one : certificates(ca)) {
      store.setCertificateEntry("ca" + store.size(), one);
    }
    TrustManagerFactory made =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    made.init(store);
    return made;
  }

  private KeyManagerFactory ownKeys() throws IOException, GeneralSecurityException {
    Certificate[] chain = certificates(cert).toArray(new Certificate[0]);
    String text = new String(Files.readAllBytes(Path.of(key)), StandardCharsets.US_ASCII);
    byte[] bytes = Base64.getMimeDecoder().decode(text.replaceAll("-----[^-]*-----", ""));
    PrivateKey own = KeyFactory.getInstance(chain[0].getPublicKey().getAlgorithm())
        .generatePrivate(new PKCS8EncodedKeySpec(bytes));
    KeyStore store = emptyStore();
    store.setKeyEntry("own", own, new char[0], chain);
    KeyManagerFactory made =
        KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    made.init(store, new char[0]);
    return made;
  }

  private static KeyStore emptyStore() throws IOException, GeneralSecurityException {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    return store;
  }

  private static Collection<? extends Certificate> certificates(String file)
      throws IOException, GeneralSecurityException {
    try (InputStream in = new FileInputStream(file)) {
      Collection<? extends Certificate> found =
          CertificateFactory.getInstance("X.509").generateCertificates(in);
      if (found.isEmpty()) {
        throw new CertificateException(file + " contains no certificate");
      }
      return found;
    }
  }
}
