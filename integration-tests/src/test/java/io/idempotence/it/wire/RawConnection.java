package io.idempotence.it.wire;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** One connection to a server on the loopback interface, kept alive between requests, that shows every byte. Not thread-safe. */
public final class RawConnection implements AutoCloseable {
    private final int port;
    private Socket socket;
    private InputStream in;

    public RawConnection(int port) {
        this.port = port;
    }

    /** Sends a request without waiting for its response. */
    public void send(String request) {
        try {
            if (socket == null) {
                socket = new Socket(InetAddress.getLoopbackAddress(), port);
                socket.setTcpNoDelay(true);
                socket.setSoTimeout(20_000);
                in = new BufferedInputStream(socket.getInputStream());
            }
            socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
            socket.getOutputStream().flush();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Reads the response to the request sent last. An interrupted response is returned as far as it came. */
    public RawResponse receive() {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        String status = "";
        List<String> headers = new ArrayList<>();
        boolean whole = false;
        try {
            status = line();
            for (String header = line(); !header.isEmpty(); header = line()) {
                headers.add(header);
            }
            RawResponse head = new RawResponse(status, headers, new byte[0], true);
            if (head.hasBody()) {
                readBody(head, body);
            }
            whole = true;
            if ("close".equalsIgnoreCase(head.header("Connection"))) {
                close();
            }
        } catch (IOException e) {
            close();
        }
        return new RawResponse(status, List.copyOf(headers), body.toByteArray(), whole);
    }

    private void readBody(RawResponse head, ByteArrayOutputStream body) throws IOException {
        String length = head.header("Content-Length");
        if ("chunked".equalsIgnoreCase(head.header("Transfer-Encoding"))) {
            for (int size = chunkSize(); size > 0; size = chunkSize()) {
                copy(size, body);
                line();
            }
            while (!line().isEmpty()) {
                // trailers
            }
        } else if (length != null) {
            copy(Integer.parseInt(length), body);
        } else {
            in.transferTo(body);
            close();
        }
    }

    private int chunkSize() throws IOException {
        return Integer.parseInt(line().replaceFirst(";.*", "").trim(), 16);
    }

    private void copy(int size, ByteArrayOutputStream body) throws IOException {
        byte[] bytes = in.readNBytes(size);
        body.write(bytes);
        if (bytes.length < size) {
            throw new EOFException();
        }
    }

    private String line() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new EOFException();
            }
            line.write(next);
        }
        String text = line.toString(StandardCharsets.ISO_8859_1);
        return text.endsWith("\r") ? text.substring(0, text.length() - 1) : text;
    }

    @Override
    public void close() {
        if (socket != null) {
            try {
                socket.close();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            socket = null;
        }
    }
}
