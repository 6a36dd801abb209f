package io.idempotence.benchmarks;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/**
 * A kept connection that posts the same payment again and again, each time under a new ID. Bytes in, bytes out: an HTTP client would
 * cost more than what is measured.
 */
final class HttpConnection implements ThreadedLoad.Caller {
    static final String BODY = "{\"account\":\"DE02120300000000202051\",\"cents\":1999}";

    private static final byte[] CREATED = "HTTP/1.1 201 ".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] END = "\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    private final Socket socket;
    private final InputStream in;
    private final OutputStream out;
    private final byte[] request;
    private final int idEnd;
    private final byte[] response = new byte[4096];

    HttpConnection(int port, String path) throws IOException {
        socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(10_000);
        in = socket.getInputStream();
        out = socket.getOutputStream();
        String head =
                "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
                        + BODY.length() + "\r\nIdempotency-Key: " + Ids.next();
        request = (head + "\r\n\r\n" + BODY).getBytes(StandardCharsets.US_ASCII);
        idEnd = head.length();
    }

    /** One request; the response must be a 201 without a body. */
    @Override
    public void call() throws IOException {
        Ids.writeNext(request, idEnd);
        out.write(request);
        int length = 0;
        do {
            int read = in.read(response, length, response.length - length);
            if (read < 0) {
                throw new IOException("the server closed the connection");
            }
            length += read;
        } while (!endsWithEmptyLine(length));
        for (int i = 0; i < CREATED.length; i++) {
            if (response[i] != CREATED[i]) {
                throw new IOException(new String(response, 0, length, StandardCharsets.US_ASCII));
            }
        }
    }

    private boolean endsWithEmptyLine(int length) {
        if (length < END.length) {
            return false;
        }
        for (int i = 1; i <= END.length; i++) {
            if (response[length - i] != END[END.length - i]) {
                return false;
            }
        }
        return true;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
