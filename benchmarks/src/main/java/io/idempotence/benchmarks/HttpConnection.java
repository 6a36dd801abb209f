package io.idempotence.benchmarks;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A kept connection that posts the same payment again and again, each time under a new ID or always under the same one. Bytes in, bytes
 * out: an HTTP client would cost more than what is measured.
 */
final class HttpConnection implements ThreadedLoad.Caller {
    static final String BODY = "{\"account\":\"DE02120300000000202051\",\"cents\":1999}";

    private static final byte[] CREATED = "HTTP/1.1 201 ".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] UNAVAILABLE = "HTTP/1.1 503 ".getBytes(StandardCharsets.US_ASCII);
    private static final Pattern CONTENT_LENGTH = Pattern.compile("(?i)\r\ncontent-length: *(\\d+)");
    private static final byte[] END = "\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    private final Socket socket;
    private final InputStream in;
    private final OutputStream out;
    private final byte[] request;
    private final int idEnd;
    private final boolean newIds;
    private final byte[] response = new byte[4096];

    HttpConnection(int port, String path, boolean newIds) throws IOException {
        this.newIds = newIds;
        socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(60_000);
        in = socket.getInputStream();
        out = socket.getOutputStream();
        String head =
                "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
                        + BODY.length() + "\r\nIdempotency-Key: " + Ids.next();
        request = (head + "\r\n\r\n" + BODY).getBytes(StandardCharsets.US_ASCII);
        idEnd = head.length();
    }

    /** One request. A 503 is a refusal; any response but that and a 201 without a body is an error. */
    @Override
    public boolean call() throws IOException {
        if (newIds) {
            Ids.writeNext(request, idEnd);
        }
        out.write(request);
        int length = 0;
        int end;
        do {
            int read = in.read(response, length, response.length - length);
            if (read < 0) {
                throw new IOException("the server closed the connection");
            }
            length += read;
            end = end(length);
        } while (end < 0 || end > length);
        if (startsWith(CREATED)) {
            return true;
        }
        if (startsWith(UNAVAILABLE)) {
            return false;
        }
        throw new IOException(new String(response, 0, length, StandardCharsets.US_ASCII));
    }

    private boolean startsWith(byte[] start) {
        return Arrays.equals(response, 0, start.length, start, 0, start.length);
    }

    /** Where the response ends, or -1 if its head is incomplete. */
    private int end(int length) {
        if (length >= END.length
                && Arrays.equals(response, length - END.length, length, END, 0, END.length)
                && startsWith(CREATED)) {
            return length;
        }
        String head = new String(response, 0, length, StandardCharsets.US_ASCII);
        int body = head.indexOf("\r\n\r\n");
        if (body < 0) {
            return -1;
        }
        Matcher contentLength = CONTENT_LENGTH.matcher(head);
        return body + END.length + (contentLength.find() ? Integer.parseInt(contentLength.group(1)) : 0);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
