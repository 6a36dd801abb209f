package io.idempotence.it.wire;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.X509Certificate;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

/** TLS with a certificate of no known authority, and clients that trust any certificate. */
public final class TestTls {
    private static final char[] PASSWORD = "password".toCharArray();

    private TestTls() {}

    /** Of servers, with WireMock's certificate, and of clients. */
    public static SSLContext context() {
        try (InputStream in = TestTls.class.getResourceAsStream("/keystore")) {
            KeyStore keys = KeyStore.getInstance("JKS");
            keys.load(in, PASSWORD);
            KeyManagerFactory managers = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            managers.init(keys, PASSWORD);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(managers.getKeyManagers(), new TrustManager[] {trustingAll()}, null);
            return context;
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The server's end of a connection, after its handshake. */
    public static SSLSocket accept(Socket socket) throws IOException {
        SSLSocket tls = (SSLSocket) context().getSocketFactory().createSocket(socket, null, true);
        tls.setUseClientMode(false);
        tls.startHandshake();
        return tls;
    }

    public static X509ExtendedTrustManager trustingAll() {
        return new X509ExtendedTrustManager() {
            @Override
            public void checkClientTrusted(X509Certificate[] chain, String authType) {}

            @Override
            public void checkClientTrusted(X509Certificate[] chain, String authType, Socket socket) {}

            @Override
            public void checkClientTrusted(X509Certificate[] chain, String authType, SSLEngine engine) {}

            @Override
            public void checkServerTrusted(X509Certificate[] chain, String authType) {}

            @Override
            public void checkServerTrusted(X509Certificate[] chain, String authType, Socket socket) {}

            @Override
            public void checkServerTrusted(X509Certificate[] chain, String authType, SSLEngine engine) {}

            @Override
            public X509Certificate[] getAcceptedIssuers() {
                return new X509Certificate[0];
            }
        };
    }
}
